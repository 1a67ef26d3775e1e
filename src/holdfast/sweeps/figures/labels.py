"""Words on figures of sweeps: of names, values and points, and of what tells lines or panels apart."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from holdfast.sweeps.designs import POINT


class Divider(NamedTuple):
    """What divides a figure into lines or panels.

    Attributes:
        name: of an axis, or of several settings of points, in words.
        labels: of its values.
        indexers: where each value lies in an array, as `isel` takes it.
        is_number: whether its values are numbers.

    Example:
        >>> Divider("bias", ["0", "1"], [{"bias": 0}, {"bias": 1}], True).labels
        ['0', '1']
    """

    name: str
    labels: list[str]
    indexers: list[dict[str, Any]]
    is_number: bool


def dividers(values: xr.DataArray, drawn: Collection[str]) -> list[Divider]:
    """What is left of an array when some of its axes are drawn: further axes, and settings of points that are text.

    Args:
        values: over axes, or over the points of a list or a random design.
        drawn: axes or settings on the axes of the figure.

    Example:
        >>> kinds = ("point", ["hetero", "pooled", "hetero"])
        >>> values = xr.DataArray(np.ones(3), {"batching": kinds, "bias": ("point", [1.0, 2.0, 3.0])}, dims="point")
        >>> [(each.name, each.labels) for each in dividers(values, ["bias"])]
        [('batching', ['hetero', 'pooled'])]
    """
    used = {values[name].dims[0] for name in drawn}
    found: list[Divider] = []
    for dimension in map(str, values.dims):
        if used == {POINT} and dimension == POINT:
            texts = [name for name in settings_of_points(values, texts=True) if name not in drawn]
            of_points = np.array(point_labels(values, texts), object)
            labels = sorted(set(of_points.tolist()))
            groups: list[dict[str, Any]] = [{POINT: np.flatnonzero(of_points == label)} for label in labels]
            if len(labels) > 1:
                found.append(Divider(", ".join(map(in_words, texts)), labels, groups, False))
        elif dimension not in used:
            settings = settings_of_points(values) if dimension == POINT else []
            names = settings or [dimension]
            labels = point_labels(values, settings) if settings else list(map(value_text, values[dimension].values))
            numbers = values[names[0]].values
            is_number = len(names) == 1 and numbers.dtype.kind in "iuf"
            order = np.argsort(numbers, kind="stable") if is_number else np.arange(len(labels))
            indexers = [{dimension: int(position)} for position in order]
            name = ", ".join(map(in_words, names))
            found.append(Divider(name, [labels[position] for position in order], indexers, is_number))
    return found


def settings_of_points(values: xr.DataArray, *, texts: bool = False) -> list[str]:
    """Settings in which the points of a list or a random design differ; those that are no numbers, if asked for.

    Example:
        >>> values = xr.DataArray(np.ones(2), {"kind": ("point", ["a", "b"]), "bias": ("point", [1.0, 1.0])}, "point")
        >>> settings_of_points(values)
        ['kind']
    """
    names = [str(name) for name in values.coords if name != POINT and values[name].dims == (POINT,)]
    if texts:
        names = [name for name in names if values[name].dtype.kind not in "iuf"]
    return [name for name in names if len(set(values[name].values.tolist())) > 1]


def point_labels(values: xr.DataArray, settings: Iterable[str], between: str = ", ") -> list[str]:
    """The values of some settings for each point.

    Example:
        >>> values = xr.DataArray(np.ones(2), {"kind": ("point", ["a", "b"]), "bias": ("point", [1.0, 2.0])}, "point")
        >>> point_labels(values, ["kind", "bias"])
        ['a, 1', 'b, 2']
    """
    columns = [list(map(value_text, values[name].values)) for name in settings]
    return [between.join(column[number] for column in columns) for number in range(values.sizes[POINT])]


def value_text(value: Any) -> str:
    """A value as a label: three digits, and all of those of a larger number.

    Example:
        >>> value_text(0.111803), value_text(20000), value_text("hetero")
        ('0.112', '20000', 'hetero')
    """
    if np.asarray(value).dtype.kind not in "iuf":
        return str(value)
    number = float(value)
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:g}"


def in_words(name: str) -> str:
    """The name of an axis or a quantity, for labels.

    Example:
        >>> in_words("step_size")
        'step size'
    """
    return name.replace("_", " ")
