"""Which part of a result a figure shows: settings that are fixed, and the axes that are left."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from holdfast.core.validation import require, suggestion
from holdfast.sweeps.designs import POINT
from holdfast.sweeps.figures.labels import in_words, value_text
from holdfast.sweeps.figures.quantities import Quantity
from holdfast.sweeps.recording import QUANTILE, SEED_DIMENSION, STEP

# How far beyond its ends an axis may be fixed, as a share of its largest value: values are saved in single precision.
ROUNDING = 1e-6


class ResultSlice(NamedTuple):
    """A part of a result.

    Attributes:
        values: axis or setting -> the value at which it is fixed.
        indexers: dimension -> the positions that are drawn, as `isel` takes them.
        in_words: what is fixed.

    Example:
        >>> ResultSlice({"bias": 1.0}, {"bias": 1}, "bias 1").apply(xr.DataArray([0.0, 5.0], dims="bias")).item()
        5.0
    """

    values: dict[str, Any]
    indexers: dict[str, Any]
    in_words: str

    def apply(self, array: xr.DataArray) -> xr.DataArray:
        """This part of an array that has some of the dimensions."""
        return array.isel({name: place for name, place in self.indexers.items() if name in array.dims})


def select(found: Quantity, drawn: Sequence[str], at: Mapping[str, Any]) -> ResultSlice:
    """What is drawn of a quantity over some axes, in the order of their values.

    Steps that are neither drawn nor fixed are fixed at the last one, and so are axes that have one value only.

    Args:
        found: over axes and seeds.
        drawn: axes of the figure, or settings of points.
        at: axis or setting -> the value at which it is fixed; of numbers the nearest one is taken.

    Example:
        >>> from holdfast.sweeps.figures.quantities import find_quantity
        >>> axes = {"bias": [0.0, 1.0], "step": [0, 10, 20]}
        >>> data = xr.Dataset({"error": (("bias", "step", "seed"), np.ones((2, 3, 1)))}, axes)
        >>> select(find_quantity(data, "error"), ["bias"], {}).in_words
        'step 20 (the last)'
    """
    values = found.values
    _check(found, drawn, at)
    indexers: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for name, value in at.items():
        dimension = str(values[name].dims[0]) if name in values.coords else name
        labels = values[name].values
        # Of points, all that have the value are left, and of seeds the dimension, over which the summary is.
        among = indexers.get(POINT, np.arange(len(labels))) if dimension == POINT else np.arange(len(labels))
        nearest = _nearest(name, labels[among], value)
        where = among[labels[among] == nearest]
        indexers[dimension] = where if dimension in (POINT, SEED_DIMENSION) and name != POINT else int(where[0])
        fixed[name] = nearest
    words = [f"{in_words(name)} {value_text(value)}" for name, value in fixed.items()]
    for dimension in map(str, values.dims):
        labels = values[dimension].values if dimension in values.coords else np.arange(values.sizes[dimension])
        if dimension in (*indexers, SEED_DIMENSION, QUANTILE):
            continue
        if dimension in drawn:
            indexers[dimension] = np.argsort(labels, kind="stable") if labels.dtype.kind in "iuf" else slice(None)
        elif dimension == STEP:
            indexers[STEP], fixed[STEP] = len(labels) - 1, labels[-1]
            words.append(f"{STEP} {value_text(labels[-1])} (the last)")
        elif len(labels) == 1 and all(values[name].dims != (dimension,) for name in drawn):
            indexers[dimension] = 0
            if dimension in found.finished.dims:
                words.append(f"{in_words(dimension)} {value_text(labels[0])}")
    return ResultSlice(fixed, indexers, ", ".join(words))


def _check(found: Quantity, drawn: Sequence[str], at: Mapping[str, Any]) -> None:
    """That axes and settings exist, each drawn or fixed and not both."""
    values = found.values
    known = [str(name) for name in values.coords if values[name].ndim == 1 and name not in (SEED_DIMENSION, QUANTILE)]
    why = ""
    if STEP in (*drawn, *at) and STEP not in known:
        why = '; steps are recorded by record = "trajectories" or "quantiles"'
        why = "; it has one value for each run" if found.has_steps else why
    for name in drawn:
        contract = f"x and y must be axes of {found.name} ({', '.join(known)}){why}"
        require(name in known, contract, f"{name!r}{suggestion(name, known)}")
        dimension = values[name].dims[0]
        both = name in at or dimension in at
        require(not both, "x and y must be axes that at (--at) does not fix", f"{name!r} in both")
    require(len(set(drawn)) == len(drawn), "x and y must be different axes", repr(drawn[0]))
    seeds = [SEED_DIMENSION] if SEED_DIMENSION in values.dims else []
    for name in at:
        contract = f"at must name axes of {found.name} ({', '.join([*known, *seeds])}){why}"
        require(name in (*known, *seeds), contract, f"{name!r}{suggestion(name, known)}")


def _nearest(name: str, labels: np.ndarray, value: Any) -> Any:
    """The label at which an axis is fixed."""
    if labels.dtype.kind in "iuf" and isinstance(value, int | float):
        contract = f"{name} must be fixed between {value_text(labels.min())} and {value_text(labels.max())}"
        rounding = ROUNDING * np.abs(labels).max()
        require(bool(labels.min() - rounding <= value <= labels.max() + rounding), contract, f"{value:g}")
        return labels[np.abs(labels - value).argmin()]
    texts = {str(label): label for label in labels.tolist()}
    contract = f"{name} must be fixed at one of {', '.join(map(value_text, dict.fromkeys(labels.tolist())))}"
    require(str(value) in texts, contract, repr(value))
    return texts[str(value)]
