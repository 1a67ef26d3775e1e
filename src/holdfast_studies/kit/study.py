"""An experiment of this package, from the functions of its module."""

from collections.abc import Callable, Mapping

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.progress import Progress
from holdfast.plots import BAND
from holdfast_studies.claims import Claim
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.names import TITLES

# Runs of equal shape share their compiled programs, which take most of the time of a quick look at long experiments:
# so these use one number of seeds.
QUICK_SEEDS = 4


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


def columns(*names: str) -> Callable[[xr.Dataset], pd.DataFrame]:
    """The numbers of an experiment: some variables of its data, or all of them, one row for each position.

    Example:
        >>> columns("b")(xr.Dataset({"a": 1.0, "b": ("seed", [2.0, 3.0])})).columns.tolist()
        ['seed', 'b']
    """
    return lambda data: (data[list(names)] if names else data).to_dataframe().reset_index()


def quantiles(*names: str) -> Callable[[xr.Dataset], pd.DataFrame]:
    """The 10 %, 50 % and 90 % quantiles over seeds of some variables, or of all: one row for each and each position.

    Example:
        >>> quantiles()(xr.Dataset({"b": ("seed", [1.0, 2.0, 3.0])}))["b"].tolist()
        [1.2, 2.0, 2.8]
    """
    return lambda data: columns()((data[list(names)] if names else data).quantile(BAND, "seed"))
