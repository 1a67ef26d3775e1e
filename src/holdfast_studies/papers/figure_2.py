"""Figure 2 of Xu, Gu and Fang (NeurIPS 2024): an oscillating signal grows in mean and shrinks in a small power."""

import numpy as np
import pandas as pd
import xarray as xr

from holdfast.core.statistics import Estimate, bootstrap
from holdfast_studies.kit.drawing import COLOURS, Figure, finished, new_figure
from holdfast_studies.kit.runs import Effort, Progress
from holdfast_studies.kit.study import Claim, ClaimBuilder, Conditions, above, below, exact_share, study

LEFT_OPEN = ("The paper gives neither step size nor strengths; ours are eta=0.05, s=1, M=8.",)
STEP_SIZE, BIAS, HETEROGENEITY, STEPS, POWER = 0.05, 1.0, 8.0, 100, 0.1
SUMMARY = "q <- (1 + eta xi) q, eta=0.05, xi = 1 -+ 8, 100 steps (ours)"


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The logarithm of the oscillating signal, one row for each seed; the stable one has xi = s in every step."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (effort.seeds, STEPS))
    factors = np.abs(1 + STEP_SIZE * (BIAS + HETEROGENEITY * signs))
    path = np.concatenate([np.zeros((effort.seeds, 1)), np.cumsum(np.log(factors), 1)], 1)
    return xr.Dataset({"logarithm": (("seed", "step"), path)}, {"step": np.arange(STEPS + 1)})


def _moment(step: np.ndarray, power: float) -> np.ndarray:
    """(E |1 + eta xi|^p)^t, in closed form."""
    factors = np.abs(1 + STEP_SIZE * (BIAS + HETEROGENEITY * np.array([-1.0, 1.0])))
    return np.mean(factors**power) ** step


def _mean(data: xr.Dataset, power: float) -> xr.DataArray:
    """Mean over seeds of a power of the signal."""
    return xr.apply_ufunc(np.exp, power * data["logarithm"]).mean("seed")


def draw(data: xr.Dataset) -> Figure:
    """Both moments, of the oscillating signal (exact, and over the seeds) and of the stable one."""
    step = data["step"].values
    figure, panels = new_figure(2, f"Figure 2: exact moments, and means over {data.sizes['seed']} seeds")
    for axes, power, label in zip(panels, (1.0, POWER), ("E|q|", "E|q|$^{0.1}$"), strict=True):
        mean = _mean(data, power)
        axes.plot(step, (1 + STEP_SIZE * BIAS) ** (power * step), color=COLOURS["invariant"], label="stable signal")
        axes.plot(step, _moment(step, power), color=COLOURS["spurious"], label="oscillating signal, exact")
        axes.plot(step, mean, color=COLOURS["spurious"], linestyle=":", label="oscillating signal, mean over seeds")
        axes.set(xlabel="step", ylabel=f"{label}, start = 1", yscale="log")
    return finished(figure, 1)


def numbers(data: xr.Dataset) -> pd.DataFrame:
    """Both moments at every step."""
    columns = {f"mean_of_power_{power:g}": _mean(data, power) for power in (1.0, POWER)}
    return xr.Dataset(columns).to_dataframe().reset_index()


def _falls_in_window(laws: int) -> Estimate:
    """The share of random two-point laws and step sizes in the window of section 4 for which the power falls."""
    random = np.random.default_rng(1)
    bias, power = random.uniform(0, 2, laws), random.uniform(0.05, 0.9, laws)
    width = np.exp(random.uniform(np.log(1.05), np.log(10), laws))
    # The window is `width` wide when M^2 = 64 width s (s + M) / (1 - p): a quadratic equation in M.
    slope = 64 * width * bias / (1 - power)
    heterogeneity = (slope + np.sqrt(slope**2 + 4 * slope * bias)) / 2
    low, high = 4 * bias / ((1 - power) * heterogeneity**2), 1 / (16 * (bias + heterogeneity))
    step_size = low * (high / low) ** random.uniform(0, 1, laws)
    factors = np.abs(1 + step_size * (bias + heterogeneity * np.array([[-1.0], [1.0]])))
    return exact_share((factors**power).mean(0) < 1)


def claims(data: xr.Dataset) -> list[Claim]:
    """What the paper reads off the figure, as growth factors of a single step."""
    steps = np.diff(data["logarithm"].values, axis=1)
    # A mean over runs of means over steps: the steps of a run stay together.
    mean, power = (bootstrap(np.exp(p * steps).mean(1), np.mean, samples=200) for p in (1.0, POWER))
    claim = ClaimBuilder("figure-2", "figure 2", SUMMARY, Conditions(chosen=("eta", "s", "M")))
    return [
        claim("mean", "The mean of an oscillating signal with positive bias grows.", mean, above(1.0),
              "factor of E|q| in a step: 1 + eta s, whatever the oscillation"),
        claim("window", "For eta between 4 E xi / ((1 - p) Var xi) and 1 / (16 M1) the mean of the power p falls.",
              _falls_in_window(1000), (0.99, 1.0), "share of laws with E (1 + eta xi)^p below 1, in closed form",
              source="section 4", settings="s in (0, 2), p in (0.05, 0.9), the window open by a factor of 1.05 to 10, "
              "one draw a law", conditions=Conditions(chosen=("laws of the strengths",))),
        claim("power", "The mean of its power 0.1 falls.", power, below(1.0),
              "factor of E|q|^0.1 in a step: most paths shrink, few large ones carry the mean"),
    ]  # fmt: skip


EXPERIMENT = study("figure_2", __doc__, LEFT_OPEN, simulate, draw, numbers, claims, seeds=20_000, quick_seeds=2_000)
