"""The folder of `holdfast lab --results`: the claims and figures of a reproduction, or the axes of a sweep."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    import xarray as xr

CLAIMS, STEP = "claims.json", "step"
# Bytes of a file of claims and of a figure that are read; a larger drawing is sent as pixels.
LARGEST_CLAIMS, LARGEST_DRAWING, LARGEST_FIGURE = 16 * 2**20, 2**20, 8 * 2**20
# Kinds of figures, the better one first, and what browsers call them.
FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
# More lines cannot be told apart; more cells than this would make a page slow.
MOST_LINES, MOST_CELLS = 8, 20_000


class MeasuredNumber(msgspec.Struct, frozen=True):
    """A number with its interval, as `claims.json` has it; None where it was not measured."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class ClaimConditions(msgspec.Struct, frozen=True):
    """What the settings miss of a statement, and what they choose."""

    missed: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()


class ClaimRecord(msgspec.Struct, frozen=True):
    """A claim in `claims.json`; see `holdfast_studies.Claim`."""

    id: str
    source: str
    statement: str
    verdict: str
    measured: MeasuredNumber
    allowed: tuple[float | None, float | None]
    settings: str = ""
    why: str = ""
    broken: bool = False
    conditions: ClaimConditions = ClaimConditions()


class ClaimFile(msgspec.Struct, frozen=True):
    """`claims.json` of a reproduction."""

    claims: tuple[ClaimRecord, ...]
    quick: bool = False
    versions: dict[str, str] = {}
    seeds: dict[str, int] = {}
    failed: dict[str, str] = {}


class ReproductionFolder(NamedTuple):
    """What `holdfast reproduce` has written.

    Attributes:
        file: its claims.
        figures: name -> the file, for the experiments that have one.

    Example:
        >>> ReproductionFolder(ClaimFile(()), {}).experiment("figure-3-weak", ["figure_3", "figure_30"])
        'figure_3'
    """

    file: ClaimFile
    figures: dict[str, Path]

    def experiment(self, claim: str, names: Sequence[str]) -> str:
        """The experiment that a claim belongs to, by the beginning of its name; empty if there is none."""
        fits = [name for name in names if f"{claim}-".startswith(f"{name.replace('_', '-')}-")]
        return max(fits, key=len, default="")

    def records(self) -> list[dict[str, Any]]:
        """The claims as the page lists them."""
        names = list(self.file.seeds)
        return [
            {
                "id": each.id,
                "experiment": self.experiment(each.id, names),
                "source": each.source,
                "statement": each.statement,
                "verdict": each.verdict,
                "value": each.measured.value,
                "low": each.measured.low,
                "high": each.measured.high,
                "allowed_low": each.allowed[0],
                "allowed_high": each.allowed[1],
                "settings": each.settings,
                "why": each.why,
                "broken": each.broken,
                "missed": list(each.conditions.missed),
                "chosen": list(each.conditions.chosen),
            }
            for each in self.file.claims
        ]

    def figure(self, name: str) -> str:
        """A figure as an address that needs no file; a ValueError if there is none of this name."""
        if name not in self.figures:
            raise ValueError(f"figure must be one of {', '.join(self.figures) or 'none'}, got {name[:60]!r}")
        path = self.figures[name]
        if path.suffix == ".svg" and path.stat().st_size > LARGEST_DRAWING and path.with_suffix(".png").is_file():
            path = path.with_suffix(".png")
        if path.stat().st_size > LARGEST_FIGURE:
            raise ValueError(f"figure must be at most {LARGEST_FIGURE >> 20} MiB, got a larger one in {path.name}")
        return f"data:{FIGURES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def open_reproduction(folder: Path) -> ReproductionFolder:
    """Read the claims of a folder; a ValueError if they cannot be read."""
    path = folder / CLAIMS
    if path.stat().st_size > LARGEST_CLAIMS:
        raise ValueError(f"{CLAIMS} must be at most {LARGEST_CLAIMS >> 20} MiB, got a larger one")
    try:
        file = msgspec.json.decode(path.read_bytes(), type=ClaimFile)
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{CLAIMS} must be written by `holdfast reproduce`, got another file ({reason})") from error
    found = {path.stem: path for kind in reversed(FIGURES) for path in sorted(folder.glob(f"*{kind}"))}
    # In the order of the claims; figures of experiments that the file does not know come last.
    names = [*file.seeds, *sorted(set(found) - set(file.seeds))]
    return ReproductionFolder(file, {name: found[name] for name in names if name in found})


class SweepChoice(NamedTuple):
    """What is drawn of a sweep.

    Attributes:
        quantity: a variable.
        x, y: axes; without y lines are drawn.
        over: how the seeds of a point become one number.
        at: axis -> the value at which it is held.
        lines: the axis of which each value is a line; empty if there is one line.

    Example:
        >>> SweepChoice("spurious", "bias", "", "median", {}, "").y
        ''
    """

    quantity: str
    x: str
    y: str
    over: Any
    at: Mapping[str, Any]
    lines: str


def sweep_axes(data: "xr.Dataset") -> dict[str, list[Any]]:
    """Axis -> its values, the longest first: those make the best lines.

    Example:
        >>> import xarray as xr
        >>> sweep_axes(xr.Dataset(coords={"bias": [0.0, 1.0], "step_size": [0.1, 0.2, 0.3], "seed": [0, 1]}))
        {'step_size': [0.1, 0.2, 0.3], 'bias': [0.0, 1.0]}
    """
    from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION

    names = [str(name) for name in data.coords if data[name].ndim == 1 and name not in (SEED_DIMENSION, QUANTILE)]
    found = {name: data[name].values.tolist() for name in names}
    return dict(sorted(found.items(), key=lambda each: -len(each[1])))


def choose_axes(data: "xr.Dataset", wanted: SweepChoice) -> SweepChoice:
    """A choice in which everything that was left open is chosen, and every axis that is not drawn is held.

    Args:
        data: of the sweep.
        wanted: with empty texts for what is open.
    """
    from holdfast.sweeps.figures.quantities import quantities, usual_quantity

    axes, known = sweep_axes(data), quantities(data)
    if not axes:
        raise ValueError("the sweep must have an axis, got none")
    quantity = wanted.quantity or usual_quantity(data)
    if quantity not in known:
        raise ValueError(f"quantity must be one of {', '.join(known)}, got {quantity[:60]!r}")
    own = {name for name in axes if data[name].dims[0] in data[quantity].dims} if quantity in data else set(axes)
    for argument, name in (("x", wanted.x), ("y", wanted.y), *(("at", name) for name in wanted.at)):
        if name and name not in axes:
            raise ValueError(f"{argument} must be one of the axes {', '.join(axes)}, got {name[:60]!r}")
    x = wanted.x or next(name for name in axes if name != wanted.y and name in own)
    dimensions = {str(data[name].dims[0]) for name in (x, wanted.y) if name}
    others = [name for name in axes if data[name].dims == (name,) and name in own and name not in dimensions]
    free = [name for name in others if name not in wanted.at]
    lines = "" if wanted.y else next((name for name in free if name != STEP and 1 < len(axes[name]) <= MOST_LINES), "")
    held = {name: _usual(name, axes[name]) for name in free if name != lines}
    at = {name: value for name, value in wanted.at.items() if name in others}
    return SweepChoice(quantity, x, wanted.y, wanted.over, at | held, lines)


def _usual(name: str, values: Sequence[Any]) -> Any:
    """Where an axis is held: at the last step, in the middle of numbers, at the first of names."""
    if name == STEP:
        return values[-1]
    return values[len(values) // 2] if isinstance(values[0], int | float) else values[0]
