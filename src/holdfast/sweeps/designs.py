"""Designs: which points a sweep visits. A grid of axes, a list of points, or random draws."""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from holdfast.core.validation import LARGEST, NUMBER, SEED, require, suggestion

Scalar = bool | int | float | str
_PLAIN = {bool, int, float, str}

ScaleName = Literal["linear", "log"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
RANGE, DRAWN = ("start", "stop", "count", "scale"), ("low", "high", "scale")
WHOLE_TO = 1e-9  # relative; a range whose ends are whole numbers has its whole values exact, not to rounding
POINT = "point"
"""The dimension of a design that is no grid."""


class Axis(NamedTuple):
    """One dimension of a design: a setting with its values, or points of several settings each.

    Attributes:
        name: of the dimension.
        coordinates: the values along it, by setting.

    Example:
        >>> Axis("step_size", {"step_size": (0.02, 0.05)}).size
        2
        >>> Axis("point", {"step_size": (0.02, 0.05), "batching": ("hetero", "pooled")}).settings(1)
        {'step_size': 0.05, 'batching': 'pooled'}
    """

    name: str
    coordinates: Mapping[str, tuple[Any, ...]]

    @property
    def size(self) -> int:
        """The number of values, or points."""
        return len(next(iter(self.coordinates.values())))

    def settings(self, position: int) -> dict[str, Any]:
        """The settings at a position."""
        return {name: values[position] for name, values in self.coordinates.items()}


def axis_length(name: str, axis: Any) -> int:
    """The number of values of an axis of a grid, without making them.

    Example:
        >>> axis_length("heterogeneity", {"start": 1.0, "stop": 9.0, "count": 10**12})
        1000000000000
        >>> axis_length("heterogeneity", [])
        Traceback (most recent call last):
        ValueError: heterogeneity must hold at least one value, got an empty list
    """
    if isinstance(axis, Mapping):
        _check_keys(name, axis, RANGE, needed=RANGE[:3])
        number = axis["count"]  # it may be larger than any that the rules of settings allow
        require(isinstance(number, int) and number > 0, f"count of {name} must be a whole number of at least 1", number)
        return number
    several = isinstance(axis, Sequence) and not isinstance(axis, str)
    contract = f"{name} must be a list of values or {{start, stop, count}}; a single value belongs to the settings"
    require(several, contract, repr(axis))
    require(len(axis) > 0, f"{name} must hold at least one value", "an empty list")
    return len(axis)


def axis_values(name: str, axis: Any, whole: bool = False) -> tuple[Scalar, ...]:
    """The values of an axis of a grid: those of a list, or evenly spaced ones.

    Args:
        name: of the setting, for errors.
        axis: a list, or start, stop, count and scale ("linear" or "log").
        whole: whether the setting takes whole numbers only; evenly spaced ones are then rounded.

    Example:
        >>> axis_values("step_size", {"start": 0.01, "stop": 1.0, "count": 3, "scale": "log"})
        (0.01, 0.1, 1.0)
        >>> axis_values("batch_size", {"start": 100, "stop": 1000, "count": 4}, whole=True)
        (100, 400, 700, 1000)
        >>> axis_values("bias", [1.0, 1.0])
        Traceback (most recent call last):
        ValueError: bias must hold each value once, got 1.0 twice
    """
    count = axis_length(name, axis)
    if not isinstance(axis, Mapping):
        values = tuple(axis)
    else:
        start, stop = _ends(name, axis, RANGE[:2])
        require(count > 1 or start == stop, f"count of {name} must be at least 2 between two different ends", count)
        shares = [number / max(count - 1, 1) for number in range(count)]
        exact = list(map(_between(start, stop, axis.get("scale", "linear")), shares))
        exact[-1] = stop  # to the last digit
        between_whole = isinstance(start, int) and isinstance(stop, int)
        values = tuple(_rounded(value, whole, between_whole) for value in exact)
    values = _uniform(name, values)
    if len(set(values)) < count:
        twice, _ = Counter(values).most_common(1)[0]
        raise ValueError(f"{name} must hold each value once, got {twice!r} twice")
    return values


def listed(points: Sequence[Mapping[str, Scalar]]) -> Axis:
    """The design of a list of points, each with a value for the same settings.

    Example:
        >>> listed([{"step_size": 0.1, "bias": 1.0}, {"step_size": 0.2, "bias": 0.0}]).coordinates
        {'step_size': (0.1, 0.2), 'bias': (1.0, 0.0)}
    """
    require(len(points) > 0, "points must hold at least one point", "none")
    names = points[0].keys()
    require(bool(names), "points must give values to at least one setting", "none")
    if not all(point.keys() == names for point in points):
        number, point = next(each for each in enumerate(points, 1) if each[1].keys() != names)
        given = f"{', '.join(point) or 'none'} in point {number}"
        raise ValueError(f"points must all give values to the same settings ({', '.join(names)}), got {given}")
    columns = {name: _uniform(name, plain([point[name] for point in points])) for name in names}
    rows = list(zip(*columns.values(), strict=True))
    if len(set(rows)) < len(rows):
        twice, _ = Counter(rows).most_common(1)[0]
        first, second, *_ = (number for number, row in enumerate(rows, 1) if row == twice)
        raise ValueError(f"points must differ from each other, got point {first} again as point {second}")
    return Axis(POINT, columns)


def plain(value: Any) -> Any:
    """A value, a list or a table of them, in which NumPy's numbers and arrays are Python's.

    Example:
        >>> import numpy as np
        >>> plain({"start": np.float64(0.5), "batching": ("hetero", "pooled")}), plain(np.arange(3))
        ({'start': 0.5, 'batching': ['hetero', 'pooled']}, [0, 1, 2])
    """
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):  # arrays and series of any package
        return value.tolist()
    if not isinstance(value, list | tuple | range):
        return value
    found = list(value)
    return found if set(map(type, found)) <= _PLAIN else list(map(plain, found))  # fast, also for a million values


def drawn(axes: Mapping[str, Any], count: int, seed: int = 0, whole: Collection[str] = ()) -> Axis:
    """The design of points drawn at random; a longer one begins with the points of a shorter one.

    Args:
        axes: name -> {low, high, scale}, from which values are drawn uniformly (on a logarithmic scale with "log"),
            or a list of values, one of which is drawn.
        count: number of points.
        seed: of the draws.
        whole: settings that take whole numbers only.

    Example:
        >>> axes = {"step_size": {"low": 0.01, "high": 0.1, "scale": "log"}, "batching": ["hetero", "pooled"]}
        >>> short, long = drawn(axes, 3), drawn(axes, 1000)
        >>> [short.settings(number) for number in range(3)] == [long.settings(number) for number in range(3)]
        True
        >>> 0.01 <= min(long.coordinates["step_size"]) < max(long.coordinates["step_size"]) <= 0.1
        True
    """
    SEED.check("seed", seed)
    laws = {name: _law(name, axis, name in whole) for name, axis in axes.items()}
    generator = random.Random(seed)  # one number for each value, point by point: a longer design only continues
    shares = [generator.random() for _ in range(count * len(laws))]
    columns = (map(law, shares[number :: len(laws)]) for number, law in enumerate(laws.values()))
    return Axis(POINT, {name: tuple(values) for name, values in zip(laws, columns, strict=True)})


def _law(name: str, axis: Any, whole: bool) -> Any:
    """A function of a number from 0 to 1: a value."""
    if not isinstance(axis, Mapping):
        choices = axis_values(name, axis)
        return lambda share: choices[int(share * len(choices))]
    _check_keys(name, axis, DRAWN, needed=DRAWN[:2])
    low, high = _ends(name, axis, DRAWN[:2])
    require(low < high, f"high of {name} must be larger than low = {low}", high)
    scale = axis.get("scale", "linear")
    if not whole:
        return _between(low, high, scale)
    for key in DRAWN[:2]:
        require(axis[key] == round(axis[key]), f"{key} of {name} must be a whole number", axis[key])
    # Each whole number from low to high owns an interval of length 1 around it.
    between = _between(low - 0.5 + 1e-12, high + 0.5 - 1e-12, scale)
    return lambda share: min(high, max(low, round(between(share))))


def _check_keys(name: str, axis: Mapping, known: Sequence[str], needed: Sequence[str]) -> None:
    complete = set(needed) <= set(axis) <= set(known)
    contract = f"{name} must be a list or have {', '.join(needed)} and perhaps scale"
    given = (key if key in known else f"{key}{suggestion(str(key), known)}" for key in axis)
    require(complete, contract, ", ".join(map(str, given)) or "nothing")


def _ends(name: str, axis: Mapping, keys: Sequence[str]) -> tuple[float, float]:
    scale = axis.get("scale", "linear")
    require(scale in SCALES, f"scale of {name} must be one of {', '.join(SCALES)}", repr(scale))
    for key in keys:
        NUMBER.check(f"{key} of {name}", axis[key])
        require(scale == "linear" or axis[key] > 0, f"{key} of {name} must be positive on a log scale", axis[key])
    return axis[keys[0]], axis[keys[1]]


def _between(start: float, stop: float, scale: ScaleName) -> Callable[[float], float]:
    """A function of a number from 0 to 1: the value so far between two ends."""
    if scale == "linear":
        width = stop - start
        return lambda share: start + width * share
    begin, length = math.log(start), math.log(stop) - math.log(start)
    return lambda share: math.exp(begin + length * share)


def _rounded(value: float, whole: bool, between_whole: bool) -> float:
    """Without the last digits that only rounding made; a whole number where it has to be one, or is one."""
    near = round(value)
    if whole or (between_whole and abs(value - near) <= WHOLE_TO * max(1.0, abs(value))):
        return near
    return float(f"{value:.12g}")


def _uniform(name: str, values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Values of one kind, with floats in place of whole numbers next to floats."""
    types = set(map(type, values))
    # This comparison is fast, also for a million values.
    if not (types <= {int, float} and all(-LARGEST < value < LARGEST for value in values)):  # type: ignore[operator]
        kinds = {_kind(name, value) for value in values}
        require(len(kinds) == 1, f"{name} must hold values of one kind", " and ".join(sorted(kinds)))
    return tuple(map(float, values)) if types == {int, float} else tuple(values)


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, str):
        return "strings"
    NUMBER.check(f"every value of {name}", value)
    return "numbers"
