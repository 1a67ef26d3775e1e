from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from holdfast.algorithms.invariance import AgreementMask, AverageRisk, Fish, RiskExtrapolation
from holdfast.datasets import linear_unit_test, random_structural_model, structural_dataset, toy_dataset
from holdfast.estimators.baselines import (
    AnchorRegressor,
    ExplicitClassifier,
    ExplicitRegressor,
    InvariantCausalRegressor,
    InvariantGradientRegressor,
    InvariantLeastSquares,
    PooledClassifier,
    PooledRegressor,
)

pytest.importorskip("causalicp")
pytest.importorskip("ivmodels")


@parametrize_with_checks([
    PooledRegressor(),
    PooledClassifier(),
    # Large steps, so that few of them learn what the checks ask for.
    ExplicitRegressor(AverageRisk(step_size=0.1), steps=100),
    ExplicitClassifier(AverageRisk(step_size=0.1), steps=100),
    AnchorRegressor(),
    InvariantGradientRegressor(),
    InvariantCausalRegressor(candidates=4),
    InvariantLeastSquares(),
])  # fmt: skip
@pytest.mark.slow
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    return toy_dataset(0.5, 0.5, seed=0, samples=400).train


def test_pooled_regressions_are_those_of_scikit_learn(table):
    least, ridge = PooledRegressor(), PooledRegressor(0.1)
    for ours, theirs in ((least, LinearRegression()), (ridge, Ridge(0.1 * len(table.targets)))):
        ours.fit(table.inputs, table.targets, environments=table.environments)
        assert np.allclose(ours.coef_, theirs.fit(table.inputs, table.targets).coef_)


def test_average_risk_ends_at_least_squares(table):
    fitted = ExplicitRegressor(AverageRisk(step_size=0.01), steps=3000).fit(
        table.inputs, table.targets, environments=table.environments
    )
    assert np.allclose(fitted.coef_, LinearRegression().fit(table.inputs, table.targets).coef_, atol=1e-3)


def test_labels_and_names_of_any_kind(table):
    frame = pd.DataFrame(table.inputs).rename(columns=str)
    labels = pd.Series(np.array(["north", "south", "east", "west"])[table.environments])
    fitted = ExplicitRegressor(RiskExtrapolation(), steps=50).fit(frame, table.targets, environments=labels)
    assert fitted.environments_ == ["east", "north", "south", "west"]
    assert list(fitted.feature_names_in_) == list(frame.columns)
    again = ExplicitRegressor(RiskExtrapolation(), steps=50).fit(frame, table.targets, environments=labels)
    assert np.array_equal(fitted.coef_, again.coef_)


def test_a_classifier_keeps_its_labels():
    data = linear_unit_test("Example3", 0, samples=200).train
    words = np.where(data.targets > 0, "yes", "no")
    fitted = ExplicitClassifier(AgreementMask(step_size=0.1), steps=200).fit(
        data.inputs, words, environments=data.environments
    )
    assert np.mean(fitted.predict(data.inputs) == words) > 0.95
    assert np.allclose(fitted.predict_proba(data.inputs).sum(1), 1)


def test_a_diverging_method_is_refused_with_its_name(table):
    with pytest.raises(ValueError, match=r"method diverged .* step_size .* Fish"):
        ExplicitRegressor(Fish(step_size=100.0), steps=100).fit(table.inputs, table.targets)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 20.0])
def test_anchor_regression_minimises_its_objective(gamma):
    data = structural_dataset(3, samples=200).train
    shifted = data.inputs + data.environments[:, None]  # anchors act through means
    fitted = AnchorRegressor(gamma).fit(shifted, data.targets, environments=data.environments)
    # transformed least squares: the part within the means of environments weighs sqrt(gamma)
    x, y = shifted - shifted.mean(0), data.targets - data.targets.mean()
    for environment in np.unique(data.environments):
        rows = data.environments == environment
        x[rows] += (np.sqrt(gamma) - 1) * x[rows].mean(0)
        y[rows] += (np.sqrt(gamma) - 1) * y[rows].mean()
    assert np.allclose(fitted.coef_, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-4)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 3.0])
def test_drig_minimises_its_objective(gamma, known):
    data = structural_dataset(3, samples=200).train
    calm = data.environments == 0
    # the reference varies least, and if it is known, the means of the others are elsewhere
    shifts = data.environments * known
    inputs = np.where(calm[:, None], 0.6 * data.inputs, data.inputs + shifts[:, None])
    targets = np.where(calm, 0.6 * data.targets, data.targets - shifts)
    estimator = InvariantGradientRegressor(gamma, reference=0 if known else None)
    fitted = estimator.fit(inputs, targets, environments=data.environments)
    assert (fitted.gamma_, fitted.reference_) == (gamma, 0)
    origin = calm if known else slice(None)
    x, y = inputs - inputs[origin].mean(0), targets - targets[origin].mean()

    def objective(w):
        losses = np.array([np.square(y - x @ w)[data.environments == e].mean() for e in range(5)])
        return losses[0] + gamma * (losses - losses[0]).mean()

    best = minimize(objective, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-9})
    assert np.allclose(fitted.coef_, best.x, atol=1e-4)
    assert np.isclose(fitted.intercept_, targets[origin].mean() - fitted.coef_ @ inputs[origin].mean(0))
    if gamma == 1 and not known:
        assert np.allclose(fitted.coef_, LinearRegression().fit(inputs, targets).coef_)


def test_drig_tends_to_the_causes_if_every_feature_is_intervened_on():
    """Shen et al., section 3: then the causal parameter is the limit, and the distance to it is of order 1 / gamma.

    The noise has exactly mean 0 and covariance 1, so that there is no sampling error.
    """
    random = np.random.default_rng(0)
    model = random_structural_model(random)
    drawn = random.standard_normal((2000, 9))
    noise = np.linalg.qr(drawn - drawn.mean(0))[0] * np.sqrt(2000)
    shifts = 2.0 * np.isin(np.arange(9), model.features)
    spreads = (model.scales, np.hypot(model.scales, shifts))
    rows = np.concatenate([np.linalg.solve((np.eye(9) - model.weights).T, (noise * each).T).T for each in spreads])
    distances = []
    for gamma in (1.0, 100.0, 1000.0):
        estimator = InvariantGradientRegressor(gamma)
        estimator.fit(rows[:, model.features], rows[:, model.target], environments=np.repeat(["without", "with"], 2000))
        assert estimator.reference_ == "without"
        distances.append(np.abs(estimator.coef_ - model.weights[model.features, model.target]).max())
    assert distances[1] < 0.1 * distances[0]
    assert np.isclose(distances[2] / distances[1], 0.1, rtol=0.1)


def test_drig_takes_a_smaller_gamma_where_there_is_no_minimum():
    """The other environment hardly varies, so that the second moment is gamma S / 2 - (gamma - 1) S: 0 at gamma = 2."""
    environments = np.repeat([0, 1], 1000)
    x = np.random.default_rng(0).standard_normal((2000, 1)) * np.where(environments == 0, 1.0, 1e-6)[:, None]
    fitted = InvariantGradientRegressor(20.0, reference=0).fit(x, x[:, 0], environments=environments)
    assert np.isclose(fitted.gamma_, 1.5, atol=0.01)
    assert np.allclose(fitted.coef_, 1)


def test_invariant_causal_prediction_is_that_of_causalicp():
    import causalicp

    found = 0
    for seed in range(6):
        data = structural_dataset(seed, samples=200).train
        chosen = data.inputs[:, :5]
        parts = [
            np.column_stack([chosen[data.environments == e], data.targets[data.environments == e]]) for e in range(5)
        ]
        estimate = causalicp.fit(parts, 5, alpha=0.05).estimate
        fitted = InvariantCausalRegressor().fit(chosen, data.targets, environments=data.environments)
        assert fitted.accepted_ == (estimate is not None)
        assert set(np.flatnonzero(fitted.invariant_)) == (estimate or set())
        selected = chosen[:, fitted.invariant_]
        if selected.size:
            found += 1
            expected = LinearRegression().fit(selected, data.targets)
            assert np.allclose(fitted.predict(chosen), expected.predict(selected))
    assert found


def test_candidates_come_from_the_path_of_the_lasso(table):
    fitted = InvariantCausalRegressor(candidates=3).fit(table.inputs, table.targets, environments=table.environments)
    assert fitted.invariant_.sum() <= 3


def test_eills_finds_the_lowest_objective_of_all_sets():
    data = structural_dataset(1, samples=100).train
    x = data.inputs[:, :4]
    x = (x - x.mean(0)) / x.std(0)
    y = (data.targets - data.targets.mean()) / data.targets.std()
    rows = [data.environments == environment for environment in range(5)]

    def objective(chosen, coefficients):
        total = 0.0
        for row in rows:
            residual = y[row] - x[np.ix_(row, chosen)] @ coefficients
            total += np.mean(residual**2) + 20 * np.sum((x[np.ix_(row, chosen)].T @ residual / row.sum()) ** 2)
        return total / len(rows)

    sets = [chosen for size in range(5) for chosen in combinations(range(4), size)]
    lowest = min((minimize(lambda w, s=s: objective(list(s), w), np.zeros(len(s))).fun, s) for s in sets if s)
    lowest = min(lowest, (objective([], []), ()))
    fitted = InvariantLeastSquares(20.0).fit(x, y, environments=data.environments)
    assert tuple(np.flatnonzero(fitted.invariant_)) == lowest[1]
    used = np.flatnonzero(fitted.invariant_)
    assert np.isclose(objective(used, fitted.coef_[used]), lowest[0], atol=1e-6)


def test_eills_without_a_penalty_is_least_squares_on_balanced_environments(table):
    fitted = InvariantLeastSquares(0.0).fit(table.inputs, table.targets, environments=table.environments)
    assert np.allclose(fitted.coef_, LinearRegression().fit(table.inputs, table.targets).coef_)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (PooledRegressor(-1.0), "regularization must be at least 0, got -1"),
        (PooledClassifier(0.0), "regularization must be above 0, got 0"),
        (AnchorRegressor(0.0), "gamma must be above 0, got 0"),
        (InvariantCausalRegressor(1.5), "significance must be between 0 and 1, got 1.5"),
        (InvariantLeastSquares(-2.0), "penalty must be at least 0, got -2"),
        (ExplicitRegressor(steps=0), "steps must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_named(estimator, words):
    inputs = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match=words):
        estimator.fit(inputs, (inputs[:, 0] > 0).astype(float))


def test_eills_refuses_what_it_cannot_search():
    inputs = np.random.default_rng(0).standard_normal((50, 17))
    with pytest.raises(ValueError, match=r"X must have at most 16 features, .* got 17"):
        InvariantLeastSquares().fit(inputs, inputs[:, 0])
