"""Whether settings fit together at every point of a sweep, without making every point."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.validation import require
from holdfast.sweeps.designs import Axis
from holdfast.sweeps.programs import SEEDING, SweepProgram

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
