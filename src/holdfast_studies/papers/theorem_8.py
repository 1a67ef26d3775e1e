"""Theorem 8 of Xu, Gu and Fang (NeurIPS 2024): an invariant signal with condition number above one."""

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.statistics import median
from holdfast.theory.finite_time import learning_time
from holdfast_studies.kit import INIT_SCALE, STEP_SIZE
from holdfast_studies.kit.drawing import Figure, band, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress, Settings, replace, run_simulation, stages
from holdfast_studies.kit.study import OUR_SETTINGS, Claim, ClaimBuilder, Position, above, exact_share, share, study
from holdfast_studies.papers.conditions import theorem_conditions

LEFT_OPEN = (
    "No experiment is reported for condition numbers above one; all settings are ours.",
    "Each direction is judged by itself: ||P - A*|| hardly sees a small eigenvalue that is missing. T is the time that "
    "theory needs for 95 % of the smallest eigenvalue, times 1.25; T = 900 and 1600 are reported too.",
    "What o(1) is: each direction learned within 20 %, and a spurious share below 0.05.",
    "We first asked for times in proportion to 1 / eigenvalue; the fitted power, near -0.86, missed the range -1.1 to "
    "-0.9 that we had set. The claim now compares with the formula that has the logarithm of the goal.",
)
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
    dimension=40, invariant_rank=RANK, spurious_rank=2, batch_size=20_000, heterogeneity=8.0,
    steps=max(LATER, *LENGTHS.values()), every=EVERY, condition_number=CONDITION_NUMBERS,
)  # fmt: skip
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


def _final_shares(data: xr.Dataset) -> xr.DataArray:
    """The shares at the end of a run, whose length is that of its condition number."""
    ends = [learned_shares(data, kappa).sel(step=steps).drop_vars("step") for kappa, steps in LENGTHS.items()]
    return xr.concat(ends, data["condition_number"])


def _learned_at(data: xr.Dataset, condition_number: float) -> xr.DataArray:
    """The step at which each singular value of R passes half its goal."""
    return data["step"].where(learned_shares(data, condition_number) > 1 / 4).min("step")


def draw(data: xr.Dataset) -> Figure:
    """The final error against the condition number, and the order in which directions are learned."""
    figure, (left, right) = new_figure(2, f"Theorem 8: medians over {data.sizes['seed']} seeds, bands 10 % to 90 %")
    band(
        left,
        _final_shares(data).min("direction"),
        "condition_number",
        "least learned direction, share of its eigenvalue",
        marker="o",
    )
    left.axhline(LEARNED[0], color="0.3", linestyle=":", label="mark 0.8")
    left.set(xlabel="condition number of A*", ylabel="share at the end", title="Recovery, T in proportion to theory")
    left.set_ylim(bottom=0)
    values = data["singular_values"].sel(condition_number=PLOTTED)
    for number, goal in enumerate(_goals(PLOTTED)):
        band(right, values.isel(direction=number) / goal, "step", f"eigenvalue {goal**2:.2g}")
    right.set(xlabel="step", ylabel="singular value of R, share of its goal", title="Order of learning, kappa = 4")
    return finished(figure, 3)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """For every seed: the share of each direction at the end of its run, and the step at which it was learned."""
    learned = xr.concat([_learned_at(data, kappa) for kappa in CONDITION_NUMBERS], data["condition_number"])
    return xr.Dataset({"final_share": _final_shares(data), "learned_at": learned}).to_dataframe().reset_index()


def claims(data: xr.Dataset) -> list[Claim]:
    """Every direction at every condition number; large directions first, in times that theory gives."""
    chosen = ("all settings", "marks of o(1)")
    conditions = theorem_conditions(SETTINGS, theorem=8, chosen=chosen)
    claim = ClaimBuilder("theorem-8", "Theorem 8", f"kappa=4, {SUMMARY}", conditions)
    found = []
    for kappa in CONDITION_NUMBERS:
        steps = LENGTHS[kappa]
        last = learned_shares(data, kappa).sel(step=steps)
        spurious = data["spurious"].sel(condition_number=kappa, step=steps)
        settings = f"kappa={kappa:g}, T={steps}, {SUMMARY}"
        directions = ((last > LEARNED[0]) & (last < LEARNED[1])).all("direction")
        both = directions & (spurious < WASHED_OUT)
        found += [
            claim(f"directions-{kappa:g}", f"For condition number {kappa:g} every direction of A* is learned.",
                  median(last.min("direction")), above(LEARNED[0]), "share of its eigenvalue that the least learned "
                  f"direction has; theory needs {NEEDED[kappa]} steps for 95 % of the smallest one", settings=settings),
            claim(f"probability-{kappa:g}", "HeteroSGD ends at A* with probability over 0.99 (condition number "
                  f"{kappa:g}).", exact_share(both), (PROMISED, 1.0), "share of runs with every direction within 20 % "
                  f"and a spurious share below {WASHED_OUT}; the directions alone: {float(directions.mean()):.1%}",
                  settings=settings, expected=Position.OUTSIDE),
        ]  # fmt: skip
    worst = learned_shares(data, CONDITION_NUMBERS[-1]).isel(direction=-1)
    found += [
        claim(f"smallest-at-{steps}", f"After {steps} steps the smallest eigenvalue of condition number 8 is learned.",
              median(shares), above(LEARNED[0]), f"median share of its eigenvalue over {shares.size} runs; the "
              f"distance to A*, {float(data['distance'].sel(condition_number=8.0, step=steps).median()):.2f}, would "
              "not show a missing one: the eigenvalue is 0.125", settings=f"kappa=8, T={steps}, {SUMMARY}",
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
        claim("order", "Directions are learned from the largest eigenvalue down.", share(ordered), (0.9, 1.0),
              "share of seeds in which each direction passes half its goal before the next", source="Holdfast",
              conditions=OUR_SETTINGS),
        claim("times", "A direction with eigenvalue l grows by 1 + eta l a step.",
              median(learned[:, -1] / predicted[-1]), (0.9, 1.1), "time until the smallest one passes half its goal, "
              "over log(goal / 2 alpha) / log(1 + eta l)", source="Holdfast", conditions=OUR_SETTINGS),
    ]  # fmt: skip
    return found


EXPERIMENT = study("theorem_8", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=128, quick_seeds=12)
