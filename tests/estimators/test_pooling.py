import numpy as np
import pytest

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators import HeteroClassifier, HeteroRegressor
from holdfast.estimators.pooling import choose_pooling, held_out_squares, pooling_weight, stressed_weight
from holdfast.estimators.search.class_evidence import LogisticEvidence


@pytest.fixture
def alike():
    """Real effects in four environments that are alike but for small differences in every effect."""
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 3000)
    effects = np.array([1.0, -1.0, 0.5, 2.0]) * (1 + 0.12 * random.standard_normal((4, 4)))
    x = random.standard_normal((len(codes), 4))
    return x, (x * effects[codes]).sum(1) + random.standard_normal(len(codes)), codes


def _consequence(random, strengths, rows=2000):
    codes = np.repeat(np.arange(len(strengths)), rows)
    cause = random.standard_normal((len(codes), 2))
    y = cause.sum(1) + random.standard_normal(len(codes))
    return np.column_stack([cause, strengths[codes] * y + random.standard_normal(len(codes))]), y, codes


@pytest.mark.parametrize("level", ["common", "environment"])
def test_held_out_errors_are_those_of_least_squares_on_the_rows(alike, level):
    x, y, codes = alike
    x = x + codes[:, None] * [1.0, 0.0, -2.0, 0.0]
    columns = np.array([0, 2])
    within = level == "environment"
    known = standardized(collect_moments(x, y, group_rows(codes, len(y))), within=within)
    found = held_out_squares(known, columns) * known.scale[-1] ** 2
    for number in range(4):
        held, design, response = codes == number, np.column_stack([np.ones(len(y)), x[:, columns]]), y.copy()
        if within:
            for own in range(4):
                design[codes == own, 1:] -= design[codes == own, 1:].mean(0)
                response[codes == own] -= response[codes == own].mean()
        fitted = np.linalg.lstsq(design[~held], response[~held])[0]
        assert found[number] == pytest.approx(np.mean((response[held] - design[held] @ fitted) ** 2), rel=1e-9)


def test_held_out_logistic_losses_are_those_of_a_fit_to_the_other_rows(alike):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    x, y, codes = alike
    labels = (y > 0).astype(float)
    rows = [LogisticRows(x[codes == own].T, labels[codes == own], np.ones(3000)) for own in range(4)]
    found = LogisticEvidence(rows).held_out(np.arange(4))
    for number in range(4):
        held = codes == number
        # C = 1 is the same ridge
        fitted = LogisticRegression(C=1.0, tol=1e-8).fit(x[~held], labels[~held])
        assert found[number] == pytest.approx(log_loss(labels[held], fitted.predict_proba(x[held])), rel=1e-5)


def test_where_environments_are_nearly_alike_the_pooled_fit_predicts(alike):
    x, y, codes = alike
    strict, model = (HeteroRegressor(pooling=a).fit(x, y, environments=codes) for a in (0, "auto"))
    assert not strict.invariant_.all()
    assert model.pooling_ > 0.8
    np.testing.assert_array_equal(model.invariant_, strict.invariant_)
    np.testing.assert_array_equal(strict.coef_, strict.strict_coef_)
    assert any(f"pooling = {model.pooling_:.2g}" in sentence for sentence in model.notes_)


def test_a_consequence_of_the_response_stays_out():
    x, y, codes = _consequence(np.random.default_rng(1), np.array([0.5, 1.0, 1.5]))
    model = HeteroRegressor().fit(x, y, environments=codes)
    assert model.pooling_ == 0
    assert model.coef_[2] == 0
    assert any("only the selected ones are used (pooling = 0)" in sentence for sentence in model.notes_)
    classes = HeteroClassifier().fit(x, y > 0, environments=codes)
    assert classes.pooling_ == 0
    assert classes.coef_[0, 2] == 0


@pytest.mark.parametrize("weight", [0, 0.25, 1])
def test_the_weight_can_be_given(alike, weight):
    x, y, codes = alike
    model = HeteroRegressor(pooling=weight).fit(x, y, environments=codes)
    np.testing.assert_allclose(model.coef_, (1 - weight) * model.strict_coef_ + weight * model.pooled_coef_)
    design = np.column_stack([np.ones(len(y)), x])
    np.testing.assert_allclose(model.pooled_coef_, np.linalg.lstsq(design, y)[0][1:], atol=1e-10)
    # predictions have the mean of the response, whatever the weight
    assert model.predict(x).mean() == pytest.approx(y.mean(), abs=1e-10)


def test_one_environment_is_least_squares():
    x, y, _ = _consequence(np.random.default_rng(2), np.array([1.0]))
    model = HeteroRegressor().fit(x, y)
    design = np.column_stack([np.ones(len(y)), x])
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(design, y)[0][1:], atol=1e-10)
    assert model.pooling_ == 1
    assert "There is only one environment" in model.advice_[0]
    assert not any("Left out" in sentence or "Selected" in sentence for sentence in model.advice_)  # all are used


def test_the_weight_falls_with_what_is_explained_and_rises_with_what_varies():
    weights = [pooling_weight(0.0, -share, -1.0, 0.3).weight for share in (0.0, 0.2, 0.4, 0.9)]
    assert weights == sorted(weights, reverse=True)
    assert (weights[0], weights[-1]) == (1.0, 0.0)
    weights = [pooling_weight(0.0, -0.6, -1.0, varying).weight for varying in (0.0, 0.5, 0.9)]
    assert weights == sorted(weights)
    # nothing to gain: nothing is risked
    assert pooling_weight(0.0, -1.0, -0.9, 1.0).weight == 0.0
    assert pooling_weight(0.0, 0.0, -1e-4, 0.0).weight == 0.0


@pytest.mark.parametrize("value", ["strict", -0.1, 1.5, True, None])
def test_other_weights_are_refused(value):
    with pytest.raises(ValueError, match=r"pooling must be 'auto' or a number from 0 to 1, got"):
        HeteroRegressor(pooling=value).fit(np.ones((3, 1)), np.arange(3.0))


def test_where_nothing_varies_all_features_are_used():
    random = np.random.default_rng(4)
    codes, x = np.repeat(np.arange(4), 500), random.standard_normal((2000, 3))
    y = x @ [1.0, 0.03, 0.0] + random.standard_normal(2000)
    model = HeteroRegressor().fit(x, y, environments=codes)
    assert not model.findings_.varies.any()
    assert model.pooling_ == 1
    np.testing.assert_array_equal(model.coef_, model.pooled_coef_)
    assert any("they are all used (pooling = 1)" in note for note in model.notes_)
    classes = HeteroClassifier().fit(x, y > 0, environments=codes)
    assert classes.pooling_ == 1
    np.testing.assert_array_equal(classes.coef_, classes.pooled_coef_)


def test_strictness_has_to_pay():
    """What is selected predicts well enough by itself, but far away all features together would still be better."""
    selected, weights = np.array([True, False]), np.array([0.5, 0.5])
    held_out = {0: 0.0, 1: -0.9, 2: -1.0}
    losses = {1: 1.0, 2: 1.0}

    def chosen():
        return choose_pooling(
            lambda columns: np.full(2, held_out[len(columns)]),
            weights,
            selected,
            0.2,
            lambda columns: losses[len(columns)],
        )

    assert chosen().weight == 0.5
    losses[2] = np.exp(0.05)
    assert chosen().weight == pytest.approx(0.25)
    losses[2] = 2.0
    assert chosen().weight == 0
    losses[2] = 0.5
    assert chosen().weight == 1
    assert chosen().or_asked(0.125).weight == 0.125
    assert [stressed_weight(*pair) for pair in ((1.0, np.inf), (np.inf, 1.0), (1.0, 0.0))] == [1.0, 0.0, 0.0]
