import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from scipy.stats import t

from holdfast.estimators.effects import OwnEffects, describe_effects
from holdfast.plots.bands import save, style
from holdfast.plots.features import MOST_ENVIRONMENTS, VERDICTS, draw_forest


def _tables(environments, seed=0):
    """One effect that is the same everywhere, and a more dangerous one that varies by 2."""
    random = np.random.default_rng(seed)
    errors = random.uniform(0.1, 0.3, (environments, 2))
    estimates = 1 + random.standard_normal((environments, 2)) * [0, 2] + errors * random.standard_normal(errors.shape)
    own = OwnEffects(estimates, errors, np.full(errors.shape, 20.0))
    selected = np.array([True, False])
    return describe_effects(
        own,
        estimates.mean(0) * selected,
        selected=selected,
        names=["light", "soil"],
        labels=[f"field {number}" for number in range(environments)],
        more={"verdict": np.array(["holds", "dangerous"]), "danger": np.array([0.01, 0.5]), "rank": np.array([2, 1])},
    )


def _interval_ends(axes):
    (lines,) = (collection for collection in axes.collections if isinstance(collection, LineCollection))
    return np.array([[start[0], end[0]] for start, end in lines.get_segments()])


def test_each_environment_has_its_interval_and_the_mean_is_a_diamond():
    tables = _tables(6)
    figure = draw_forest(tables, response="yield")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["soil", "light"]
    assert {axes.get_xlabel() for axes in figure.axes} == {"yield\nper standard deviation (1)"}
    axes = figure.axes[0]
    half = t.ppf(0.975, 20) * tables.errors["soil"].to_numpy()[:, None]
    expected = tables.effects["soil"].to_numpy()[:, None] + half * [-1, 1]
    np.testing.assert_allclose(_interval_ends(axes), expected)
    diamond = axes.patches[-1].get_xy()[:, 0]
    mean, half = tables.relations.loc["soil", "effect"], t.ppf(0.975, 5) * tables.relations.loc["soil", "effect_error"]
    low, high = axes.get_xlim()
    np.testing.assert_allclose([diamond.min(), diamond.max()], np.clip([mean - half, mean + half], low, high))
    (facts,) = (text.get_text() for text in axes.texts)
    assert f"τ = {tables.relations.loc['soil', 'between']:.2g}" in facts
    assert f"I² = {tables.relations.loc['soil', 'i_squared']:.0%}" in facts
    assert facts.startswith("dangerous, danger 50%")
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["dangerous", "holds"]


def test_all_panels_have_one_axis_in_standard_deviations_of_the_features():
    """In grams instead of kilograms the effects of soil are 1000 times smaller, and the figure is the same."""
    tables, scale = _tables(6), np.array([2.0, 0.5])
    figure = draw_forest(tables, scale=scale)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    expected = 2.0 * tables.effects["light"].to_numpy()
    half = 2.0 * t.ppf(0.975, 20) * tables.errors["light"].to_numpy()
    np.testing.assert_allclose(_interval_ends(figure.axes[1]), np.column_stack([expected - half, expected + half]))
    assert f"τ = {0.5 * tables.relations.loc['soil', 'between']:.2g}" in figure.axes[0].texts[0].get_text()
    grams = np.array([1.0, 1e-3])
    measured = ["coefficient", "effect", "low", "high", "between"]
    relations = tables.relations.copy()
    relations[measured] *= grams[:, None]
    finer = tables._replace(effects=tables.effects * grams, errors=tables.errors * grams, relations=relations)
    for one, other in zip(figure.axes, draw_forest(finer, scale=scale / grams).axes, strict=True):
        np.testing.assert_allclose(_interval_ends(one), _interval_ends(other))
        assert one.texts[0].get_text() == other.texts[0].get_text()


def test_verdicts_differ_in_colour_and_in_marker():
    assert len({colour for colour, _ in VERDICTS.values()}) == len({mark for _, mark in VERDICTS.values()}) == 4
    light, soil = (
        draw_forest(_tables(4), [name]).axes[0].collections[-1].get_paths()[0].vertices for name in ("light", "soil")
    )
    assert light.shape != soil.shape


def test_of_many_environments_the_most_extreme_are_drawn_and_the_rest_is_counted():
    tables = _tables(120)
    figure = draw_forest(tables, ["soil"])
    (axes,) = figure.axes
    assert "50 of 120 environments, furthest from the mean" in axes.texts[0].get_text()
    drawn = {label.get_text() for label in axes.get_yticklabels()} - {"mean"}
    assert len(drawn) == MOST_ENVIRONMENTS
    assert {tables.effects["soil"].idxmin(), tables.effects["soil"].idxmax()} <= drawn
    assert figure.get_figheight() < 15


def test_environments_that_say_nothing_are_left_out_and_wide_intervals_do_not_stretch_the_axis(tmp_path):
    tables = _tables(6)
    tables.effects.iloc[0, 0] = tables.errors.iloc[0, 0] = np.nan
    tables.errors.iloc[1, 0] = 1000.0
    with style():
        figure = draw_forest(tables, ["light"])
        paths = save(figure, tmp_path, "forest")
    assert [path.exists() for path in paths] == [True, True]
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["field 1", "field 2"]
    assert np.ptp(axes.get_xlim()) < 10


def test_an_unknown_feature_is_refused():
    with pytest.raises(ValueError, match="features must be among soil, light, got water"):
        draw_forest(_tables(3), ["light", "water"])


def test_features_that_are_not_drawn_are_counted():
    tables = _tables(4)
    frames = [tables.effects, tables.errors, tables.degrees]
    names = [f"feature {number}" for number in range(15)]
    effects, errors, degrees = (frame.iloc[:, [1] * 15].set_axis(names, axis=1) for frame in frames)
    relations = tables.relations.iloc[[1] * 15].set_axis(names, axis=0)
    many = tables._replace(effects=effects, errors=errors, degrees=degrees, relations=relations)
    figure = draw_forest(many)
    assert len(figure.axes) == 12
    assert figure.legends[0].get_title().get_text() == "3 more features are not drawn"
    assert draw_forest(tables).legends[0].get_title().get_text() == ""


def test_of_an_effect_that_one_environment_measures_no_spread_is_said():
    tables = _tables(4)
    once = tables.effects.assign(light=[1.0, np.nan, np.nan, np.nan])
    relations = tables.relations.copy()
    relations.loc["light", ["between", "i_squared", "significance"]] = np.nan
    figure = draw_forest(tables._replace(effects=once, relations=relations), ["light"])
    assert "τ" not in figure.axes[0].texts[0].get_text()
    assert "± τ around the mean" not in [text.get_text() for text in figure.legends[0].get_texts()]


def _drawn(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


@pytest.mark.parametrize("response", ["log-odds of death", "log-odds of death within a month = yes"])
def test_what_is_dangerous_is_drawn_first_and_no_words_meet(response):
    """15 features of which the last is dangerous, at three scales; with long names."""
    random = np.random.default_rng(0)
    names = [f"a name that is much too long for a title, number {number}" for number in range(15)]
    scale = np.tile([1e-7, 1.0, 3e-4], 5)
    estimates = (random.standard_normal((4, 15)) * 0.1 - 0.7) * scale
    own = OwnEffects(estimates, np.full((4, 15), 0.1) * scale, np.full((4, 15), 50.0))
    worst = np.arange(15) == 14
    more = {"verdict": np.where(worst, "dangerous", "cannot be told"), "danger": 0.01 + worst, "rank": 1 + ~worst}
    tables = describe_effects(own, -0.7 * scale, selected=~worst, names=names, labels=["a", "b", "c", "d"], more=more)
    with style():
        figure = draw_forest(tables, None, dict.fromkeys(names, response), 123.456 / scale)
        renderer = _drawn(figure)
        assert figure.axes[0].get_title(loc="left").endswith("number 14")
        assert figure.axes[0].get_xlabel().replace("\n", " ").startswith(f"{response} per standard deviation (")
        width = figure.bbox.width
        titles = [axes._left_title.get_window_extent(renderer) for axes in figure.axes]
        ticks = [tick.get_window_extent(renderer) for axes in figure.axes for tick in axes.get_xticklabels()]
        rows = [tick.get_window_extent(renderer) for tick in figure.axes[0].get_yticklabels()]
        axis = [axes.xaxis.label.get_window_extent(renderer) for axes in figure.axes]
        assert all(len(axes.get_xticks()) > 1 for axes in figure.axes)
        for group in (titles, ticks, axis):
            assert not any(one.overlaps(other) for one, other in itertools.combinations(group, 2))
        assert all(box.x0 >= 0 and box.x1 <= width for box in [*titles, *ticks, *rows, *axis])
        assert "3 more features" in figure.legends[0].get_title().get_text()
        assert not any(figure.legends[0].get_window_extent(renderer).overlaps(box) for box in axis)
        assert not any(box.overlaps(title) for box in axis for title in titles)
