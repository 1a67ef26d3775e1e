import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from sklearn.linear_model import LinearRegression

from holdfast.datasets import toy_dataset
from holdfast.estimators import HeteroRegressor
from holdfast.estimators.held_out import held_out_errors
from holdfast.plots.bands import style
from holdfast.plots.danger import MOST_LABELS, draw_danger
from holdfast.plots.features import VERDICTS, draw_held_out, save_figures


@pytest.fixture(scope="module")
def table():
    return toy_dataset(0.5, 0.5, seed=0, samples=500).train


@pytest.fixture(scope="module")
def model(table):
    return HeteroRegressor().fit(table.inputs, table.targets, environments=table.environments)


def test_errors_where_it_was_not_fitted(table):
    errors = held_out_errors(
        {"invariant": HeteroRegressor(), "pooled": LinearRegression()},
        table.inputs,
        table.targets,
        table.environments,
    )
    assert errors.index.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(errors["invariant"], 1, atol=0.2)  # the variance of the noise
    assert errors["pooled"].max() > 0.9 * errors["invariant"].max()
    axes = draw_held_out(errors).axes[0]
    assert [line.get_label() for line in axes.lines] == ["invariant", "pooled"]


def _relations(features, seed=0):
    """Losses from nothing to a hundred times the error, many of them the same."""
    random = np.random.default_rng(seed)
    losses = np.where(random.random((features, 2)) < 0.3, 0.0, 10 ** random.uniform(-4, 2, (features, 2)))
    found = pd.DataFrame(
        losses, [f"a feature with a name, {number}" for number in range(features)], ["reliance", "danger"]
    )
    found["rank"] = found["danger"].rank(ascending=False, method="first").astype(int)
    return found.assign(verdict=random.choice(list(VERDICTS), features))


def _names(figure):
    return [text for text in figure.axes[0].texts if text.get_text()]


@pytest.mark.parametrize("features", [1, 2, 5, 12, 30, 60])
def test_danger_against_reliance_is_readable_with_few_features_and_with_many(features):
    relations = _relations(features)
    with style():
        figure = draw_danger(relations, 0.1, "yield")
        figure.draw_without_rendering()
    (axes,) = figure.axes
    marks = np.concatenate([np.column_stack(line.get_data()) for line in axes.lines[:-1]])
    expected = relations[["reliance", "danger"]].to_numpy()
    np.testing.assert_array_equal(marks[np.lexsort(marks.T)], expected[np.lexsort(expected.T)])
    assert list(axes.lines[-1].get_ydata()) == [0.1, 0.1]
    low, high = axes.get_xlim()
    assert low < expected[:, 0].min()
    assert high > expected[:, 0].max()
    names = _names(figure)
    assert {text.get_text() for text in names} <= set(relations.index[relations["rank"] <= MOST_LABELS])
    assert len(names) >= min(features, 0.6 * MOST_LABELS)
    assert names[0].get_text() == relations["rank"].idxmin()
    boxes = [Text.get_window_extent(text) for text in names]
    assert not any(one.count_overlaps([other]) for one, other in itertools.combinations(boxes, 2))
    places = axes.transData.transform(marks)
    assert not any(box.contains(*place) for box in boxes for place in places)
    ticks = [label.get_text() for label in axes.get_yticklabels()]
    assert ticks[:3] == ["0%", "1%", "10%"]


def test_what_has_no_danger_is_counted_and_not_drawn():
    relations = _relations(4)
    relations.loc[relations.index[:2], "danger"] = np.nan
    figure = draw_danger(relations, 0.1)
    assert figure.legends[0].get_title().get_text() == "2 more features are not drawn"
    with pytest.raises(ValueError, match="relations must have a danger and a reliance"):
        draw_danger(relations[:2], 0.1)


def test_the_figures_of_a_fit_are_written(model, table, tmp_path):
    paths = save_figures(model, tmp_path)
    assert [path.name for path in paths] == ["effects.png", "effects.svg", "danger.png", "danger.svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
    shown = {text.get_text() for text in _names(model.plot_danger())}
    assert shown <= set(model.relations_.index)
    assert model.relations_["danger"].idxmax() in shown
    first, *_ = model.plot_effects().axes
    worst = model.relations_["rank"].idxmin()
    assert first.get_title(loc="left") == worst
    scale = table.inputs[:, model.relations_.index.get_loc(worst)].std()
    assert first.get_xlabel() == f"y\nper standard deviation ({scale:.3g})"
