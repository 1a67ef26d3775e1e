"""Figures: one style, curves with bands over seeds."""

from holdfast.plots.bands import BAND, COLOURS, band, legend_below, new_figure, save, style
from holdfast.plots.planes import draw_plane

__all__ = ["BAND", "COLOURS", "band", "draw_plane", "legend_below", "new_figure", "save", "style"]
