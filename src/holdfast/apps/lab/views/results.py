"""Results: a reproduction claim by claim, or a sweep along its axes, from the folder that the command names."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.apps.cli.command import fixed_axes
from holdfast.apps.lab.inputs import choice, column, text
from holdfast.apps.lab.results import CLAIMS, choose_axes, open_reproduction, sweep_axes
from holdfast.apps.lab.view import Context, View, as_call, as_command
from holdfast.core.progress import counted

if TYPE_CHECKING:
    import xarray as xr

    from holdfast.sweeps.figures.summary import SweepSummary

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
    claims, counts = found.records(), Counter(each.verdict for each in found.file.claims)
    context.send("kind", "reproduction")
    context.send("claims", claims)
    context.send("figures", list(found.figures))
    name = settings.figure or next(iter(found.figures), "")
    names = list(found.file.seeds) or [name]
    python = f"""import json
from pathlib import Path

claims = json.loads(Path({folder.name!r}, "{CLAIMS}").read_text())["claims"]
for claim in claims:
    print(claim["verdict"], claim["source"], claim["statement"], sep=" | ")
"""
    again = name if name in found.file.seeds else " ".join(names)
    quickly = " --quick" if found.file.quick else ""
    command = f"holdfast reproduce {again}{quickly} --out {shlex.quote(folder.name)}"
    context.send("code", {"python": python, "command": command})
    listed = "; ".join(f"{verdict}: {count}" for verdict, count in counts.most_common())
    quick = " This was a quick look with few seeds, not a test." if found.file.quick else ""
    failed = f" Experiments that failed: {', '.join(found.file.failed)}." if found.file.failed else ""
    experiments = counted(len(found.file.seeds), "experiment")
    words = f"{counted(len(claims), 'claim')} of {experiments}. {listed.capitalize()}.{quick}{failed}"
    figure = {"figure": {"name": name, "source": found.figure(name)}} if name else {}
    return {**figure, "versions": found.file.versions, "seeds": found.file.seeds, "summary": words}


def _sweep(settings: ResultsSettings, folder: Path, context: Context) -> dict[str, Any]:
    from holdfast.sweeps.figures.quantities import quantities, usual_quantity
    from holdfast.sweeps.figures.summary import summarise_sweep
    from holdfast.sweeps.results import open_sweep

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
    from holdfast.sweeps.figures.summary import value_text

    middle = found.band.middle
    common = {"label": found.label, "title": found.title, "x": _axis(middle, found.x), "is_share": found.is_share}
    if found.y:
        if set(middle.dims) != {found.x, found.y} or middle.size > MOST_CELLS:
            raise ValueError(f"x and y must be two axes of a grid with at most {MOST_CELLS} points, got others")
        return common | {"y": _axis(middle, found.y), "values": middle.transpose(found.y, found.x).values}
    others = [str(name) for name in middle.dims if name != middle[found.x].dims[0]]
    if len(others) > 1:
        raise ValueError(f"at must fix the axes that are not drawn, got none for {', '.join(others)}")
    # Without another axis there is one line.
    lines = zip(
        *(part.transpose(*others, ...) if others else part.expand_dims("line") for part in found.band), strict=True
    )
    series = [
        {
            "label": f"{others[0]} {value_text(line[others[0]].values)}" if others else found.label,
            "y": line.values,
            "low": low.values if found.has_band else None,
            "high": high.values if found.has_band else None,
        }
        for line, low, high in lines
    ]
    return common | {"series": series}


def _axis(values: "xr.DataArray", name: str) -> dict[str, Any]:
    """The values of an axis; those that are no numbers are numbered."""
    labels = values[name].values
    if labels.dtype.kind in "iuf":
        spread = labels.max() / labels.min() if labels.size > 2 and labels.min() > 0 else 1.0
        # Evenly spaced logarithms are meant to be seen evenly spaced.
        even = spread > 1 and bool(np.ptp(np.diff(np.log(labels))) < 0.1 * np.abs(np.diff(np.log(labels))).max())
        return {"name": name, "values": labels.astype(float), "log": even and spread > 5, "labels": None}
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


VIEW = View(ResultsSettings, compute)
