"""Curves and interactions that hold in all environments."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import SplineTransformer

from holdfast.core.linear_algebra import spline_basis
from holdfast.datasets import CURVED_SHAPES, curved_table, structural_dataset
from holdfast.estimators import EffectExpansion, HeteroRegressor, HeteroSplineRegressor
from holdfast.estimators.search.feature_sets import Groups

CAUSES = [True, True, False, False]


def test_an_expansion_is_splines_and_products():
    random = np.random.default_rng(0)
    x = random.standard_normal((200, 2))
    expansion = EffectExpansion(effects="smooth", interactions=True, knots=5).fit(x)
    quantiles = np.quantile(x, np.linspace(0.05, 0.95, 5), axis=0)
    knots = (quantiles + np.linspace(quantiles[0], quantiles[-1], 5)) / 2
    splines = SplineTransformer(knots=knots, extrapolation="linear", include_bias=False).fit_transform(x)
    product = np.prod((x - x.mean(0)) / x.std(0), axis=1)
    np.testing.assert_allclose(expansion.transform(x), np.column_stack([splines, product]), atol=1e-12)
    assert expansion.groups_ == [0] * 6 + [1] * 6 + [(0, 1)]
    assert list(expansion.get_feature_names_out(["a", "b"])[[0, 6, 12]]) == ["a curve 1", "b curve 1", "a * b"]


def test_splines_are_those_of_scikit_learn():
    """Inside, at the knots, beyond them; knots at irregular distances and in other units."""
    random = np.random.default_rng(1)
    for unit in (1.0, 1e-7, 1e9):
        knots = unit * (np.cumsum(random.exponential(size=6)) + 3)
        x = np.concatenate([knots, unit * random.uniform(-5, 20, 200)])
        theirs = SplineTransformer(knots=knots[:, None], extrapolation="linear", include_bias=False)
        np.testing.assert_allclose(spline_basis(x, knots), theirs.fit_transform(x[:, None]), rtol=1e-9, atol=1e-11)
    assert np.isnan(spline_basis(np.array([np.nan, np.inf]), knots)).all()


def test_an_indicator_has_no_curve():
    x = np.column_stack([np.arange(100.0), np.arange(100) % 2])
    assert EffectExpansion(effects="smooth", interactions=False).fit(x).curved_.tolist() == [True, False]


def test_terms_cannot_be_chosen_without_a_response():
    with pytest.raises(ValueError, match="'auto' requires y to be passed"):
        EffectExpansion().fit(np.eye(4))


@pytest.mark.parametrize("shape", CURVED_SHAPES)
def test_the_causes_are_found_whatever_the_shape(shape):
    x, y, environments = curved_table(shape, 2)
    model = HeteroSplineRegressor().fit(x, y, environments=environments)
    assert model.invariant_.tolist() == CAUSES
    assert not model.findings_.varies[:2].any()
    straight = any("because a straight line cannot follow it" in sentence for sentence in model.notes_)
    assert straight == (shape != "line")


@pytest.mark.slow
@pytest.mark.parametrize("shape", CURVED_SHAPES)
def test_the_causes_are_found_on_seeds_put_aside(shape):
    """At least 11 of 12, and lines alone at most one if the mechanism bends."""
    right = lines = 0
    for seed in range(3000, 3012):
        x, y, environments = curved_table(shape, seed)
        right += HeteroSplineRegressor().fit(x, y, environments=environments).invariant_.tolist() == CAUSES
        lines += HeteroRegressor().fit(x, y, environments=environments).invariant_.tolist() == CAUSES
    assert right >= 11
    assert lines <= 1 or shape == "line"


@pytest.mark.slow
def test_many_rows_do_not_mistake_the_misfit_of_a_spline_for_a_difference():
    for seed in range(3000, 3003):
        x, y, environments = curved_table("wave", seed, rows=20_000)
        assert HeteroSplineRegressor().fit(x, y, environments=environments).invariant_.tolist() == CAUSES


def test_a_new_environment_is_predicted_by_the_curve():
    """The error is the noise, of variance 1, in an environment between the others where no consequence was seen."""
    x, y, environments = curved_table("square", 3)
    model = HeteroSplineRegressor().fit(x, y, environments=environments)
    random = np.random.default_rng(0)
    new = np.column_stack([random.uniform(-1, 1, (4000, 2)), random.standard_normal((4000, 2))])
    signal = CURVED_SHAPES["square"](new[:, 0], new[:, 1])
    assert np.mean((model.predict(new) - signal) ** 2) < 0.05
    assert np.mean((HeteroRegressor().fit(x, y, environments=environments).predict(new) - signal) ** 2) > 0.2


def test_lines_where_lines_suffice():
    """The same prediction as that of lines; the structural model is linear in every environment."""
    rows = structural_dataset(20_000, samples=400).train
    lines = HeteroRegressor(search="elimination").fit(rows.inputs, rows.targets, environments=rows.environments)
    model = HeteroSplineRegressor().fit(rows.inputs, rows.targets, environments=rows.environments)
    np.testing.assert_allclose(model.predict(rows.inputs), lines.predict(rows.inputs), rtol=1e-10)
    assert "Straight lines describe each environment" in model.notes_[0]


def test_names_and_units_of_the_table():
    x, y, environments = curved_table("square", 4)
    names = ["age", "dose", "marker", "noise"]
    model = HeteroSplineRegressor().fit(pd.DataFrame(x, columns=names), y, environments=environments)
    assert "a curve of age" in model.notes_[0]
    assert model.relations_.index.tolist() == names
    moved = HeteroSplineRegressor().fit(1000 * x + 5000, y / 1000, environments=environments)
    expected = model.predict(pd.DataFrame(x, columns=names))
    np.testing.assert_allclose(1000 * moved.predict(1000 * x + 5000), expected, atol=1e-6 * y.std())
    # the effect of a curve is a multiple of the one in the fit of all columns
    effects = [each.relations_["effect"].iloc[0] for each in (model, moved)]
    np.testing.assert_allclose(effects, 1, atol=0.2)
    assert effects[0] == pytest.approx(effects[1], rel=1e-4)


def test_an_interaction_counts_where_both_of_its_groups_do():
    groups = Groups(np.array([0, 0, 1, 2, 0]), np.array([0, 0, 1, 2, 1]))
    assert groups.features(np.array([True, False, True])).tolist() == [True, True, False, True, False]
    # what the first group brings with it, alone and with the second
    assert groups.owned(np.array([False, False, False]), 0).tolist() == [0, 1]
    assert groups.owned(np.array([False, True, False]), 0).tolist() == [0, 1, 4]


def test_pairs_of_labels_are_interactions():
    x, y, environments = curved_table("product", 5)
    table = np.column_stack([x, x[:, 0] * x[:, 1], x[:, 1] * x[:, 2]])
    labels = ["a", "b", "c", "d", ("a", "b"), ("b", "c")]
    model = HeteroRegressor(groups=labels, search="elimination", pooling=0).fit(table, y, environments=environments)
    assert model.invariant_.tolist() == [True, True, False, False, True, False]
    assert abs(model.coef_[4] - 1) < 0.05


def test_elimination_reaches_sets_that_single_features_do_not():
    """Where levels differ, the gradient of every feature varies, and none can be added to nothing on its own."""
    counts = {"exponents": 0, "elimination": 0}
    for seed in (106, 108, 127, 130):
        x, y, environments = curved_table("line", seed)
        for search in counts:
            model = HeteroRegressor(search=search).fit(x, y, environments=environments)
            counts[search] += model.invariant_.tolist() == CAUSES
    assert counts["elimination"] == 4 > counts["exponents"]


def test_curves_of_environments_cover_the_true_effect():
    """y = sin(2 x0) * 2 + x1 or so: the curves of four environments agree with the fit within their bands."""
    x, y, environments = curved_table("wave", 6)
    model = HeteroSplineRegressor().fit(x, y, environments=environments)
    curve = model.curves_["x0"]
    distance = np.abs(curve.estimates - curve.fitted) / curve.errors
    seen = np.isfinite(distance)
    # four curves of 41 correlated points each: 5 % of the points lie beyond two standard errors, more by chance
    assert np.mean(distance[seen] > 2) < 0.2
    line = model.curves_["x1"]
    slopes = np.diff(line.estimates) / np.diff(line.grid)
    for number, label in enumerate(model.environments_):
        own = environments == label
        features = model.expansion_.transform(x[own])[:, model.regressor_.invariant_]
        alone = LinearRegression().fit(features, y[own]).coef_[-1]
        np.testing.assert_allclose(slopes[number][np.isfinite(slopes[number])], alone, rtol=1e-6)


def test_summary_and_plot_name_columns_and_curves():
    x, y, environments = curved_table("wave", 6)
    frame = pd.DataFrame(x, columns=["light", "water", "weeds", "noise"])
    model = HeteroSplineRegressor().fit(frame, pd.Series(y, name="yield"), environments=environments)
    summary = model.summary()
    assert summary.table["verdict"].to_dict() == {
        "light": "holds", "water": "holds", "weeds": "dangerous", "noise": "cannot be told"
    }  # fmt: skip
    assert "The effect of light is a curve" in " ".join(str(summary).split())
    figure = model.plot_effects(["light", "weeds"])
    assert [axes.get_xlabel() for axes in figure.axes] == ["light", "weeds"]
    assert {axes.get_ylabel() for axes in figure.axes} == {"effect on yield"}
    with pytest.raises(ValueError, match="columns must be among"):
        model.plot_effects(["moon"])


def test_curves_do_not_depend_on_the_units_of_the_columns():
    """With standard deviations from 1e-5 to 1e5, every curve is the one in units of one."""
    x, y, environments = curved_table("wave", 6)
    units = np.array([1.0, 1e5, 1e-5, 1e3])
    plain = HeteroSplineRegressor().fit(x, y, environments=environments)
    scaled = HeteroSplineRegressor().fit(x * units, y, environments=environments)
    for name, curve in plain.curves_.items():
        found = scaled.curves_[name]
        assert np.isfinite(found.estimates).sum() == np.isfinite(curve.estimates).sum() > 0
        np.testing.assert_allclose(found.estimates, curve.estimates, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.errors, curve.errors, rtol=1e-4)
        np.testing.assert_allclose(found.fitted, curve.fitted, rtol=1e-4, atol=1e-5)
