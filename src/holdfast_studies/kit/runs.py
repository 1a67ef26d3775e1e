"""What simulations of experiments share: progress, and named runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike

from holdfast.core.progress import Progress as Progress
from holdfast.core.progress import stages as stages
from holdfast.core.run import Records
from holdfast.sensing.settings import Settings as Settings
from holdfast.sensing.simulation import simulate as run_simulation
from holdfast_studies.experiment import Effort as Effort

Item = TypeVar("Item")


def tracked(items: Iterable[Item], progress: Progress | None, total: int | None = None) -> Iterator[Item]:
    """The items; progress is reported as each of them has been worked on.

    Args:
        items: to work on.
        progress: called with (done, total), or None.
        total: how many there are; by default the length of the items.

    Example:
        >>> for _ in tracked("ab", lambda done, total: print(done, "of", total)):
        ...     pass
        1 of 2
        2 of 2
    """
    if total is None:
        items = list(items)
        total = len(items)
    for done, item in enumerate(items, 1):
        yield item
        if progress is not None:
            progress(done, total)


def over_seeds(
    given: Mapping[str, ArrayLike], seeds: int, first_seed: int, dtype: DTypeLike = float
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The parameters of runs that have each setting with all seeds, (settings, seeds) flattened, and their seeds.

    Args:
        given: parameters by name, numbers or equally long arrays.
        seeds: of each setting.
        first_seed: of each setting; the others follow it.
        dtype: of the parameters.

    Example:
        >>> parameters, numbers = over_seeds({"step_size": 0.5, "heterogeneity": [1, 6]}, 2, first_seed=10)
        >>> parameters["heterogeneity"].tolist(), numbers.tolist()
        ([1.0, 1.0, 6.0, 6.0], [10, 11, 10, 11])
    """
    columns = np.broadcast_arrays(*map(np.atleast_1d, given.values()))
    parameters = {name: np.repeat(each, seeds).astype(dtype) for name, each in zip(given, columns, strict=True)}
    return parameters, np.tile(np.arange(first_seed, first_seed + seeds), len(columns[0]))


def at_end(records: Records, *shape: int) -> dict[str, np.ndarray]:
    """What was recorded at the last step, and which runs diverged: by name, in the shape of settings and seeds.

    Args:
        records: of runs in the order of `over_seeds`.
        shape: of the settings, and the number of seeds.
    """
    last = {name: values[:, -1] for name, values in records.values.items()} | {"diverged": records.diverged_at >= 0}
    return {name: values.reshape(shape) for name, values in last.items()}


def simulate_each(
    settings: Mapping[Any, Settings],
    dimension: str,
    seeds: int,
    progress: Progress | None,
    *,
    signals: Sequence[str] | None = None,
    records: int | None = None,
) -> xr.Dataset:
    """One simulation for each of some named settings, along a dimension with their names.

    Args:
        settings: by name.
        dimension: that has the names.
        seeds: of each simulation.
        progress: of all of them together.
        signals: keep these at the last step; None: keep everything.
        records: keep the start and so many records at equal parts of each run, along the dimension `share`, because
            runs differ in their steps; None: records are those of the settings, along the dimension `step`.
    """
    runs = []
    for each, report in zip(settings.values(), stages(progress, [run.steps for run in settings.values()]), strict=True):
        data = run_simulation(replace(each, seeds=seeds), progress=report).data
        if signals is not None:
            data = data[list(signals)].isel(step=-1, drop=True)
        if records is not None:
            data = data.sel(step=np.linspace(0, each.steps, records + 1), method="nearest")
            data = data.assign_coords(step=np.linspace(0, 1, records + 1)).rename(step="share")
        runs.append(data)
    return xr.concat(runs, pd.Index(list(settings), name=dimension))
