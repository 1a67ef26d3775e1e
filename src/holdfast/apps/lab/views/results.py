"""Results: a reproduction claim by claim, or a sweep along its axes, from the folder that the command names."""

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.apps.lab.inputs import choice, column, text
from holdfast.apps.lab.results import CLAIMS, MOST_CELLS, SweepChoice, choose_axes, open_reproduction, sweep_axes
from holdfast.apps.lab.snippets import literal
from holdfast.apps.lab.view import Context, Snippets, View

NO_FOLDER = (
    "No results were named. Start the page with `holdfast lab --results FOLDER`, where FOLDER is one that "
    "`holdfast reproduce` or `holdfast sweep` has written."
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
    """The claims or the numbers of the folder that the person who started the page has named."""
    folder = context.results
    if folder is None:
        return {"kind": "none", "summary": NO_FOLDER}
    if (folder / CLAIMS).is_file():
        return _reproduction(settings, folder, context)
    from holdfast.sweeps.results import results_path

    if (Path(results_path(folder)) / "zarr.json").is_file():
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

claims = json.loads(Path({literal(folder.name)}, "{CLAIMS}").read_text())["claims"]
for claim in claims:
    print(claim["verdict"], claim["source"], claim["statement"], sep=" | ")
"""
    again = name if name in found.file.seeds else " ".join(names)
    quickly = " --quick" if found.file.quick else ""
    command = f"holdfast reproduce {again}{quickly} --out {shlex.quote(folder.name)}"
    context.send("code", Snippets(python, command)._asdict())
    listed = "; ".join(f"{verdict}: {count}" for verdict, count in counts.most_common())
    quick = " This was a quick look with few seeds, not a test." if found.file.quick else ""
    failed = f" Experiments that failed: {', '.join(found.file.failed)}." if found.file.failed else ""
    experiments = "1 experiment" if len(found.file.seeds) == 1 else f"{len(found.file.seeds)} experiments"
    words = f"{len(claims)} claims of {experiments}. {listed.capitalize()}.{quick}{failed}"
    figure = {"figure": {"name": name, "source": found.figure(name)}} if name else {}
    return {**figure, "versions": found.file.versions, "seeds": found.file.seeds, "summary": words}


def _sweep(settings: ResultsSettings, folder: Path, context: Context) -> dict[str, Any]:
    from holdfast.sweeps.figures.quantities import quantities
    from holdfast.sweeps.results import open_sweep

    context.send("kind", "sweep")
    data = open_sweep(folder)
    axes = sweep_axes(data)
    context.send("axes", {name: [str(value) for value in values[:MOST_CELLS]] for name, values in axes.items()})
    context.send("quantities", quantities(data))
    wanted = SweepChoice(settings.quantity, settings.x, settings.y, settings.over, _held(settings.at), "")
    chosen = choose_axes(data, wanted)
    context.send("code", _sweep_code(chosen, folder.name)._asdict())
    drawn = _drawn(data, chosen)
    share = float(data["finished"].mean()) if "finished" in data else 1.0
    held = ", ".join(f"{name} at {value}" for name, value in chosen.at.items())
    words = [
        f"{chosen.quantity} over {chosen.x}{f' and {chosen.y}' if chosen.y else ''}, {share:.0%} of the cells done."
    ]
    words += [f"Held: {held}."] if held else []
    words += [f"{line}." for line in drawn["title"].splitlines()]
    return {"drawn": drawn, "summary": " ".join(words)}


def _drawn(data: Any, chosen: SweepChoice) -> dict[str, Any]:
    """Lines with bands, or a map; values of an axis that are no numbers are numbered."""
    from holdfast.sweeps.figures.summary import summarise_sweep, value_text

    found = summarise_sweep(data, chosen.x, chosen.y or None, quantity=chosen.quantity, over=chosen.over, at=chosen.at)
    band = found.band
    common = {"label": found.label, "title": found.title, "x": _axis(band.middle, chosen.x), "is_share": found.is_share}
    if chosen.y:
        plane = band.middle.transpose(chosen.y, chosen.x) if set(band.middle.dims) == {chosen.x, chosen.y} else None
        if plane is None or plane.size > MOST_CELLS:
            raise ValueError(f"x and y must be two axes of a grid with at most {MOST_CELLS} points, got others")
        return common | {"y": _axis(band.middle, chosen.y), "values": plane.values}
    others = [str(name) for name in band.middle.dims if name != band.middle[chosen.x].dims[0]]
    if others not in ([], [chosen.lines]):
        raise ValueError(f"at must hold the axes that are not drawn, got none for {', '.join(others)}")
    count = band.middle.sizes[chosen.lines] if others else 1
    parts = [[part.isel({chosen.lines: n}) if others else part for part in band] for n in range(count)]
    series = [
        {
            "label": f"{chosen.lines} {value_text(middle[chosen.lines].values)}" if others else found.label,
            "y": middle.values,
            "low": low.values if found.has_band else None,
            "high": high.values if found.has_band else None,
        }
        for middle, low, high in parts
    ]
    return common | {"series": series}


def _axis(values: Any, name: str) -> dict[str, Any]:
    import numpy as np

    labels = values[name].values
    if labels.dtype.kind in "iuf":
        spread = labels.max() / labels.min() if labels.size > 2 and labels.min() > 0 else 1.0
        # Evenly spaced logarithms are meant to be seen evenly spaced.
        even = spread > 1 and bool(np.ptp(np.diff(np.log(labels))) < 0.1 * np.abs(np.diff(np.log(labels))).max())
        return {"name": name, "values": labels.astype(float), "log": even and spread > 5, "labels": None}
    return {"name": name, "values": np.arange(len(labels)), "log": False, "labels": [str(each) for each in labels]}


def _held(words: str) -> dict[str, Any]:
    """Axes with their values, from a text such as bias=1, order=cyclic; numbers become numbers."""
    held: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in words.split(","))):
        name, mark, value = (each.strip() for each in part.partition("="))
        if not (name and mark and value):
            raise ValueError(f"at must be name=value, with commas between several of them, got {part!r}")
        try:
            held[name] = float(value)
        except ValueError:
            held[name] = value
    return held


def _sweep_code(chosen: SweepChoice, folder: str) -> Snippets:
    y = f", {literal(chosen.y)}" if chosen.y else ""
    over = f", over={literal(chosen.over)}" if chosen.over != "median" else ""
    at = f", at={dict(chosen.at)!r}" if chosen.at else ""
    python = f"""from holdfast.sweeps import open_sweep, plot_sweep

data = open_sweep({literal(folder)})
figure = plot_sweep(data, {literal(chosen.x)}{y}, quantity={literal(chosen.quantity)}{over}{at})
figure.savefig("sweep.png")
"""
    words = ["holdfast", "sweep-plot", folder, "--x", chosen.x]
    words += ["--y", chosen.y] if chosen.y else []
    words += ["--quantity", chosen.quantity, *(["--over", chosen.over] if chosen.over != "median" else [])]
    words += ["--at", *(f"{name}={value}" for name, value in chosen.at.items())] if chosen.at else []
    return Snippets(python, shlex.join(words))


def snippets(settings: ResultsSettings) -> Snippets:
    """None before the folder is known: `compute` sends the code then."""
    return Snippets("", "")


VIEW = View(ResultsSettings, compute, snippets)
