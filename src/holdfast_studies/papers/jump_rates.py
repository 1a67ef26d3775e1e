"""How often SGD jumps to a lower rank, against step size, ridge, depth and width of the network."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.completion.jumps import ranks
from holdfast.completion.problem import two_by_two
from holdfast.completion.training import AlgorithmName, CompletionBuilder, train
from holdfast.core.statistics import Estimate, exact_proportion, proportion
from holdfast_studies.kit.drawing import Figure, estimate_bars, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, stages
from holdfast_studies.kit.study import Claim, ClaimBuilder, above, share, study
from holdfast_studies.papers.jumps import RUN, jump_rate, network_starts, rate_ratio, waiting_times

LEFT_OPEN = (
    "All settings: the slides give none. epsilon=0.25, 30,000 steps, width 6, L=3, eta=0.4, lambda=0.0245 where not "
    "said otherwise; eta=0.3 for L=4 and 5. Rank and sitting are defined as for the experiment `jumps`.",
    "A rate is the number of jumps over the total time spent sitting at rank 2, so that runs cut off by the end of "
    "the simulation, or that diverge, count as what they are. The share that left is one of the runs that did not "
    "diverge first; at the settings here none does.",
)
QUICK_PART = 5  # a quick look takes one step in this many
STEPS, EVERY = 30_000, 200
STEP_SIZES = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5)
WIDTHS = (2, 3, 4, 6, 10)
# Around the ridge at which gradient descent leaves rank 2, which depends on the depth; deep networks diverge at the
# step of shallow ones.
RIDGES = {
    2: (0.07, 0.08, 0.09, 0.1, 0.11, 0.12),
    3: (0.022, 0.023, 0.024, 0.025, 0.026, 0.027),
    4: (0.0085, 0.009, 0.0095, 0.01, 0.0105, 0.011),
    5: (0.003, 0.0035, 0.004, 0.0045, 0.005, 0.0055),
}
BARS = {"capsize": 2, "markersize": 4}
# Each shape of network is a program to compile; a quick look does without these.
LEFT_OUT_WIDTHS, LEFT_OUT_DEPTHS = (2, 3), (5,)
STEP_SIZE_OF_DEPTH = {2: 0.4, 3: 0.4, 4: 0.3, 5: 0.3}


class NetworkSettings(NamedTuple):
    """The settings of one cell, and the panel that draws it."""

    panel: str
    algorithm: AlgorithmName
    depth: int
    width: int
    step_size: float
    ridge: float


def _cells(quick: bool) -> list[NetworkSettings]:
    by_step = [NetworkSettings("step_size", "sgd", RUN.depth, RUN.width, value, RUN.ridge) for value in STEP_SIZES]
    by_width = [NetworkSettings("width", "sgd", RUN.depth, value, RUN.step_size, RUN.ridge) for value in WIDTHS]
    algorithms: tuple[AlgorithmName, ...] = ("sgd", "gradient-descent")
    by_ridge = [
        NetworkSettings("ridge", algorithm, depth, RUN.width, STEP_SIZE_OF_DEPTH[depth], ridge)
        for depth, ridges in RIDGES.items() for ridge in ridges for algorithm in algorithms
    ]  # fmt: skip
    cells = by_step + by_width + by_ridge
    if quick:
        return [cell for cell in cells if cell.width not in LEFT_OUT_WIDTHS and cell.depth not in LEFT_OUT_DEPTHS]
    return cells


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """All cells; those with networks of one shape and one algorithm run together."""
    cells = _cells(effort.quick)
    shapes = list(dict.fromkeys((cell.algorithm, cell.depth, cell.width) for cell in cells))
    groups = [[number for number, cell in enumerate(cells) if cell[1:4] == shape] for shape in shapes]
    reports = stages(progress, [len(group) * effort.seeds * effort.steps(STEPS, QUICK_PART) for group in groups])
    found: dict[int, dict[str, np.ndarray]] = {}
    for group, report in zip(groups, reports, strict=True):
        found |= _run([cells[number] for number in group], group, effort, report)
    names = ("sat", "jumped", "waited", "rose", "jump_step", "diverged_at", "diverged")
    over = ("cell", "seed")
    variables = {name: (over, np.stack([found[number][name] for number in range(len(cells))])) for name in names}
    columns = {name: ("cell", [getattr(cell, name) for cell in cells]) for name in NetworkSettings._fields}
    attributes = {"steps": effort.steps(STEPS, QUICK_PART)}
    return xr.Dataset(variables, {**columns, "seed": np.arange(effort.seeds)}, attributes)


def _summary(data: xr.Dataset) -> str:
    return f"epsilon=0.25, {data.attrs['steps']:,} steps (ours)"


def _run(cells: list[NetworkSettings], numbers: list[int], effort: Effort, progress: Progress) -> dict[int, dict]:
    """Cells that differ in step size and ridge only, by their numbers."""
    problem, seeds, first = two_by_two(RUN.epsilon), effort.seeds, cells[0]
    each = np.tile(np.arange(seeds), len(cells))
    layers = network_starts(range(seeds), first.depth, first.width)
    paths = train(
        problem, tuple(np.tile(layer, (len(cells), 1, 1)) for layer in layers), each,
        step_size=np.repeat([cell.step_size for cell in cells], seeds),
        ridge=np.repeat([cell.ridge for cell in cells], seeds),
        steps=effort.steps(STEPS, QUICK_PART), every=EVERY, build=CompletionBuilder(first.algorithm),
        slab=effort.slab, progress=progress,
    )  # fmt: skip
    path = ranks(np.linalg.svd(paths.fitted, compute_uv=False), problem.scale)
    found = {}
    for index, (number, cell) in enumerate(zip(numbers, cells, strict=True)):
        rows = slice(index * seeds, (index + 1) * seeds)
        diverged_at = paths.diverged_at[rows]
        found[number] = waiting_times(paths.steps, path[rows], 2, cell.step_size, cell.ridge, diverged_at)
    return found


def _share(cell: xr.Dataset) -> Estimate:
    """Those that left rank 2, after sitting at it or before they could, of all but the runs that diverged first."""
    sat, jumped, diverged = (cell[name].values.astype(bool) for name in ("sat", "jumped", "diverged"))
    watched = jumped | ~diverged
    left = (jumped | ~sat)[watched]
    return share(left) if left.size else Estimate(0.5, 0.0, 1.0)  # nothing is known


def draw(data: xr.Dataset) -> Figure:
    """Rates against step size and width, and who leaves rank 2 against the ridge, for every depth."""
    title = f"Jumps from rank 2: {_summary(data)}, {data.sizes['seed']} seeds each, intervals of 95 %"
    figure, (left, middle, right) = new_figure(3, title)
    for axes, panel, title in ((left, "step_size", "L=3, λ=0.0245"), (right, "width", "L=3, η=0.4, λ=0.0245")):
        cells = data.sel(cell=data["panel"] == panel)
        rates = [jump_rate(cells.isel(cell=number)) for number in range(cells.sizes["cell"])]
        estimate_bars(axes, cells[panel].values.tolist(), rates, label="SGD", marker="o", color="C0", **BARS)
        label = {"step_size": "step size η", "width": "width of the hidden layers"}[panel]
        axes.set(xlabel=label, ylabel="jumps per step at rank 2", yscale="log", title=title)
    for number, depth in enumerate(np.unique(data["depth"])):
        for algorithm, style in (("sgd", "-"), ("gradient-descent", ":")):
            chosen = (data["panel"] == "ridge") & (data["depth"] == depth) & (data["algorithm"] == algorithm)
            cells = data.sel(cell=chosen)
            shares = [_share(cells.isel(cell=each)) for each in range(cells.sizes["cell"])]
            name = "SGD" if algorithm == "sgd" else "gradient descent"
            x, look = cells["ridge"].values.tolist(), {"color": f"C{number}", "linestyle": style, "marker": "o"}
            if algorithm == "sgd":
                estimate_bars(middle, x, shares, label=f"{name}, L={depth}", **look, **BARS)
            else:  # the same outcome from every start: no interval
                middle.plot(x, [share.value for share in shares], label=f"{name}, L={depth}", markersize=3, **look)
    left_rank = f"share that left rank 2 in {data.attrs['steps']:,} steps"
    middle.set(xlabel="ridge λ", ylabel=left_rank, xscale="log", ylim=(-0.03, 1.05))
    middle.set_title("width 6, η=0.4 (L=2, 3) or 0.3")
    return finished(figure)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """One row for each cell."""
    rows = []
    for number in range(data.sizes["cell"]):
        cell = data.isel(cell=number)
        rate, share = jump_rate(cell), _share(cell)
        rows.append(
            {name: cell[name].item() for name in NetworkSettings._fields}
            | {name: int(cell[name].sum()) for name in ("sat", "jumped", "rose", "diverged")}
            | {"jumps_per_step": rate.value, "low": rate.low, "high": min(rate.high, 1.0), "share_left": share.value}
        )
    return pd.DataFrame(rows)


def _same_jumps(first: xr.Dataset, second: xr.Dataset) -> Estimate:
    """Of the seeds, those in which both runs jump within one record of each other, or neither jumps."""
    jumped = [each["jumped"].values.astype(bool) for each in (first, second)]
    close = abs(first["jump_step"].values - second["jump_step"].values) <= EVERY
    agree = np.where(jumped[0] & jumped[1], close, ~(jumped[0] | jumped[1]))
    return share(agree)


def claims(data: xr.Dataset) -> list[Claim]:
    """What noise, depth and width do to the rate."""
    summary = _summary(data)
    claim = ClaimBuilder("jump-rates")

    def cell(panel: str, algorithm: str, **at: float) -> xr.Dataset:
        chosen = (data["panel"] == panel) & (data["algorithm"] == algorithm)
        for name, value in at.items():
            chosen = chosen & np.isclose(data[name], value)
        return data.sel(cell=chosen).isel(cell=0)

    fast, slow = cell("step_size", "sgd", step_size=0.5), cell("step_size", "sgd", step_size=0.35)
    wide, narrow = cell("width", "sgd", width=10), cell("width", "sgd", width=4)
    shallow = data.sel(cell=(data["depth"] == 2) & (data["algorithm"] == "sgd") & (data["ridge"] == 0.1)).isel(cell=0)
    deep = data.sel(cell=(data["depth"] >= 3) & (data["algorithm"] == "sgd"))
    rises, count = int(deep["rose"].sum()), int(deep["sat"].sum())
    sgd, gd = cell("ridge", "sgd", depth=4, ridge=0.0095), cell("ridge", "gradient-descent", depth=4, ridge=0.0095)
    return [
        claim("step-size", "Jumps come from the finite step size: they are more frequent at a larger one.",
              rate_ratio(jump_rate(fast), jump_rate(slow)), above(2), "ratio of the rates, with the widest interval",
              settings=f"L=3, width 6, lambda=0.0245, eta=0.5 against 0.35, {summary}"),
        claim("width", "The width of a wide enough network does not matter: with the same draws, narrow and wide jump "
              "together.", _same_jumps(wide, narrow), (0.9, 1), "share of the seeds with the same jump, within one "
              "record: what a start puts outside of the two directions that the data reaches decays with the ridge, "
              "and the same draws move the rest alike. Ratio of the rates "
              f"{rate_ratio(jump_rate(wide), jump_rate(narrow)).value:.3f}",
              settings=f"L=3, eta=0.4, lambda=0.0245, width 10 against 4, {summary}"),
        claim("one-way", "With three or more layers no rank ever rises.", exact_proportion(rises, max(count, 1)),
              (0, 0.01), f"share of the runs that sat at rank 2 and whose rank later rose: {rises} of {count}",
              source="jumps: one way", settings=f"all cells with L = 3, 4, 5: eta=0.2 to 0.5, "
              f"lambda=0.003 to 0.027, {summary}"),
        claim("two-layers", "With two layers jumps are not one-way: ranks rise again.",
              proportion(int(shallow["rose"].sum()), max(int(shallow["sat"].sum()), 1)), (0.5, 1),
              "share of the runs that sat whose rank later rose. A small singular value of a layer grows by eta "
              "|residual| s^(L-1) and shrinks by 2 eta lambda s: for L=2 both are linear, so there is no region that "
              "holds it", settings=f"L=2, width 6, eta=0.4, lambda=0.1, {summary}"),
        claim("depth", "In four layers SGD stays at rank 2 where gradient descent leaves it.", _share(sgd),
              (0, 0.2), f"share of SGD runs that left; of gradient descent {_share(gd).value:.0%}. Here the noise "
              "keeps the second direction alive: jumps that gradient descent cannot make need depth 3",
              settings=f"L=4, width 6, eta=0.3, lambda=0.0095, {summary}"),
    ]  # fmt: skip


EXPERIMENT = study("jump_rates", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=64)
