"""Figures of sweeps whose results are known, since they are made by hand."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.colors import to_hex

from holdfast.core.outcome import Code
from holdfast.plots.bands import style
from holdfast.sweeps import open_sweep, plot_sweep, sweep
from holdfast.sweeps.summary import FEW, NONE_LEFT
from sweeps.drawn import DIVERGED_AT, SIGNAL, STEPS, legend_of, named_marks, results


def test_what_was_recorded_does_not_change_the_figure():
    figures = [plot_sweep(data, "step", quantity="spurious") for data in results()]
    survivors = [(DIVERGED_AT < 0) | (step < DIVERGED_AT) for step in STEPS]
    left = [np.median(SIGNAL[survivors[k], k]) for k in range(len(STEPS))]
    for figure in figures:
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), left)
        assert "left out: 3 of 6 runs that diverged" in figure.get_suptitle()
    for data in results():
        held = plot_sweep(data, "bias", quantity="spurious", at={"step": 20})
        np.testing.assert_allclose(held.axes[0].lines[0].get_ydata(), left[2])
        assert "left out: 1 of 6 runs" in held.get_suptitle()
        diverged = plot_sweep(data, "step", quantity="diverged").axes[0]
        np.testing.assert_allclose(diverged.lines[0].get_ydata(), [0, 0, 1 / 6, 1 / 2, 1 / 2])


def test_an_axis_is_held_at_a_value_that_the_title_names_and_never_beyond_its_ends():
    data = xr.Dataset({"spurious": (("bias", "overlap", "seed"), np.ones((2, 2, 3)))}, {"bias": [0.0, 1.0]})
    data = data.assign_coords(overlap=[0.1, 0.3])
    assert "overlap 0.3" in plot_sweep(data, "bias", at={"overlap": 0.25}).get_suptitle().splitlines()
    with pytest.raises(ValueError, match=r"overlap must be fixed between 0\.1 and 0\.3, got 5"):
        plot_sweep(data, "bias", at={"overlap": 5.0})


def test_a_point_without_neighbours_has_a_bar_and_what_is_not_finished_is_counted():
    signal = np.arange(1.0, 6.0) * np.ones((4, 1))
    finished = np.array([[True], [False], [True], [True]]) & np.ones((4, 5), bool)
    data = xr.Dataset(
        {"spurious": (("bias", "seed"), signal), "finished": (("bias", "seed"), finished)},
        {"bias": [1.0, 2.0, 3.0, 4.0]},
    )
    figure = plot_sweep(data, "bias")
    (band,) = figure.axes[0].collections
    alone, _ = (path.vertices for path in band.get_paths())  # the others are neighbours
    assert set(alone[:, 0]) == {1.0}
    np.testing.assert_allclose([alone[:, 1].min(), alone[:, 1].max()], [1.4, 4.6])  # 10 % and 90 % of 1, ..., 5
    assert band.get_linewidth() > 0
    assert "not finished: 5 of 20 runs" in figure.get_suptitle()


def test_shares_are_drawn_from_0_to_1():
    outcome = np.full((2, 2, 4), int(Code.FINISHED))
    outcome[1, 1, :2] = int(Code.DIVERGED)
    data = xr.Dataset({"outcome": (("a", "b", "seed"), outcome)}, {"a": [1.0, 2.0], "b": [1.0, 2.0]})
    figure = plot_sweep(data, "a", "b", quantity="diverged")
    (mesh,) = figure.axes[0].collections
    assert mesh.get_clim() == (0.0, 1.0)
    np.testing.assert_allclose(mesh.get_array(), [[0, 0], [0, 0.5]])
    with pytest.raises(ValueError, match="quantity must be one of diverged, converged, got 'foo'"):
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
        (drawn,) = plot_sweep(data, x).axes[0].lines
        np.testing.assert_allclose(drawn.get_xdata(), positions)


def test_a_name_without_a_meaning_is_not_said_twice():
    for meaning, title in (("value", ""), ("error of the mean", ", error of the mean")):
        values = xr.DataArray([[1.0, 2.0]], dims=("a", "seed"), coords={"a": [1.0]}, attrs={"long_name": meaning})
        drawn = plot_sweep(xr.Dataset({"value": values}), "a").get_suptitle()
        assert drawn == f"value{title}: median over 2 seeds, band from the 10 % to the 90 % quantile"


def map_with_gaps():
    """Of nine points: one is not computed, all runs of one diverged, of one a single run of four is left."""
    diverged_at = np.full((3, 3, 4), -1)
    diverged_at[0, 1], diverged_at[0, 2, 1:] = 7, 7
    finished = np.ones((3, 3, 4), bool)
    finished[2, 2] = False
    dimensions = ("a", "b", "seed")
    return xr.Dataset(
        {
            "spurious": (dimensions, np.ones((3, 3, 4))),
            "diverged_at": (dimensions, diverged_at),
            "finished": (dimensions, finished),
        },
        {"a": [1.0, 2.0, 3.0], "b": [10.0, 20.0, 30.0]},
    )


def test_a_map_tells_apart_what_diverged_and_what_is_not_computed():
    data = map_with_gaps()
    figure = plot_sweep(data, "a", "b")
    assert named_marks(figure) == [FEW, NONE_LEFT]
    (dots, crosses) = figure.axes[0].lines
    assert (dots.get_marker(), *dots.get_xydata().tolist()) == ("o", [0.0, 2.0])
    assert (crosses.get_marker(), *crosses.get_xydata().tolist()) == ("x", [0.0, 1.0])
    assert named_marks(plot_sweep(data, "a", "b", quantity="diverged")) == []  # all runs count
    finished = data.drop_vars("finished")
    assert named_marks(plot_sweep(finished, "a", "b")) == [FEW, NONE_LEFT]
    complete = finished.drop_vars("diverged_at")
    assert named_marks(plot_sweep(complete, "a", "b")) == []
    assert plot_sweep(complete, "a", "b").axes[0].lines[:] == []
    nothing = complete.where(complete["a"] > 1)  # NaN that the program returned
    assert named_marks(plot_sweep(nothing, "a", "b")) == [NONE_LEFT]


def test_lines_mark_few_runs_and_where_none_is_left():
    data = map_with_gaps()
    data = data.assign(spurious=data["spurious"] * data["a"])  # so that no line hides another
    figure = plot_sweep(data, "b")
    assert named_marks(figure) == [FEW, NONE_LEFT]
    (axes,) = figure.axes
    _, hollow, crosses, *_ = axes.lines  # of a = 1; those of the other two lines are whole
    assert len(axes.lines) == 5
    assert (hollow.get_markerfacecolor(), hollow.get_xydata().tolist()) == ("white", [[30.0, 1.0]])
    assert (crosses.get_marker(), crosses.get_xdata().tolist()) == ("x", [20.0])
    above = axes.transAxes.inverted().transform(crosses.get_transform().transform(crosses.get_xydata()))
    assert above[0, 1] > 1
    whole = plot_sweep(data, "b", at={"a": 2.0})
    assert (named_marks(whole), len(whole.axes[0].lines)) == ([], 1)


def test_marks_are_the_same_whatever_was_recorded():
    for data in results(np.array([15, 15, 15, 15, 30, 30])):
        (axes,) = plot_sweep(data, "step", quantity="spurious").axes
        _, hollow, crosses = axes.lines
        assert (hollow.get_xdata().tolist(), crosses.get_xdata().tolist()) == ([20], [30, 40])


def test_a_title_says_what_is_drawn_over_how_many_seeds_and_what_is_held():
    data = map_with_gaps().drop_vars("finished")
    assert plot_sweep(data, "a", "b", quantity="diverged").get_suptitle() == (
        "share of runs that diverged: 4 seeds at each point"
    )
    title = plot_sweep(data, "a", quantity="diverged", at={"b": 20.0}).get_suptitle()
    assert title == "share of runs that diverged: 4 seeds at each point, band of 95 % confidence\nb 20"
    left_out = "\nleft out: 7 of 36 runs that diverged"
    assert plot_sweep(data, "a", "b", over="mean").get_suptitle() == f"spurious: mean over 4 seeds{left_out}"
    shares = plot_sweep(data, "a", "b", over="share", threshold=0.25).get_suptitle()
    assert shares == f"spurious: share of 4 seeds above 0.25{left_out}"
    _, quantiles = results()
    title = plot_sweep(quantiles, "bias", quantity="spurious", at={"step": 10}).get_suptitle()
    assert title == "spurious: median over 6 seeds, band from the 10 % to the 90 % quantile\nstep 10"


@pytest.mark.parametrize("labels", [["hetero", "pooled", "full"], [True, False]])
def test_texts_are_points_with_bars_side_by_side(labels):
    signal = np.arange(1.0, 6.0) * np.ones((len(labels), 2, 1))
    data = xr.Dataset({"error": (("kind", "bias", "seed"), signal)}, {"kind": labels, "bias": [0.0, 1.0]})
    (axes,) = plot_sweep(data, "kind").axes
    assert not any(isinstance(each, FillBetweenPolyCollection) for each in axes.collections)
    first, second = axes.lines
    assert {line.get_linestyle() for line in axes.lines} == {"None"}
    assert (first.get_xdata() < np.arange(len(labels))).all()
    assert (second.get_xdata() > np.arange(len(labels))).all()
    assert [label.get_text() for label in axes.get_xticklabels()] == list(map(str, labels))
    assert legend_of(axes) == ("bias", ["0", "1"])


def test_points_with_the_same_text_do_not_hide_each_other():
    kinds = ("point", np.array(["hetero", "pooled", "hetero"], object))
    data = xr.Dataset({"error": (("point", "seed"), [[1.0], [2.0], [3.0]])}, {"kind": kinds})
    (drawn,) = plot_sweep(data, "kind").axes[0].lines
    left, other, right = drawn.get_xdata()
    assert -0.5 < left < 0 < right < 0.5
    assert other == 1


@pytest.mark.parametrize("count", [2, 13, 25, 60])
def test_numbers_of_points_have_whole_ticks(count):
    values = np.arange(count)[:, None] * np.ones(2)
    data = xr.Dataset({"error": (("point", "seed"), values)}, {"bias": ("point", np.arange(count) / 10)})
    figure = plot_sweep(data, "point")
    figure.canvas.draw()
    ticks = figure.axes[0].get_xticks()
    assert len(ticks) > 1
    np.testing.assert_array_equal(ticks, np.round(ticks))


@pytest.mark.parametrize(
    ("count", "shape"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3)), (6, (2, 3))]
)
def test_panels_are_balanced(count, shape):
    values = np.ones((count, 2, 2, 1))
    data = xr.Dataset(
        {"error": (("c", "a", "b", "seed"), values)}, {"a": [1.0, 2.0], "b": [1.0, 2.0], "c": np.arange(count)}
    )
    *panels, _ = plot_sweep(data, "a", "b").axes
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == shape
    assert [axes.get_title(loc="left") for axes in panels] == ([f"c {c}" for c in range(count)] if count > 1 else [""])


@pytest.mark.parametrize(("scale", "other", "values"), [
    ("log", "linear", [0.5, 0.1, 0.3, 0.72]),
    ("linear", "log", [0.4, 0.1, 0.2, 0.81]),
])  # fmt: skip
def test_a_range_is_drawn_on_the_scale_of_its_design(scale, other, values):
    """Without it, the draws would be taken for something else."""
    data = xr.Dataset({"error": (("point", "seed"), np.ones((4, 2)))}, {"rate": ("point", values)})
    assert plot_sweep(data, "rate").axes[0].get_xscale() == other
    data = data.assign_attrs(scales={"rate": scale})
    assert plot_sweep(data, "rate").axes[0].get_xscale() == scale
    assert plot_sweep(data, "point").axes[0].get_xscale() == "linear"


def test_a_result_has_the_scales_of_its_design(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    ranges = {"design": "random", "count": 9, "scale": {"low": 0.1, "high": 2.0, "scale": "log"}, "bias": [0.0, 1.0]}
    drawn = sweep({}, ranges, seeds=2, out=tmp_path / "random", program="programs_of_a_user:square")
    assert drawn.attrs["scales"] == {"scale": "log"}
    assert plot_sweep(drawn, "scale", quantity="square").axes[0].get_xscale() == "log"
    grid = {"scale": {"start": 1, "stop": 10, "count": 4}}
    evenly = sweep({}, grid, seeds=2, out=tmp_path / "grid", program="programs_of_a_user:square")
    assert evenly.attrs["scales"] == {"scale": "linear"}
    assert "scales" in open_sweep(tmp_path / "grid").attrs


def test_wide_values_have_a_logarithmic_axis_upwards():
    for top, scale in ((50.0, "linear"), (500.0, "log")):
        data = xr.Dataset({"error": (("a", "seed"), [[1.0], [top]])}, {"a": [1.0, 2.0]})
        assert plot_sweep(data, "a").axes[0].get_yscale() == scale


def test_colours_are_those_of_the_style_and_lines_differ_by_more():
    for count in (5, 8, 16):
        data = xr.Dataset({"error": (("b", "a", "seed"), np.ones((count, 2, 1)))}, {"a": [1.0, 2.0]})
        data = data.assign_coords(b=np.arange(count))
        lines = plot_sweep(data, "a").axes[0].lines
        assert len({(to_hex(line.get_color()), line.get_linestyle(), line.get_marker()) for line in lines}) == count
        assert len({(line.get_linestyle(), line.get_marker()) for line in lines[:4]}) == 4  # without colours
    with style():
        first = to_hex("C0")
    assert plot_sweep(data.isel(b=[0]), "a").axes[0].lines[0].get_color() == first


def test_further_dimensions_become_lines():
    values = np.arange(12.0).reshape(2, 3, 2)
    data = xr.Dataset({"spurious": (("bias", "seed", "direction"), values)}, {"bias": [0.0, 1.0]})
    (axes,) = plot_sweep(data, "bias").axes
    assert [line.get_label() for line in axes.lines] == ["0", "1"]
    assert plot_sweep(data, "direction", at={"bias": 0.0}).axes[0].lines[0].get_ydata().tolist() == [2.0, 3.0]


def test_a_result_may_be_masked_or_averaged_before_it_is_drawn():
    trajectories, _ = results()
    data = trajectories.assign(finished=(("bias", "seed"), np.ones((1, 6), bool))).isel(step=-1, drop=True)
    survivors = data.where(data["diverged_at"] < 0)
    assert plot_sweep(survivors, "bias").axes[0].lines[0].get_ydata().tolist() == [2e4]
    averaged = data.drop_vars("diverged_at").mean("seed")
    assert plot_sweep(averaged, "bias").axes[0].lines[0].get_ydata().tolist() == [3.5e4]


def test_the_step_of_divergence_is_about_the_runs_that_diverged():
    trajectories, _ = results()
    figure = plot_sweep(trajectories, "bias", quantity="diverged_at", over="mean")
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [np.mean([15, 30, 30])])
    assert "diverged_at: mean over 6 seeds, band" in figure.get_suptitle()
    assert "no finite number: 3 of 6 runs" in figure.get_suptitle()
    data = map_with_gaps()
    figure = plot_sweep(data, "a", "b", quantity="diverged_at")
    assert named_marks(figure) == [NONE_LEFT]
    assert "no finite number: 25 of 36 runs" in figure.get_suptitle()
    with pytest.raises(ValueError, match=r"a number to draw, got none \(no finite number: 12 of 12 runs"):
        plot_sweep(data, "b", quantity="diverged_at", at={"a": 2.0})


def test_a_result_without_numbers_is_refused():
    data = xr.Dataset({"label": (("bias", "seed"), [["a", "b"]])}, {"bias": [0.0]})
    with pytest.raises(ValueError, match="the sweep must have a finished cell with numbers, got none"):
        plot_sweep(data, "bias")


def test_a_map_over_settings_of_points_is_left_to_xarray():
    values = np.ones((2, 3, len(STEPS)))
    data = xr.Dataset(
        {"spurious": (("point", "seed", "step"), values)},
        {"point": [0, 1], "step": STEPS, "rate": ("point", [0.1, 0.2]), "bias": ("point", [1.0, 2.0])},
    )
    for x, y in (("step", "rate"), ("rate", "bias")):
        with pytest.raises(ValueError, match=rf"two axes .*Dataset.plot.scatter.*, got '{x}' and '{y}'"):
            plot_sweep(data, x, y)
    assert plot_sweep(data, "step", "point").axes[0].get_xlabel() == "step"
