"""What is swept: from a TOML file or a Python call to one checked object, before anything is computed or written."""

import itertools
import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from holdfast.core.validation import COUNT, SEED, require, suggestion
from holdfast.sensing.settings import Settings
from holdfast.sweeps.designs import Axis, ScaleName, axis_length, axis_values, drawn, listed, plain
from holdfast.sweeps.programs import RECORDS, RESERVED, SEEDING, RecordName, SweepProgram, program_of

TABLES, TOP_KEYS = ("settings", "sweep"), ("program", "record")
KEYS = (*TOP_KEYS, *TABLES)
DESIGNS = ("grid", "random")
# Keys of [sweep] that are no axes.
RANDOM_KEYS = ("count", "seed")
DESIGN_KEYS = ("design", "points", "seeds", "seeds_per_cell", *RANDOM_KEYS)
SEEDS = 16
"""Seeds of each point, unless a number is given: as many as `holdfast simulate` runs."""
LAST_SEED = 2**32 - 2**16
MOST_RUNS = 10**9  # no machine of today finishes more
MOST_POINTS = 10**7  # of a random design, which are kept in memory


@dataclass(frozen=True)
class Sweep:
    """A program over points times seeds; see `specify` and `read_sweep`, which check it.

    Attributes:
        program: name, or "module:function".
        settings: those that all points share, complete, as plain values.
        axes: of the grid; or one axis "point" with a value of several settings for each point.
        seeds: number of runs of each point.
        seed: of the first run of each point.
        record: what is recorded, one of `holdfast.sweeps.programs.RECORDS`.
        seeds_per_cell: the most seeds that are computed together; None: as many as suit the platform.
        scales: "linear" or "log", of the axes that are ranges; for figures.

    Example:
        >>> sweep = specify({"dimension": 20}, {"step_size": [0.02, 0.05], "bias": {"start": 0, "stop": 1, "count": 3}})
        >>> sweep.points, sweep.runs, sweep.point((1, 2))["step_size"]
        (6, 96, 0.05)
    """

    program: str
    settings: Mapping[str, Any]
    axes: tuple[Axis, ...]
    seeds: int
    seed: int = 0
    record: RecordName = "final"
    seeds_per_cell: int | None = None
    scales: Mapping[str, ScaleName] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """Number of points."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def runs(self) -> int:
        """Number of runs."""
        return self.points * self.seeds

    def point(self, position: Sequence[int]) -> dict[str, Any]:
        """All settings of the point at a position, one number for each axis."""
        own = [axis.settings(at) for axis, at in zip(self.axes, position, strict=False)]
        return {**self.settings, **{name: value for values in own for name, value in values.items()}}


def read_sweep(path: str | Path) -> Sweep:
    r"""The sweep that a TOML file describes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "spec.toml"
        >>> _ = path.write_text("[settings]\ndimension = 20\n[sweep]\nstep_size = [0.02, 0.05]\nseeds = 32")
        >>> read_sweep(path).runs
        64
    """
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else "is a folder"
        raise ValueError(f"the specification must be a TOML file, got {str(path)!r}, which {why}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the specification must be TOML, got {str(path)!r}: {error}") from None
    for key in table:
        contract = f"the keys of the specification must be among {', '.join(KEYS)}"
        require(key in KEYS, contract, f"{key!r}{suggestion(key, KEYS)}")
    for name in TABLES:
        require(isinstance(table.get(name, {}), Mapping), f"{name} must be a table, [{name}]", repr(table.get(name)))
        for key in TOP_KEYS:  # written below a table, it would be taken for a setting of a user function
            contract = f"{key} must come before the first table"
            require(key in table or key not in table.get(name, {}), contract, f"it in [{name}]")
    require("sweep" in table, "the specification must have a table [sweep] with axes", "none")
    return specify(
        table.get("settings", {}), table["sweep"],
        program=table.get("program", "matrix-sensing"), record=table.get("record", "final"),
    )  # fmt: skip


def specify(
    settings: Settings | Mapping[str, Any],
    axes: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    seeds: int | None = None,
    record: RecordName = "final",
    program: str | Callable = "matrix-sensing",
) -> Sweep:
    """A sweep, checked as a whole: keys, types, values, sizes, and settings that do not fit together.

    Args:
        settings: those that all points share; `seed` is that of the first run.
        axes: the table [sweep] of a specification: name -> list of values, or start, stop, count and perhaps
            scale = "log"; or a list of points; or design = "random" with count, seed, and low and high of each name.
        seeds: runs of each point; also as a key of `axes`.
        record: one of `holdfast.sweeps.programs.RECORDS`.
        program: one of `holdfast.sweeps.programs.PROGRAMS`, "module:function", or a function of a module.

    Example:
        >>> specify({"dimension": 20, "step_sise": 0.1}, {"bias": [0.0, 1.0]})
        Traceback (most recent call last):
        ValueError: settings must be known to matrix-sensing, got 'step_sise' (perhaps step_size)
    """
    found = program_of(program)
    name = program if isinstance(program, str) else found.target
    table: dict[str, Any] = dict(axes) if isinstance(axes, Mapping) else {"points": list(axes)}
    require(record in RECORDS, f"record must be one of {', '.join(RECORDS)}", repr(record))
    chosen = [each for each in (seeds, table.get("seeds")) if each is not None]
    names = _swept_names(table)
    shared = _plain(settings, {*names, *(("seeds",) if chosen else ())})
    own = shared.pop("seeds", None)
    require(own is None or is_dataclass(settings), "seeds must be given to the sweep, not among the settings", own)
    first, number = _seeding(shared.pop("seed", 0), [*chosen, *([] if own is None else [own])])
    together = table.get("seeds_per_cell")
    if together is not None:
        COUNT.check("seeds_per_cell", together)
    _check_names(found, name, shared, names, table)
    made = _design(table, number, found.whole())
    _check_shapes(found, made, record)
    complete = complete_settings(found, shared, made)
    ranges = {axis: each for axis, each in _axes_of(table).items() if isinstance(each, Mapping)}
    scales = {axis: each.get("scale", "linear") for axis, each in ranges.items()}
    return Sweep(name, complete, made, number, first, record, together, scales)


def _seeding(first: Any, numbers: Sequence[Any]) -> tuple[int, int]:
    """The first seed and the number of seeds, which is given once or not at all."""
    require(len(numbers) < 2, "seeds must be given once", " and ".join(map(str, numbers)))
    number = numbers[0] if numbers else SEEDS
    COUNT.check("seeds", number)
    SEED.check("seed", first)
    # The last cell may be filled up with seeds that were not requested.
    require(first + number <= LAST_SEED, "seed + seeds must be at most 2^32 - 2^16", f"{first} + {number}")
    return int(first), int(number)


def _plain(settings: Any, elsewhere: Collection[str]) -> dict[str, Any]:
    """Settings as a mapping; of a data class without the defaults of those that are given elsewhere."""
    if not is_dataclass(settings):
        require(isinstance(settings, Mapping), "settings must be holdfast.Settings or a mapping", repr(settings))
        return dict(settings)
    check_single(settings)
    values = {field.name: (getattr(settings, field.name), field.default) for field in fields(settings)}
    chosen = {name for name, (value, default) in values.items() if default not in (MISSING, value)}
    return {name: value for name, (value, _) in values.items() if name in chosen or name not in elsewhere}


def _axes_of(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: axis for name, axis in table.items() if name not in DESIGN_KEYS}


def _swept_names(table: Mapping[str, Any]) -> list[str]:
    """The names of axes, or of the settings of points."""
    points = table.get("points", ())
    if not (isinstance(points, Sequence) and all(isinstance(point, Mapping) for point in points)):
        raise ValueError(f"points must be a list of tables, [[sweep.points]], got {points!r}")
    return list(dict.fromkeys([*_axes_of(table), *itertools.chain.from_iterable(points)]))


def _check_names(
    program: SweepProgram, name: str, shared: Mapping[str, Any], swept: Sequence[str], table: Mapping[str, Any]
) -> None:
    for word in swept:
        require(word not in SEEDING, f"{word} must not be an axis: every point has the same seeds", repr(word))
        plain_word = bool(word) and "/" not in word and not word.startswith((".", "__"))
        require(plain_word, "names of axes must be plain words", repr(word))
        require(word not in RESERVED, f"axes must have none of the names {', '.join(sorted(RESERVED))}", repr(word))
        both = f"{shared.get(word)!r} among the settings and values in the sweep; leave it out of one"
        require(word not in shared, f"{word} must be given once", both)
    if program.settings:
        known = [field.name for field in fields(program.settings_class()) if field.name not in SEEDING]
        keys = [key for key in DESIGN_KEYS if table.get("design") == "random" or key not in RANDOM_KEYS]
        for words, what, more in ((shared, "settings", ["seed"]), (swept, "axes", keys)):
            for word in words:
                hint = f"{word!r}{suggestion(word, [*known, *more])}"
                require(word in known, f"{what} must be known to {name}", hint)


def _design(table: Mapping[str, Any], seeds: int, whole: set[str]) -> tuple[Axis, ...]:
    axes, design = _axes_of(table), table.get("design", "grid")
    require(design in DESIGNS, f"design must be one of {', '.join(DESIGNS)}", repr(design))
    if "points" in table:
        extra = [*axes, *(key for key in (*RANDOM_KEYS, "design") if key in table)]
        require(not extra, "points must be given without axes of a grid or a random design", ", ".join(extra))
        _check_runs(len(table["points"]) * seeds)
        return (listed(table["points"]),)
    require(bool(axes), "the sweep must have at least one axis, such as step_size = [0.02, 0.05]", "none")
    axes = plain(axes)
    if design == "random":
        require("count" in table, "a random design must have count, its number of points", "none")
        COUNT.check("count", table["count"])
        require(table["count"] <= MOST_POINTS, f"count must be at most {MOST_POINTS:,}", f"{table['count']:,}")
        _check_runs(table["count"] * seeds)
        return (drawn(axes, table["count"], table.get("seed", 0), whole),)
    for key in RANDOM_KEYS:
        require(key not in table, f"{key} must be left out unless design is random", table.get(key))
    _check_runs(math.prod(axis_length(name, axis) for name, axis in axes.items()) * seeds)
    return tuple(Axis(name, {name: axis_values(name, axis, name in whole)}) for name, axis in axes.items())


def _check_runs(runs: int) -> None:
    require(runs <= MOST_RUNS, f"the sweep must have at most {MOST_RUNS:,} runs", f"{runs:,}")


def _check_shapes(program: SweepProgram, axes: Sequence[Axis], record: RecordName) -> None:
    shaping = [*program.shaping, *(program.timing if record != "final" else ())]
    for name in (name for axis in axes for name in axis.coordinates):
        contract = f'{name} must be one value with record = "{record}", since it changes the form of what is recorded'
        require(name not in shaping, contract, "an axis")


# Combinations of settings that are checked one by one, in about a second; of more, every value of each axis is.
MOST_CHECKED = 5_000


def complete_settings(program: SweepProgram, shared: Mapping[str, Any], axes: Sequence[Axis]) -> dict[str, Any]:
    """The settings that all points share, with the defaults of those that are not given.

    Raises a ValueError if the settings of any point do not fit together; for more combinations than `MOST_CHECKED`,
    which cells then find out, if any value of an axis does not fit to the first ones of the other axes.

    Example:
        >>> from holdfast.sweeps.programs import PROGRAMS
        >>> axes = [Axis("spurious_rank", {"spurious_rank": (1, 20)})]
        >>> complete_settings(PROGRAMS["matrix-sensing"], {"dimension": 10}, axes)
        Traceback (most recent call last):
        ValueError: invariant_rank + spurious_rank must be at most dimension, got 1 + 20 > 10, at spurious_rank=20
    """
    kind = program.settings_class()
    if kind is None:
        return dict(shared)
    _check_everywhere(program, shared, axes)
    swept = {name: values[0] for axis in axes for name, values in axis.coordinates.items()}
    first, left_out = kind(**shared, **swept), {*swept, *SEEDING}
    check_single(first)
    return {name: value for name, value in first.asdict().items() if name not in left_out}


def check_single(settings: Any) -> None:
    """Raise a ValueError if settings that a sweep shares hold several values, as those of `simulate` may.

    Example:
        >>> from holdfast.sensing.settings import Settings
        >>> check_single(Settings(bias=(0.0, 1.0)))
        Traceback (most recent call last):
        ValueError: each setting takes one value; put lists under [sweep], got a list for bias
    """
    several = ", ".join(getattr(settings, "axes", {}))
    require(not several, "each setting takes one value; put lists under [sweep]", f"a list for {several}")


def _check_everywhere(program: SweepProgram, shared: Mapping[str, Any], axes: Sequence[Axis]) -> None:
    """Raise a ValueError at the first settings that do not fit together; it names the point, if others do fit."""

    def refusal(others: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> str | None:
        try:
            program.check_settings({**shared, **others}, columns)
        except ValueError as error:
            return str(error)
        return None

    for others, columns in _groups(axes, program.free):
        found = refusal(others, columns)
        if found is not None:
            everywhere = all(refusal(*group) == found for group in _groups(axes, program.free))
            point = ", ".join(f"{name}={value}" for name, value in others.items())
            raise ValueError(found if everywhere else f"{found}, at {point}")


def _groups(axes: Sequence[Axis], together: Sequence[str]) -> Iterator[tuple[dict[str, Any], dict[str, tuple]]]:
    """Combinations of the settings that are checked one by one, each with the values of those checked together."""
    if len(axes) == 1 and axes[0].name not in axes[0].coordinates:  # points
        columns = axes[0].coordinates
        alone = [name for name in columns if name not in together]
        found: dict[tuple, list[int]] = defaultdict(list)
        keys = zip(*(columns[name] for name in alone), strict=True) if alone else [()] * axes[0].size
        for number, key in enumerate(keys):
            found[key].append(number)
        for key, rows in itertools.islice(found.items(), MOST_CHECKED):
            met = {name: [values[row] for row in rows] for name, values in columns.items() if name in together}
            if axes[0].size > MOST_CHECKED:  # free settings are allowed in an interval: its ends stand for all
                met = {name: [min(values), max(values)] for name, values in met.items()}
            yield dict(zip(alone, key, strict=True)), {name: tuple(dict.fromkeys(each)) for name, each in met.items()}
        return
    grid = {axis.name: axis.coordinates[axis.name] for axis in axes}
    columns = {name: values for name, values in grid.items() if name in together}
    others = {name: values for name, values in grid.items() if name not in together}
    for combination in itertools.islice(itertools.product(*others.values()), MOST_CHECKED):
        yield dict(zip(others, combination, strict=True)), columns
    if math.prod(map(len, others.values())) > MOST_CHECKED:
        first = {name: values[0] for name, values in others.items()}
        for name, values in others.items():
            for value in values[:MOST_CHECKED]:
                yield {**first, name: value}, columns
