"""The folder of `holdfast lab --results`: the claims and figures of a reproduction, or the axes of a sweep."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    import xarray as xr

CLAIMS, STEP = "claims.json", "step"
# Bytes of a drawing; a larger one is sent as pixels.
LARGEST_DRAWING = 2**20
# Kinds of figures, the better one first, and what browsers call them.
FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
# More lines cannot be told apart.
MOST_LINES = 8


class ClaimRecord(msgspec.Struct, frozen=True):
    """A claim in `claims.json`; see `holdfast_studies.Claim`. Numbers that were not measured are None."""

    id: str
    source: str
    statement: str
    verdict: str
    measured: dict[Literal["value", "low", "high"], float | None]
    allowed: tuple[float | None, float | None]
    settings: str = ""
    why: str = ""
    conditions: dict[str, Any] = {}


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
        >>> ReproductionFolder(ClaimFile((), seeds={"figure_3": 8, "figure_30": 8}), {}).experiment("figure-3-weak")
        'figure_3'
    """

    file: ClaimFile
    figures: dict[str, Path]

    def experiment(self, claim: str) -> str:
        """The experiment that a claim belongs to, by the beginning of its name; empty if there is none."""
        fits = [name for name in self.file.seeds if f"{claim}-".startswith(f"{name.replace('_', '-')}-")]
        return max(fits, key=len, default="")

    def records(self) -> list[dict[str, Any]]:
        """The claims, each with its experiment."""
        return [msgspec.structs.asdict(each) | {"experiment": self.experiment(each.id)} for each in self.file.claims]

    def figure(self, name: str) -> str:
        """A figure as an address that needs no file; a ValueError if there is none of this name."""
        if name not in self.figures:
            raise ValueError(f"figure must be one of {', '.join(self.figures) or 'none'}, got {name[:60]!r}")
        path = self.figures[name]
        if path.suffix == ".svg" and path.stat().st_size > LARGEST_DRAWING and path.with_suffix(".png").is_file():
            path = path.with_suffix(".png")
        return f"data:{FIGURES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def open_reproduction(folder: Path) -> ReproductionFolder:
    """Read the claims of a folder; a ValueError if they cannot be read."""
    try:
        file = msgspec.json.decode((folder / CLAIMS).read_bytes(), type=ClaimFile)
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{CLAIMS} must be written by `holdfast reproduce`, got another file ({reason})") from error
    found = {path.stem: path for kind in reversed(FIGURES) for path in sorted(folder.glob(f"*{kind}"))}
    # In the order of the claims; figures of experiments that the file does not know come last.
    names = [*file.seeds, *sorted(set(found) - set(file.seeds))]
    return ReproductionFolder(file, {name: found[name] for name in names if name in found})


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


def choose_axes(data: "xr.Dataset", quantity: str, x: str, y: str, at: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The horizontal axis, and the values of the axes that are fixed: one short axis is left for several lines.

    Args:
        data: of the sweep.
        quantity: that is drawn.
        x: the horizontal axis; empty: the longest one.
        y: the vertical axis of a map; empty for lines.
        at: axis -> the value at which it is fixed.
    """
    axes = sweep_axes(data)
    own = [name for name in axes if quantity not in data or data[name].dims[0] in data[quantity].dims]
    if not own:
        raise ValueError("the sweep must have an axis, got none")
    x = x or next(name for name in own if name != y)
    drawn = {data[name].dims[0] for name in (x, y) if name in axes}
    free = [name for name in own if data[name].dims == (name,) and name not in drawn and name not in at]
    lines = next((name for name in free if not y and name != STEP and 1 < len(axes[name]) <= MOST_LINES), "")
    usual = {name: _usual(name, axes[name]) for name in free if name != lines}
    return x, {name: value for name, value in at.items() if name not in (x, y)} | usual


def _usual(name: str, values: Sequence[Any]) -> Any:
    """Where an axis is fixed: at the last step, in the middle of numbers, at the first of names."""
    if name == STEP:
        return values[-1]
    return values[len(values) // 2] if isinstance(values[0], int | float) else values[0]
