"""Theorem 8 of Xu, Gu and Fang (NeurIPS 2024): an invariant signal with condition number above one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.progress import Progress, stages
from holdfast.core.statistics import exact_proportion, median, proportion
from holdfast.plots import band, legend_below, new_figure
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast.theory.advice import learning_time
from holdfast_studies.claims import OUR_SETTINGS, Claim, Position
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.names import TITLES
from holdfast_studies.papers.conditions import theorem_conditions

LEFT_OPEN = (
    "No experiment is reported for condition numbers above one; all settings are ours.",
    "Each direction is judged by itself: ||P - A*|| hardly sees a small eigenvalue that is missing. T is the time that "
    "theory needs for 95 % of the smallest eigenvalue, times 1.25; T = 900 and 1600 are reported too.",
    "What o(1) is: each direction learned within 20 %, and a spurious share below 0.05.",
    "We first asked for times in proportion to 1 / eigenvalue; the fitted power, near -0.86, missed the range -1.1 to "
    "-0.9 that we had set. The claim now compares with the formula that has the logarithm of the goal.",
)
SEEDS, QUICK_SEEDS = 128, 12
STEP_SIZE, INIT_SCALE = 0.05, 1e-3
CONDITION_NUMBERS = (1.0, 2.0, 4.0, 8.0)
RANK = 3
# A quarter more than the theoretical time, for the sampling error.
MARGIN, EVERY = 1.25, 10
# Times at which the smallest eigenvalue of kappa = 8 is reported: too early, and late enough for most runs.
EARLY, LATER = 900, 1600
# With 128 seeds the later one was undecided, from 0.75 to 0.90: four times as many, fresh ones, tell it from 0.8.
MORE, ASIDE = 4, 10_000
NEEDED = {kappa: learning_time(STEP_SIZE, INIT_SCALE, 1 / kappa, level=0.95) for kappa in CONDITION_NUMBERS}
LENGTHS = {kappa: EVERY * round(MARGIN * steps / EVERY) for kappa, steps in NEEDED.items()}
SETTINGS = Settings(
    dimension=40,
    invariant_rank=RANK,
    spurious_rank=2,
    batch_size=20_000,
    heterogeneity=8.0,
    step_size=STEP_SIZE,
    init_scale=INIT_SCALE,
    steps=max(LATER, *LENGTHS.values()),
    every=EVERY,
    condition_number=CONDITION_NUMBERS,
)
SUMMARY = "d=40, r1=3, r2=2, m=20000, s=1, M=8, eta=0.05, alpha=1e-3, symmetric measurements, exact law (ours)"
PLOTTED = 4.0
LEARNED, WASHED_OUT, PROMISED = (0.8, 1.2), 0.05, 0.99


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """Condition numbers 1 to 8; eigenvalues fall geometrically from 1 to 1/kappa."""
    first, second = stages(progress, [len(CONDITION_NUMBERS), 0 if effort.quick else MORE])
    data = run_simulation(replace(SETTINGS, seeds=effort.seeds), progress=first).data
    many = effort.seeds if effort.quick else MORE * effort.seeds
    slow = replace(SETTINGS, condition_number=CONDITION_NUMBERS[-1], steps=LATER, every=LATER, seed=ASIDE, seeds=many)
    last = run_simulation(slow, progress=second).data["singular_values"].isel(step=-1, direction=-1, drop=True)
    found = data[["distance", "spurious", "singular_values"]]
    return found.assign(smallest=last.rename(seed="run"))


def _goals(condition_number: float) -> np.ndarray:
    """The limits of the singular values of R: square roots of the eigenvalues of A*."""
    return condition_number ** (-np.linspace(0, 1, RANK) / 2)


def learned_shares(data: xr.Dataset, condition_number: float) -> xr.DataArray:
    """The share of each eigenvalue of A* that has been learned: squares of singular values of R over their goals."""
    goals = xr.DataArray(_goals(condition_number), dims="direction")
    return (data["singular_values"].sel(condition_number=condition_number) / goals) ** 2


def _learned_at(data: xr.Dataset, condition_number: float) -> xr.DataArray:
    """The step at which each singular value of R passes half its goal."""
    return data["step"].where(learned_shares(data, condition_number) > 1 / 4).min("step")


def draw(data: xr.Dataset) -> Figure:
    """The final error against the condition number, and the order in which directions are learned."""
    figure, (left, right) = new_figure(2, f"Theorem 8: medians over {data.sizes['seed']} seeds, bands 10 % to 90 %")
    ends = [learned_shares(data, kappa).sel(step=LENGTHS[kappa]).drop_vars("step") for kappa in CONDITION_NUMBERS]
    final = xr.concat(ends, "condition_number").min("direction")
    band(left, final, "condition_number", "least learned direction, share of its eigenvalue", marker="o")
    left.axhline(LEARNED[0], color="0.3", linestyle=":", label="mark 0.8")
    left.set(xlabel="condition number of A*", ylabel="share at the end", title="Recovery, T in proportion to theory")
    left.set_ylim(bottom=0)
    values = data["singular_values"].sel(condition_number=PLOTTED)
    for number, goal in enumerate(_goals(PLOTTED)):
        band(right, values.isel(direction=number) / goal, "step", f"eigenvalue {goal**2:.2g}")
    right.set(xlabel="step", ylabel="singular value of R, share of its goal", title="Order of learning, kappa = 4")
    for axes in (left, right):
        legend_below(axes, 3)
    return figure


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """For every seed: the share of each direction at the end of its run, and the step at which it was learned."""
    shares = [learned_shares(data, kappa).sel(step=LENGTHS[kappa]).drop_vars("step") for kappa in CONDITION_NUMBERS]
    learned = [_learned_at(data, kappa) for kappa in CONDITION_NUMBERS]
    parts = {"final_share": shares, "learned_at": learned}
    along = data["condition_number"]
    return xr.Dataset({name: xr.concat(each, along) for name, each in parts.items()}).to_dataframe().reset_index()


def claims(data: xr.Dataset) -> list[Claim]:
    """Every direction at every condition number; large directions first, in times that theory gives."""
    chosen = ("all settings", "marks of o(1)")
    conditions = theorem_conditions(SETTINGS, theorem=8, chosen=chosen)
    found = []
    for kappa in CONDITION_NUMBERS:
        steps = LENGTHS[kappa]
        last = learned_shares(data, kappa).sel(step=steps)
        spurious = data["spurious"].sel(condition_number=kappa, step=steps)
        settings = f"kappa={kappa:g}, T={steps}, {SUMMARY}"
        directions = ((last > LEARNED[0]) & (last < LEARNED[1])).all("direction")
        both = directions & (spurious < WASHED_OUT)
        found += [
            Claim(f"theorem-8-directions-{kappa:g}", "Theorem 8",
                  f"For condition number {kappa:g} every direction of A* is learned.",
                  settings, median(last.min("direction")), (LEARNED[0], np.inf), conditions,
                  f"share of its eigenvalue that the least learned direction has; theory needs {NEEDED[kappa]} steps "
                  "for 95 % of the smallest one"),
            Claim(f"theorem-8-probability-{kappa:g}", "Theorem 8", "HeteroSGD ends at A* with probability over 0.99 "
                  f"(condition number {kappa:g}).", settings, exact_proportion(int(both.sum()), both.size),
                  (PROMISED, 1.0), conditions,
                  f"share of runs with every direction within 20 % and a spurious share below {WASHED_OUT}; the "
                  f"directions alone: {float(directions.mean()):.1%}",
                  expected=Position.OUTSIDE),
        ]  # fmt: skip
    worst = learned_shares(data, CONDITION_NUMBERS[-1]).isel(direction=-1)
    found += [
        Claim(f"theorem-8-smallest-at-{steps}", "Theorem 8",
              f"After {steps} steps the smallest eigenvalue of condition number 8 is learned.",
              f"kappa=8, T={steps}, {SUMMARY}", median(shares),
              (LEARNED[0], np.inf), conditions,
              f"median share of its eigenvalue over {shares.size} runs; the distance to A*, "
              f"{float(data['distance'].sel(condition_number=8.0, step=steps).median()):.2f}, would not show a missing "
              "one: the eigenvalue is 0.125",
              expected=expected)
        for steps, shares, expected in (
            (EARLY, worst.sel(step=EARLY), Position.OUTSIDE),
            (LATER, np.square(data["smallest"] / _goals(CONDITION_NUMBERS[-1])[-1]), Position.INSIDE),
        )
    ]  # fmt: skip
    learned = _learned_at(data, PLOTTED).transpose("seed", "direction").values
    ordered = np.all(np.diff(learned, axis=1) > 0, axis=1)
    eigenvalues = _goals(PLOTTED) ** 2
    predicted = np.log(_goals(PLOTTED) / 2 / INIT_SCALE) / np.log1p(STEP_SIZE * eigenvalues)
    found += [
        Claim("theorem-8-order", "Holdfast", "Directions are learned from the largest eigenvalue down.",
              f"kappa=4, {SUMMARY}", proportion(int(ordered.sum()), len(ordered)), (0.9, 1.0), OUR_SETTINGS,
              "share of seeds in which each direction passes half its goal before the next"),
        Claim("theorem-8-times", "Holdfast", "A direction with eigenvalue l grows by 1 + eta l a step.",
              f"kappa=4, {SUMMARY}", median(learned[:, -1] / predicted[-1]), (0.9, 1.1), OUR_SETTINGS,
              "time until the smallest one passes half its goal, over log(goal / 2 alpha) / log(1 + eta l)"),
    ]  # fmt: skip
    return found


EXPERIMENT = Experiment(TITLES["theorem_8"], __doc__, LEFT_OPEN, SEEDS, QUICK_SEEDS, simulate, draw, numbers, claims)
