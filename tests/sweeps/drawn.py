"""Results made by hand, and what can be read off a figure."""

import numpy as np
import xarray as xr

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.programs import QUANTILE, QUANTILES, reduced

STEPS = np.arange(0, 50, 10)
# Of six runs, the signal grows tenfold a record; three of them diverge on the way.
DIVERGED_AT = np.array([-1, -1, -1, 15, 30, 30])
SIGNAL = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[:, None] * 10.0 ** np.arange(len(STEPS))


def results(diverged_at=DIVERGED_AT):
    """The same runs, recorded as trajectories and as quantiles."""
    trajectories = xr.Dataset(
        {"spurious": (("bias", "seed", "step"), SIGNAL[None]), "diverged_at": (("bias", "seed"), diverged_at[None])},
        {"bias": [1.0], "step": STEPS},
    )
    recorded = CellResult({"spurious": SIGNAL, "diverged_at": diverged_at}, {"spurious": ("step",)}, {"step": STEPS})
    found = reduced(recorded, "quantiles").values
    dimensions = {"spurious": ("bias", QUANTILE, "step"), "diverged": ("bias", "step")}
    quantiles = xr.Dataset(
        {name: (dimensions[name], values) for name, values in found.items()},
        {"bias": [1.0], "step": STEPS, QUANTILE: list(QUANTILES)},
        {"seeds": 6},
    )
    return trajectories, quantiles


def legend_of(axes):
    legend = axes.get_legend()
    return legend.get_title().get_text(), [text.get_text() for text in legend.get_texts()]


def named_marks(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]
