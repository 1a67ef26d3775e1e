"""Figures of sweeps whose results are known, since they are made by hand."""

import itertools

import numpy as np
import pytest
import xarray as xr

from holdfast.execution.recorded import Recorded
from holdfast.sensing.outcome import Code
from holdfast.sweeps import plot_sweep
from holdfast.sweeps.recording import QUANTILE, QUANTILES, reduced

STEPS = np.arange(0, 50, 10)
# Of six runs, the signal grows tenfold a record; three of them diverge on the way.
DIVERGED_AT = np.array([-1, -1, -1, 15, 30, 30])
SIGNAL = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[:, None] * 10.0 ** np.arange(len(STEPS))


def results():
    """The same runs, recorded as trajectories and as quantiles."""
    trajectories = xr.Dataset(
        {"spurious": (("bias", "seed", "step"), SIGNAL[None]), "diverged_at": (("bias", "seed"), DIVERGED_AT[None])},
        {"bias": [1.0], "step": STEPS},
    )
    recorded = Recorded({"spurious": SIGNAL, "diverged_at": DIVERGED_AT}, {"spurious": ("step",)}, {"step": STEPS})
    found = reduced(recorded, "quantiles").values
    dimensions = {"spurious": ("bias", QUANTILE, "step"), "diverged": ("bias", "step")}
    quantiles = xr.Dataset(
        {name: (dimensions[name], values) for name, values in found.items()},
        {"bias": [1.0], "step": STEPS, QUANTILE: list(QUANTILES)},
        {"seeds": 6},
    )
    return trajectories, quantiles


def test_what_was_recorded_does_not_change_the_figure():
    axes = [plot_sweep(data, "step", quantity="spurious").axes[0] for data in results()]
    survivors = [(DIVERGED_AT < 0) | (step < DIVERGED_AT) for step in STEPS]
    left = [np.median(SIGNAL[survivors[k], k]) for k in range(len(STEPS))]
    for each in axes:
        np.testing.assert_allclose(each.lines[0].get_ydata(), left)
        assert "left out: 3 of 6 runs that diverged, each from the step on" in each.get_title("left")
    for data in results():
        held = plot_sweep(data, "bias", quantity="spurious", at={"step": 20}).axes[0]
        np.testing.assert_allclose(held.lines[0].get_ydata(), left[2])
        assert "left out: 1 of 6 runs" in held.get_title("left")
        diverged = plot_sweep(data, "step", quantity="diverged").axes[0]
        np.testing.assert_allclose(diverged.lines[0].get_ydata(), [0, 0, 1 / 6, 1 / 2, 1 / 2])


def test_an_axis_is_held_at_a_value_that_the_title_names_and_never_beyond_its_ends():
    data = xr.Dataset({"spurious": (("bias", "overlap", "seed"), np.ones((2, 2, 3)))}, {"bias": [0.0, 1.0]})
    data = data.assign_coords(overlap=[0.1, 0.3])
    assert "overlap 0.3" in plot_sweep(data, "bias", at={"overlap": 0.25}).axes[0].get_title("left").splitlines()
    with pytest.raises(ValueError, match=r"overlap must be held between 0\.1 and 0\.3, got 5"):
        plot_sweep(data, "bias", at={"overlap": 5.0})


def test_a_point_without_neighbours_has_a_bar_and_what_is_not_finished_is_counted():
    signal = np.arange(1.0, 6.0) * np.ones((4, 1))
    finished = np.array([[True], [False], [True], [True]]) & np.ones((4, 5), bool)
    data = xr.Dataset(
        {"spurious": (("bias", "seed"), signal), "finished": (("bias", "seed"), finished)},
        {"bias": [1.0, 2.0, 3.0, 4.0]},
    )
    axes = plot_sweep(data, "bias").axes[0]
    (bars,) = axes.containers
    (segment,) = bars.lines[2][0].get_segments()  # of the first value alone: the others are neighbours
    np.testing.assert_allclose(segment, [[1.0, 1.4], [1.0, 4.6]])  # 10 % and 90 % of 1, ..., 5
    assert "not finished: 5 of 20 runs" in axes.get_title("left")


def test_shares_are_drawn_from_0_to_1():
    outcome = np.full((2, 2, 4), int(Code.FINISHED))
    outcome[1, 1, :2] = int(Code.DIVERGED)
    data = xr.Dataset({"outcome": (("a", "b", "seed"), outcome)}, {"a": [1.0, 2.0], "b": [1.0, 2.0]})
    figure = plot_sweep(data, "a", "b", quantity="diverged")
    (mesh,) = figure.axes[0].collections
    assert mesh.get_clim() == (0.0, 1.0)
    np.testing.assert_allclose(mesh.get_array(), [[0, 0], [0, 0.5]])
    with pytest.raises(ValueError, match="quantity must be one of outcome, diverged, converged, got 'foo'"):
        plot_sweep(data, "a", quantity="foo")


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (np.geomspace(0.01, 1.0, 9), "log"),
        ([1.0, 2.0, 4.0], "log"),
        ([0.05, 0.1, 0.15], "linear"),
        (np.linspace(0.01, 10.0, 9), "linear"),
        ([0.01, 0.5, 5.0, 30.0], "log"),
    ],
)
def test_geometric_values_have_a_logarithmic_axis_with_labels_that_do_not_touch(values, scale):
    data = xr.Dataset({"error": (("rate", "seed"), np.ones((len(values), 2)))}, {"rate": values})
    figure = plot_sweep(data, "rate")
    (axes,) = figure.axes
    assert axes.get_xscale() == scale
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels(which="both") if label.get_text()]
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_points_of_a_design_are_drawn_by_their_numbers():
    data = xr.Dataset({"error": (("point", "seed"), [[1.0], [4.0]])}, {"bias": ("point", [0.3, 0.1])})
    for x, positions in (("point", [0, 1]), ("bias", [0.3, 0.1])):
        (drawn,) = plot_sweep(data, x).axes[0].containers
        np.testing.assert_allclose(drawn.lines[0].get_xdata(), positions)


def test_a_name_without_a_meaning_is_not_said_twice():
    for meaning, title in (("value", ""), ("error of the mean", "value: error of the mean\n")):
        values = xr.DataArray([[1.0, 2.0]], dims=("a", "seed"), coords={"a": [1.0]}, attrs={"long_name": meaning})
        drawn = plot_sweep(xr.Dataset({"value": values}), "a").axes[0].get_title("left")
        assert drawn == f"{title}median over seeds, band from the 10 % to the 90 % quantile"
