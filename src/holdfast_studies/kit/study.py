"""What an experiment states, and how its module becomes one.

Claims with their common fields, allowed ranges and shares of runs, settings in words, and tables of numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from holdfast.completion.settings import CompletionSettings
from holdfast.core.progress import Progress
from holdfast.core.statistics import Estimate, exact_proportion, proportion
from holdfast.sensing.settings import Settings
from holdfast_studies.claims import OUR_SETTINGS as OUR_SETTINGS
from holdfast_studies.claims import Claim as Claim
from holdfast_studies.claims import Conditions as Conditions
from holdfast_studies.claims import Position as Position
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.names import TITLES

NOT_MEASURED = Estimate(np.nan, np.nan, np.nan)
Range = tuple[float, float]
# The share of runs or draws of which a statement without exceptions is asked: few of them can confirm nine in ten, and
# some hundreds all but one in a hundred.
NINE_IN_TEN, NEARLY_ALL = (0.9, 1.0), (0.99, 1.0)
# How claims abbreviate settings.
SYMBOLS = {
    "dimension": "d",
    "batch_size": "m",
    "bias": "s",
    "heterogeneity": "M",
    "step_size": "eta",
    "init_scale": "alpha",
    "steps": "T",
    "depth": "L",
    "ridge": "lambda",
}
MEASUREMENTS = {"symmetric": "symmetric measurements", "gaussian": "independent N(0, 1) entries"}
# Runs of equal shape share their compiled programs, which take most of the time of a quick look at long experiments:
# so these use one number of seeds.
QUICK_SEEDS = 4


@dataclass(frozen=True)
class ClaimBuilder:
    """What the claims of an experiment have in common; called with what is particular to one of them.

    Attributes:
        prefix: of the ids.
        source: see `Claim`.
        settings: see `Claim`.
        conditions: see `Claim`.

    Example:
        >>> claim = ClaimBuilder("figure-3", "figure 3", "M=6")
        >>> made = claim("washed-out", "The spurious signal is washed out.", Estimate(0.01, 0.0, 0.02), below(0.05), "")
        >>> made.id, made.verdict.value
        ('figure-3-washed-out', 'holds with our choice')
    """

    prefix: str
    source: str = "Holdfast"
    settings: str = ""
    conditions: Conditions = OUR_SETTINGS

    def __call__(
        self, name: str, statement: str, measured: Estimate | float, allowed: Range, why: str, *,
        source: str | None = None, settings: str | None = None, conditions: Conditions | None = None,
        expected: Position = Position.INSIDE,
    ) -> Claim:  # fmt: skip
        """A claim of the experiment; what is given by name stands in place of the common field.

        A plain number is one that nothing random enters: it is known exactly.
        """
        return Claim(
            f"{self.prefix}-{name}" if self.prefix else name,
            self.source if source is None else source,
            statement,
            self.settings if settings is None else settings,
            measured if isinstance(measured, Estimate) else Estimate(*[float(measured)] * 3),
            allowed,
            self.conditions if conditions is None else conditions,
            why,
            expected,
        )


def below(mark: float) -> Range:
    """All numbers up to a mark."""
    return -inf, mark


def above(mark: float) -> Range:
    """All numbers from a mark on."""
    return mark, inf


def around(expected: float, tolerance: float = 0.2) -> Range:
    """From a share below what is expected to the same share above it.

    Example:
        >>> around(10.0)
        (8.0, 12.0)
    """
    return (1 - tolerance) * expected, (1 + tolerance) * expected


def share(flags: ArrayLike) -> Estimate:
    """The share of runs of which something is true, with Wilson's interval."""
    each = np.asarray(flags, bool)
    return proportion(int(each.sum()), each.size)


def exact_share(flags: ArrayLike) -> Estimate:
    """The same with the exact interval, for shares near 0 or 1; of no runs nothing is known."""
    each = np.asarray(flags, bool)
    return exact_proportion(int(each.sum()), each.size) if each.size else Estimate(np.nan, 0.0, 1.0)


def over(measured: Estimate, expected: float) -> Estimate:
    """A number in units of what is expected, which may be negative.

    Example:
        >>> over(Estimate(2.0, 1.0, 4.0), 2.0)
        Estimate(value=1.0, low=0.5, high=2.0)
    """
    return Estimate(measured.value / expected, *sorted((measured.low / expected, measured.high / expected)))


def crossing(positions: ArrayLike, values: np.ndarray) -> float:
    """Where a straight line through the means over seeds of values, (seeds, positions), is zero.

    Example:
        >>> round(crossing([1.0, 2.0, 3.0], np.array([[-1.0, 1.0, 3.0]])), 6)
        1.5
    """
    slope, offset = np.polyfit(np.asarray(positions, float), values.mean(0), 1)
    return float(-offset / slope)


def plain(value: float | str) -> str:
    """A number as claims write it.

    Example:
        >>> [plain(value) for value in (0.05, 8000, 20_000, 1e-3, 2.5e-24)]
        ['0.05', '8000', '20,000', '1e-3', '2.5e-24']
    """
    if isinstance(value, str):
        return value
    if value == 0 or abs(value) > 1e-3:
        return f"{value:,}" if value >= 10_000 else f"{value:g}"
    digits, _, exponent = f"{value:e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"


def summary(settings: Settings | CompletionSettings, *more: str) -> str:
    """Settings in words; those that are swept are left to the claims.

    Example:
        >>> summary(Settings(dimension=20, heterogeneity=(1.0, 6.0)), "ours")
        'd=20, r1=r2=1, m=8000, s=1, eta=0.05, alpha=1e-3, T=200, symmetric measurements, exact law (ours)'
        >>> summary(CompletionSettings())
        'epsilon=0.25, L=3, width=6, eta=0.4, lambda=0.0245, T=100,000'
    """
    if isinstance(settings, CompletionSettings):
        parts = _named(settings, "epsilon", "depth", "width", "step_size", "ridge", "steps")
    else:
        r1, r2 = settings.invariant_rank, settings.spurious_rank
        parts = [*_named(settings, "dimension"), f"r1=r2={r1}" if r1 == r2 else f"r1={r1}, r2={r2}"]
        finite = settings.oracle != "population"
        parts += _named(settings, *["batch_size"] * finite, "bias", "heterogeneity", "step_size", "init_scale", "steps")
        parts += [MEASUREMENTS[settings.ensemble], "exact law"] if finite else ["infinite batches"]
    return ", ".join(parts) + (f" ({', '.join(more)})" if more else "")


def _named(settings: Settings | CompletionSettings, *names: str) -> list[str]:
    values = {name: getattr(settings, name) for name in names}
    return [f"{SYMBOLS.get(name, name)}={plain(each)}" for name, each in values.items() if not isinstance(each, tuple)]


def study(
    name: str,
    source: str,
    left_open: tuple[str, ...],
    simulate: Callable[[Effort, Progress | None], xr.Dataset],
    draw: Callable[[xr.Dataset], Figure],
    numbers: Callable[[xr.Dataset], pd.DataFrame],
    claims: Callable[[xr.Dataset], list[Claim]],
    answer: Callable[[xr.Dataset], str] | None = None,
    *,
    seeds: int,
    quick_seeds: int = QUICK_SEEDS,
    packages: Mapping[str, str] | None = None,
) -> Experiment:
    """An `Experiment` under its title in `TITLES`."""
    return Experiment(
        TITLES[name], source, left_open, seeds, quick_seeds, simulate, draw, numbers, claims, answer, packages or {}
    )
