"""What a figure of a sweep shows of its runs: which are left out, which are chosen, and how lines are told apart."""

import io
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.legend import Legend

from holdfast.sweeps import plot_sweep, sweep
from holdfast.sweeps.programs import FAILED, QUANTILE, QUANTILES
from holdfast.sweeps.summary import FEW, NONE_LEFT
from sweeps.drawn import legend_of, named_marks, results


def runs_without_numbers():
    """Of four runs at each of three points: two are NaN, three are NaN, and all are."""
    loss = np.array([[1.0, 3.0, np.nan, np.nan], [5.0, np.nan, np.nan, np.nan], np.full(4, np.nan)])
    return xr.Dataset({"loss": (("a", "seed"), loss)}, {"a": [1.0, 2.0, 3.0]})


def test_numbers_that_a_program_does_not_have_are_counted_as_left_out():
    figure = plot_sweep(runs_without_numbers(), "a")
    line, hollow = figure.axes[0].lines[:2]
    np.testing.assert_allclose(line.get_ydata(), [2.0, 5.0, np.nan])
    assert hollow.get_xydata().tolist() == [[2.0, 5.0]]
    assert named_marks(figure) == [FEW, NONE_LEFT]
    assert figure.get_suptitle().splitlines()[1:] == ["no finite number: 9 of 12 runs"]
    shares = plot_sweep(runs_without_numbers(), "a", over="share", threshold=2.0)
    np.testing.assert_allclose(shares.axes[0].lines[0].get_ydata(), [0.5, 1.0, np.nan])
    assert "no finite number: 9 of 12 runs" in shares.get_suptitle()
    late = xr.Dataset({"loss": (("seed", "step"), [[1.0, 2.0], [1.0, np.nan], [1.0, 4.0]])}, {"step": [0, 10]})
    assert "no finite number: 1 of 3 runs" in plot_sweep(late, "step").get_suptitle()
    infinite = runs_without_numbers().fillna(np.inf)
    assert "no finite number: 9 of 12 runs" in plot_sweep(infinite, "a").get_suptitle()


def test_quantiles_say_where_no_run_has_a_number():
    """How many have none elsewhere is not recorded."""
    loss = np.arange(7.0) + np.array([[1.0], [np.nan], [np.nan]])
    data = xr.Dataset({"loss": (("a", QUANTILE), loss)}, {"a": [1, 2, 3], QUANTILE: list(QUANTILES)}, {"seeds": 4})
    assert plot_sweep(data, "a").get_suptitle().splitlines()[1:] == ["no finite number: at least 8 of 12 runs"]
    assert "number" not in plot_sweep(data.isel(a=[0]), "a").get_suptitle()
    steps, share = data.rename(a="step").expand_dims(b=[1.0]), ("step", [0.0, 0.25, 0.5])
    notes = plot_sweep(steps.assign(diverged=share), "step").get_suptitle().splitlines()[2:]
    assert notes == [
        "left out: 2 of 4 runs that diverged",
        "no finite number: at least 3 of 4 runs",
    ]


def test_what_is_not_in_a_figure_is_counted_in_its_slice_and_by_its_reason():
    finished, failed = np.ones((2, 3, 4), bool), np.zeros((2, 3, 4), bool)
    finished[0, 0], finished[1, :2], failed[1, 0] = False, False, True
    dimensions = ("a", "b", "seed")
    data = xr.Dataset(
        {"error": (dimensions, np.ones((2, 3, 4))), "finished": (dimensions, finished), FAILED: (dimensions, failed)},
        {"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]},
    )
    notes = plot_sweep(data, "b").get_suptitle().splitlines()[1:3]
    assert notes == ["failed: 4 of 24 runs", "not finished: 8 of 24 runs"]
    assert plot_sweep(data, "b", at={"a": 1.0}).get_suptitle().splitlines()[2:] == ["not finished: 4 of 12 runs"]
    with pytest.raises(ValueError, match=r"error must have a number to draw, got none \(failed: 4 of 4 runs\)"):
        plot_sweep(data.isel(a=[1], b=[0]), "a")


def test_codes_are_not_drawn_as_numbers():
    phase = (("a", "seed"), [[1, 2, 2], [2, 2, 2]], {"long_name": "1: growing, 2: of order one"})
    data = xr.Dataset({"phase": phase, "outcome": (("a", "seed"), np.zeros((2, 3)))}, {"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="must be one of phase, diverged, converged, got 'outcome'"):
        plot_sweep(data, "a", quantity="outcome")
    with pytest.raises(ValueError, match=r"phase, which is a code .* \(--over share --threshold 1.5\), got 'median'"):
        plot_sweep(data, "a", quantity="phase")
    drawn = plot_sweep(data, "a", quantity="phase", over="share", threshold=1.5)
    np.testing.assert_allclose(drawn.axes[0].lines[0].get_ydata(), [2 / 3, 1])


def test_a_band_below_zero_ends_at_the_bottom_of_a_logarithmic_axis():
    values = [[1.0, 1.1, 1.2], [0.001, 0.001, 0.004]]  # the second mean is 0.002, with a standard error of 0.001
    data = xr.Dataset({"error": (("a", "seed"), values)}, {"a": [1.0, 2.0]})
    values[1][2] = 0.1
    wide = xr.Dataset({"error": (("a", "seed"), [*values, [1e-4, 1e-4, 1e-4]])}, {"a": [1.0, 2.0, 3.0]})
    figure = plot_sweep(wide, "a", over="mean", scale="log")
    (band,) = figure.axes[0].collections[:1]
    assert figure.axes[0].get_yscale() == "log"
    down = band.get_transform().transform([[1.0, -1.0]])[0, 1]
    assert np.isfinite(down)
    assert down < figure.axes[0].bbox.y0
    assert plot_sweep(wide, "a").axes[0].get_yscale() == "log"
    assert plot_sweep(wide, "a", scale="linear").axes[0].get_yscale() == "linear"
    with pytest.raises(ValueError, match="scale must be linear for numbers that are not positive, got log, and -1"):
        plot_sweep(-data, "a", scale="log")
    assert plot_sweep(data.assign(error=data["error"] + 9), "a", scale="log").axes[0].get_yscale() == "log"


def design_of_points(count=4):
    kinds = np.array(["hetero", "pooled"] * (count // 2), object)
    values = np.arange(1.0, 1 + count)[:, None] * np.ones(3)
    settings = {"batching": ("point", kinds), "rate": ("point", np.repeat([0.1, 0.2], count // 2))}
    return xr.Dataset({"error": (("point", "seed"), values)}, {**settings, "bias": ("point", np.ones(count))})


def test_points_are_told_apart_by_settings_that_are_strings_and_can_be_chosen_by_them():
    figure = plot_sweep(design_of_points(), "rate")
    (axes,) = figure.axes
    hetero, pooled = axes.lines
    assert hetero.get_xydata().tolist() == [[0.1, 1.0], [0.2, 3.0]]
    assert pooled.get_xydata().tolist() == [[0.1, 2.0], [0.2, 4.0]]
    assert hetero.get_color() != pooled.get_color()
    assert legend_of(axes) == ("batching", ["hetero", "pooled"])
    assert "bars from the 10 % to the 90 % quantile" in figure.get_suptitle()
    chosen = plot_sweep(design_of_points(), "rate", at={"batching": "pooled"})
    (drawn,) = chosen.axes[0].lines
    assert drawn.get_ydata().tolist() == [2.0, 4.0]
    assert chosen.get_suptitle().splitlines()[1:] == ["batching pooled"]
    assert chosen.axes[0].get_legend() is None
    (drawn,) = plot_sweep(design_of_points(), "point", at={"rate": 0.12}).axes[0].lines[:1]
    assert drawn.get_ydata().tolist() == [1.0]


def test_points_of_a_short_list_are_labelled_by_the_settings_in_which_they_differ():
    (axes,) = plot_sweep(design_of_points(), "point").axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["hetero\n0.1", "pooled\n0.1", "hetero\n0.2", "pooled\n0.2"]
    assert axes.get_xlabel() == "point: batching, rate"
    (axes,) = plot_sweep(design_of_points(14), "point").axes
    assert axes.get_xlabel() == "point"
    figure = plot_sweep(design_of_points(12).assign_coords(rate=("point", np.arange(12) / 7e5)), "point")
    figure.savefig(io.BytesIO(), dpi=figure.dpi)  # which decides the layout
    assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {90.0}


def test_each_combination_of_further_axes_is_a_line_of_its_own_colour():
    values = np.arange(12.0).reshape(2, 3, 2)[..., None] * np.ones(2)
    axes_of = {"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0], "c": ["x", "y"]}
    figure = plot_sweep(xr.Dataset({"error": (("a", "b", "c", "seed"), values)}, axes_of), "a")
    (axes,) = figure.axes
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 6
    assert legend_of(axes) == ("c, b", ["x, 1", "x, 2", "x, 3", "y, 1", "y, 2", "y, 3"])
    assert not any(isinstance(each, FillBetweenPolyCollection) for each in axes.collections)
    assert figure.get_suptitle() == "error: median over 2 seeds"
    four = plot_sweep(xr.Dataset({"error": (("a", "b", "c", "seed"), values)}, axes_of).isel(b=[0, 1]), "a").axes[0]
    assert sum(isinstance(each, FillBetweenPolyCollection) for each in four.collections) == 4


def test_the_legend_lies_within_the_figure():
    axes_of = {"a": [1.0, 2.0], "b": [1.0, 2.0], "c": ["one of several environments", "pooled"]}
    data = xr.Dataset({"error": (("a", "b", "c", "seed"), np.arange(16.0).reshape(2, 2, 2, 2))}, axes_of)
    figure = plot_sweep(data, "a")
    figure.savefig(io.BytesIO(), dpi=figure.dpi)  # which decides the layout
    legends = figure.axes[0].findobj(Legend)
    assert len(legends) == 1
    assert all(figure.bbox.x1 >= legend.get_window_extent().x1 for legend in legends)


def test_lines_that_coincide_can_be_told_apart():
    data = xr.Dataset({"error": (("b", "a", "seed"), np.ones((3, 4, 2)))}, {"a": [1.0, 2.0, 3.0, 4.0], "b": [1, 2, 3]})
    lines = plot_sweep(data, "a").axes[0].lines
    assert len({line.get_linestyle() for line in lines}) == len({line.get_marker() for line in lines}) == 3


def test_more_than_sixteen_lines_are_refused():
    data = xr.Dataset({"error": (("b", "a", "seed"), np.arange(17.0)[:, None, None] * np.ones((2, 1)))})
    data = data.assign_coords(a=[1.0, 2.0], b=np.arange(17))
    assert len(plot_sweep(data.isel(b=slice(16)), "a").axes[0].lines) == 16
    with pytest.raises(ValueError, match=r"must leave at most 16 lines; fix other settings with at \(--at\), got 17"):
        plot_sweep(data, "a")


def test_steps_that_are_not_drawn_are_fixed_at_the_last_one():
    for data in results():
        figure = plot_sweep(data, "bias", quantity="spurious")
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [2e4])
        assert "step 40 (the last)" in figure.get_suptitle().splitlines()
        assert "left out: 3 of 6 runs that diverged" in figure.get_suptitle()


def test_axes_with_one_value_are_in_the_title_and_a_seed_can_be_chosen():
    data = xr.Dataset({"error": (("a", "b", "seed"), [[[1.0, 5.0]], [[2.0, 6.0]]])}, {"a": [1.0, 2.0], "b": [7.0]})
    figure = plot_sweep(data, "a")
    assert figure.get_suptitle().splitlines()[1:] == ["b 7"]
    assert figure.axes[0].get_legend() is None
    one = plot_sweep(data.assign_coords(seed=[3, 4]), "a", at={"seed": 4})
    assert one.axes[0].lines[0].get_ydata().tolist() == [5.0, 6.0]
    assert one.get_suptitle() == "error: 1 seed\nseed 4, b 7"


@pytest.mark.parametrize(("arguments", "words"), [
    ({"x": "step", "quantity": "jumps"}, r"axes of jumps \(bias\); steps are recorded by .*, got 'step'"),
    ({"x": "bias", "at": {"bias": 1.0}}, r"axes that at \(--at\) does not fix, got 'bias' in both"),
    ({"x": "bias", "at": {"rate": 1.0}}, r"at must name axes of spurious \(bias, step, seed\), got 'rate'"),
    ({"x": "bias", "over": "share", "threshold": float("nan")}, "threshold must be a finite number, got nan"),
    ({"x": "biass"}, r"x and y must be axes of spurious \(bias, step\), got 'biass' \(perhaps bias\)"),
    ({"x": "bias", "scale": "square"}, "scale must be one of linear, log, got 'square'"),
])  # fmt: skip
def test_the_reason_of_a_refusal_is_said(arguments, words):
    trajectories, _ = results()
    data = trajectories.assign(jumps=(("bias", "seed"), np.ones((1, 6))))
    with pytest.raises(ValueError, match=words):
        plot_sweep(data, **arguments)


def test_final_values_have_no_steps():
    data = results()[0].isel(step=-1, drop=True)
    with pytest.raises(ValueError, match=r'axes of spurious \(bias\); steps are recorded by record = "trajectories"'):
        plot_sweep(data, "step")


def test_the_usual_quantity_has_the_axis_that_is_drawn():
    trajectories, _ = results()
    data = trajectories.rename(spurious="rank").assign(spurious=(("bias", "seed"), np.ones((1, 6))))
    assert plot_sweep(data, "step").axes[0].get_ylabel() == "rank"
    assert plot_sweep(data, "bias").axes[0].get_ylabel() == "spurious"


def test_cells_that_failed_are_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="failed"):
        data = sweep({}, {"scale": [1.0, 3.0]}, seeds=3, out="runs", program="programs_of_a_user:picky")
    assert data[FAILED].values.tolist() == [[False] * 3, [True] * 3]
    assert "failed: 3 of 6 runs" in plot_sweep(data, "scale").get_suptitle()
