"""How the values of a setting lie on an axis of a figure: their positions, ticks and scale."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from holdfast.sweeps.designs import POINT, ScaleName
from holdfast.sweeps.figures.labels import value_text

MOST_TICKS, MOST_LOG_TICKS = 10, 30
# Settings that span more than this factor, and are not evenly spaced, are drawn on a logarithmic scale.
WIDE_SETTINGS = 100.0
# Values are evenly spaced if their distances differ by less than this factor, which forgives rounded values.
EVEN = 1.05
# Width of a character of a tick label, and height of a line, as shares of an axis.
CHARACTER, LINE = 0.02, 0.05
# The same of the labels of points, which are set apart by a space.
NAME_CHARACTER, SLANT = 0.014, 40
# Whole numbers are labelled in steps of these, times powers of ten.
WHOLE_STEPS = (1, 2, 5, 10)
# Ticks of a decade, and how many decades have them.
TICKS_OF_A_DECADE, FEW_DECADES = (1.0, 2.0, 5.0), 2.5


class Scale(NamedTuple):
    """The values of a setting on an axis of a figure.

    Attributes:
        positions: of the values.
        names: of the positions 0, 1, ..., if the values are no numbers.
        is_log: whether the axis is logarithmic.
        is_whole: whether the values are whole numbers.
        is_random: whether the values are drawn at random, so that ticks are better at others.

    Example:
        >>> Scale.of(xr.DataArray(["hetero", "pooled", "hetero"], dims="point")).positions.tolist()
        [0.0, 1.0, 0.0]
        >>> Scale.of(xr.DataArray([0.01, 0.03, 0.08], dims="point"), "log").is_log
        True
    """

    positions: np.ndarray
    names: list[str] | None
    is_log: bool
    is_whole: bool
    is_random: bool

    @classmethod
    def of(cls, coordinate: xr.DataArray, scale: ScaleName | None = None) -> "Scale":
        """Of a coordinate; the scale of a range is "linear" or "log", other values have none."""
        values, is_random = coordinate.values, scale is not None and coordinate.dims == (POINT,)
        if values.dtype.kind in "iuf":
            is_log = values.min() > 0 and (_looks_log(values) if scale is None else scale == "log")
            return cls(values.astype(float), None, bool(is_log), values.dtype.kind in "iu", is_random)
        names = list(dict.fromkeys(map(str, values)))
        return cls(np.array([names.index(str(value)) for value in values], float), names, False, True, False)

    @classmethod
    def named(cls, names: list[str]) -> "Scale":
        """Of values at 0, 1, ... with names.

        Example:
            >>> Scale.named(["first", "second"]).positions.tolist()
            [0.0, 1.0]
        """
        return cls(np.arange(len(names), dtype=float), names, False, True, False)

    def edges(self) -> np.ndarray:
        """Of the cells of a map around the positions."""
        centres = self.positions
        if len(centres) == 1:
            return centres[0] + np.array([-0.5, 0.5]) * (abs(centres[0]) or 1.0)
        at = np.log(centres) if self.is_log else centres
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
        return np.exp(edges) if self.is_log else edges

    def apply(self, axis: Any) -> None:
        """Give an axis of a figure this scale, with ticks at the values if they are few, or have names."""
        if self.names is not None:
            axis.set_ticks(range(len(self.names)), self.names)
            width = max(len(line) + 1 for name in self.names for line in name.splitlines() or [""])
            if axis.axis_name == "x" and len(self.names) * width * NAME_CHARACTER > 1:
                axis.set_ticks(range(len(self.names)), [name.replace("\n", ", ") for name in self.names])
                axis.set_tick_params(rotation=SLANT)
                for label in axis.get_ticklabels():
                    label.set(ha="right", rotation_mode="anchor")
            axis.axes.set(**{f"{axis.axis_name}lim": (-0.5, len(self.names) - 0.5)})
            return
        if self.is_log:
            axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        ticks = np.unique(self.positions)
        if not self.is_random and len(ticks) <= (MOST_LOG_TICKS if self.is_log else MOST_TICKS):
            ticks = _thinned(ticks, np.log(ticks) if self.is_log else ticks, upwards=axis.axis_name == "y")
            axis.set_ticks(ticks, list(map(value_text, ticks)))
            axis.set_minor_locator(NullLocator())
        elif self.is_log:
            few = ticks[-1] < ticks[0] * 10**FEW_DECADES
            axis.set_major_locator(LogLocator(subs=TICKS_OF_A_DECADE if few else (1.0,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: value_text(value)))
            axis.set_minor_locator(NullLocator())
        elif self.is_whole:
            axis.set_major_locator(MaxNLocator(MOST_TICKS, integer=True, steps=WHOLE_STEPS))


def _looks_log(values: np.ndarray) -> bool:
    """Whether settings are better read on a logarithmic axis: geometric, or wide and not evenly spaced."""
    ordered = np.unique(values.astype(float))
    if len(ordered) < 3:
        return False
    gaps, factors = np.diff(ordered), np.diff(np.log(ordered))
    if gaps.max() < EVEN * gaps.min():
        return False
    is_wide = gaps.max() > 2 * gaps.min() and ordered[-1] > WIDE_SETTINGS * ordered[0]
    return bool(factors.max() < EVEN * factors.min() or is_wide)


def _thinned(ticks: np.ndarray, positions: np.ndarray, *, upwards: bool) -> np.ndarray:
    """Ticks whose labels do not touch, from the first on."""
    span = np.ptp(positions) or 1.0
    room = span * (LINE if upwards else CHARACTER * (2 + max(len(value_text(tick)) for tick in ticks)))
    chosen: list[int] = []
    for number, position in enumerate(positions):
        if not chosen or position - positions[chosen[-1]] >= room:
            chosen.append(number)
    return ticks[chosen]
