"""What simulations of experiments share: progress, and named runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replace
from typing import Any, TypeVar

import pandas as pd
import xarray as xr

from holdfast.core.progress import Progress as Progress
from holdfast.core.progress import stages as stages
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


def simulate_each(
    settings: Mapping[Any, Settings],
    dimension: str,
    effort: Effort,
    progress: Progress | None,
    signals: Sequence[str] | None = None,
) -> xr.Dataset:
    """One simulation for each of some named settings, along a dimension with their names.

    Args:
        settings: by name; they get the seeds of the effort.
        dimension: that has the names.
        effort: seeds of each simulation.
        progress: of all of them together.
        signals: keep these at the last step; None: keep everything.
    """
    runs = []
    for each, report in zip(settings.values(), stages(progress, [1000] * len(settings)), strict=True):
        data = run_simulation(replace(each, seeds=effort.seeds), progress=report).data
        runs.append(data if signals is None else data[list(signals)].isel(step=-1, drop=True))
    return xr.concat(runs, pd.Index(list(settings), name=dimension))
