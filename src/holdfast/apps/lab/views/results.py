"""Results: a reproduction claim by claim, or a sweep along its axes, from the folder that the command names."""

import base64
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np

from holdfast.apps.cli.command import fixed_axes
from holdfast.apps.lab.inputs import choice, column, text
from holdfast.apps.lab.view import Context, View, as_call, as_command
from holdfast.core.progress import counted
from holdfast.core.validation import one_line, require

if TYPE_CHECKING:
    import xarray as xr

    from holdfast.sweeps.summary import SweepSummary

CLAIMS, STEP = "claims.json", "step"
# Bytes of a drawing; a larger one is sent as pixels.
LARGEST_DRAWING = 2**20
# Kinds of figures, the better one first, and what browsers call them.
FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
# More lines cannot be told apart.
MOST_LINES = 8
# More points than this would make a page slow.
MOST_CELLS = 20_000
NO_FOLDER = (
    "No folder of results. Start the page with `holdfast lab --results FOLDER` to browse what `holdfast reproduce` or "
    "`holdfast sweep` wrote there."
)


@dataclass(frozen=True)
class ResultsSettings:
    """Which claims are listed, which figure is drawn, and what is drawn of a sweep."""

    verdict: str = column("Verdict", group="Claims", empty="all", display=True)
    source: str = column("Source", group="Claims", empty="all", display=True)
    search: str = text("", "Search", longest=60, group="Claims", display=True)
    figure: str = column("Figure", group="Claims", empty="the first")
    quantity: str = column("Quantity", group="Sweep", empty="the usual one")
    x: str = column("Horizontal axis", group="Sweep", empty="the longest one")
    y: str = column("Vertical axis, for a map", group="Sweep", empty="none (lines)")
    over: str = choice(
        "median",
        "Seeds",
        {"median": "band from the 10 % to the 90 % quantile", "mean": "band of two standard errors"},
        group="Sweep",
    )
    at: str = text("", "Fixed axes, such as step_size=0.05, bias=1", longest=200, group="Sweep")


def compute(settings: ResultsSettings, context: Context) -> dict[str, Any]:
    """The claims or the numbers of the folder of `--results`."""
    folder = context.results
    if folder is None:
        return {"kind": "none", "summary": NO_FOLDER}
    if (folder / CLAIMS).is_file():
        return _reproduction(settings, folder, context)
    from holdfast.sweeps.results import REQUEST, results_path, store_at

    if Path(store_at(folder).folder, REQUEST).is_file() or Path(results_path(folder), "zarr.json").is_file():
        return _sweep(settings, folder, context)
    return {"kind": "none", "summary": f"The folder {folder.name} has neither {CLAIMS} nor the results of a sweep."}


def _reproduction(settings: ResultsSettings, folder: Path, context: Context) -> dict[str, Any]:
    found = open_reproduction(folder)
    claims = [msgspec.structs.asdict(each) | {"experiment": found.experiment(each.id)} for each in found.file.claims]
    context.send("kind", "reproduction")
    context.send("claims", claims)
    context.send("figures", list(found.figures))
    name = settings.figure or next(iter(found.figures), "")
    python = f"""import json
from pathlib import Path

claims = json.loads(Path({folder.name!r}, "{CLAIMS}").read_text())["claims"]
for claim in claims:
    print(claim["verdict"], claim["source"], claim["statement"], sep=" | ")
"""
    again = name if name in found.file.seeds else " ".join(found.file.seeds) or name
    quickly = " --quick" if found.file.quick else ""
    command = f"holdfast reproduce {again}{quickly} --out {shlex.quote(folder.name)}"
    context.send("code", {"python": python, "command": command})
    counts = Counter(each.verdict for each in found.file.claims).most_common()
    listed = "; ".join(f"{verdict}: {count}" for verdict, count in counts)
    quick = " This was a quick look with few seeds, not a test." if found.file.quick else ""
    failed = f" Experiments that failed: {', '.join(found.file.failed)}." if found.file.failed else ""
    experiments = counted(len(found.file.seeds), "experiment")
    words = f"{counted(len(claims), 'claim')} of {experiments}. {listed.capitalize()}.{quick}{failed}"
    figure = {"figure": {"name": name, "source": found.figure(name)}} if name else {}
    return {**figure, "versions": found.file.versions, "seeds": found.file.seeds, "summary": words}


def _sweep(settings: ResultsSettings, folder: Path, context: Context) -> dict[str, Any]:
    from holdfast.sweeps.results import open_sweep
    from holdfast.sweeps.summary import quantities, summarise_sweep, usual_quantity

    context.send("kind", "sweep")
    data = open_sweep(folder)
    axes = sweep_axes(data)
    context.send("axes", {name: [str(value) for value in values[:MOST_CELLS]] for name, values in axes.items()})
    context.send("quantities", quantities(data))
    quantity, y = settings.quantity or usual_quantity(data), settings.y
    x, at = choose_axes(data, quantity, settings.x, y, fixed_axes(filter(None, map(str.strip, settings.at.split(",")))))
    over: Any = settings.over
    found = summarise_sweep(data, x, y or None, quantity=quantity, over=over, at=at)
    drawn = {"x": x} | ({"y": y} if y else {})
    chosen = {"quantity": quantity} | ({"over": over} if over != "median" else {})
    context.send("code", _sweep_code(folder.name, drawn, chosen, at))
    words = [f"{quantity} over {' and '.join(drawn.values())}", *found.title.splitlines()]
    return {"drawn": _drawn(found), "summary": " ".join(f"{line}." for line in words)}


def _drawn(found: "SweepSummary") -> dict[str, Any]:
    """Lines with bands, or a map."""
    from holdfast.sweeps.summary import value_text

    middle = found.band.middle
    common = {"label": found.label, "title": found.title, "x": _axis(found, found.x), "is_share": found.is_share}
    if found.y:
        if set(middle.dims) != {found.x, found.y} or middle.size > MOST_CELLS:
            raise ValueError(f"x and y must be two axes of a grid with at most {MOST_CELLS} points, got others")
        return common | {"y": _axis(found, found.y), "values": middle.transpose(found.y, found.x).values}
    others = [str(name) for name in middle.dims if name != middle[found.x].dims[0]]
    require(len(others) < 2, "at must fix the axes that are not drawn", f"none for {', '.join(others)}")
    along = others[0] if others else "line"  # without another axis there is one line
    band = found.band if others else found.band.expand_dims(along)
    series = [
        {
            "label": f"{along} {value_text(line[along].values)}" if others else found.label,
            "y": line["middle"].values,
            "low": line["low"].values if found.has_band else None,
            "high": line["high"].values if found.has_band else None,
        }
        for line in (band.isel({along: number}) for number in range(band.sizes[along]))
    ]
    return common | {"series": series}


def _axis(found: "SweepSummary", name: str) -> dict[str, Any]:
    """The values of an axis; those that are no numbers are numbered."""
    labels = found.band[name].values
    if labels.dtype.kind in "iuf":
        return {"name": name, "values": labels.astype(float), "log": name in found.log_axes, "labels": None}
    return {"name": name, "values": np.arange(len(labels)), "log": False, "labels": [str(each) for each in labels]}


def _sweep_code(folder: str, drawn: dict[str, str], chosen: dict[str, Any], at: dict[str, Any]) -> dict[str, str]:
    fixed = [f"{name}={value}" for name, value in at.items()]
    call = as_call("plot_sweep", drawn | chosen | ({"at": at} if at else {}), "data")
    python = f"""from holdfast.sweeps import open_sweep, plot_sweep

data = open_sweep({folder!r})
figure = {call}
figure.savefig("sweep.png")
"""
    words = ["sweep-plot", folder, *(["--at", *fixed] if fixed else [])]
    return {"python": python, "command": as_command(words, drawn | chosen)}


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

    def figure(self, name: str) -> str:
        """A figure as an address that needs no file; a ValueError if there is none of this name."""
        require(name in self.figures, f"figure must be one of {', '.join(self.figures) or 'none'}", repr(name[:60]))
        path = self.figures[name]
        if path.suffix == ".svg" and path.stat().st_size > LARGEST_DRAWING and path.with_suffix(".png").is_file():
            path = path.with_suffix(".png")
        return f"data:{FIGURES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def open_reproduction(folder: Path) -> ReproductionFolder:
    """Read the claims of a folder; a ValueError if they cannot be read."""
    try:
        file = msgspec.json.decode((folder / CLAIMS).read_bytes(), type=ClaimFile)
    except (ValueError, OSError) as error:
        contract = f"{CLAIMS} must be written by `holdfast reproduce`"
        raise ValueError(f"{contract}, got another file ({one_line(error)})") from error
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
    from holdfast.sweeps.programs import QUANTILE, SEED_DIMENSION

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
    require(bool(own), "the sweep must have an axis", "none")
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


VIEW = View(ResultsSettings, compute)
