"""Figures: one style, curves with bands over seeds."""

from holdfast.plots.bands import BAND, COLOURS, band, legend_below, new_figure, save, style

__all__ = ["BAND", "COLOURS", "band", "legend_below", "new_figure", "save", "style"]
