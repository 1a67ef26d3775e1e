"""Experiments that take no time, in a module, so that processes can import them."""

from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from holdfast.core.statistics import median
from holdfast.plots import new_figure
from holdfast.sweeps.store import DATASETS, Store
from holdfast.sweeps.store.store import FOLDER
from holdfast_studies import AS_STATED, Claim, Experiment
from holdfast_studies.runner import _key


def square(effort, progress):
    """Numbers whose square is drawn."""
    progress(1, 1)
    return xr.Dataset({"power": ("seed", np.arange(effort.seeds) ** 2.0)})


def cube(effort, progress):
    """Numbers whose cube is drawn."""
    progress(1, 1)
    return xr.Dataset({"power": ("seed", np.arange(effort.seeds) ** 3.0)})


def fail(effort, progress):
    """Raise an error."""
    raise ArithmeticError("no number is odd and even")


def draw(data):
    """A line."""
    figure, (axes,) = new_figure(1, "powers")
    axes.plot(data["power"])
    return figure


def numbers(data):
    """All of them."""
    return data.to_dataframe()


def claims(name, data):
    """One that holds."""
    measured = median(data["power"].values)
    return [Claim(f"{name}-grows", name, "It grows.", "none", measured, (-1.0, np.inf), AS_STATED, "it is positive")]


def no_claims(data):
    """None."""
    return []


EXPERIMENTS = {
    function.__name__: Experiment(
        function.__name__, "About it.", (), 8, 8, function, draw, numbers, partial(claims, function.__name__)
    )
    for function in (square, cube)
}


def saved(out: Path, name: str) -> bool:
    """Whether the data of an experiment are in the store."""
    return Store(out / FOLDER, DATASETS).has(_key(name, EXPERIMENTS[name], EXPERIMENTS[name].effort()).file)
