"""Matrix completion as estimators: recovery, the theory behind the defaults, jumps, labels, and odd tables."""

import pickle
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from holdfast.completion import DeepMatrixFactorization
from holdfast.completion.annealing import largest_singular_value, rounded, threshold_ridge
from holdfast.completion.baselines import AlternatingLeastSquares, SoftImpute, TwoWayMeans
from holdfast.completion.baselines.alternating import alternate
from holdfast.completion.observations import Observations, balanced_factors

QUICK = DeepMatrixFactorization(steps=400, folds=2, restarts=1)
BASELINES = [SoftImpute(penalties=5, folds=2), AlternatingLeastSquares(max_rank=2, folds=2), TwoWayMeans(folds=2)]
ESTIMATORS = [pytest.param(QUICK, marks=pytest.mark.slow, id="DeepMatrixFactorization")]
ESTIMATORS += [pytest.param(model, id=type(model).__name__) for model in BASELINES]


def low_rank(shape, rank, share, noise, seed):
    """X, y, the true matrix, and the pairs that were not observed."""
    random = np.random.default_rng(seed)
    truth = random.standard_normal((shape[0], rank)) @ random.standard_normal((rank, shape[1])) / np.sqrt(rank)
    seen = random.permutation(truth.size).reshape(shape) < share * truth.size
    X = np.argwhere(seen)
    return X, truth[seen] + noise * random.standard_normal(len(X)), truth, np.argwhere(~seen)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_ridge_at_which_a_singular_value_is_lost(depth):
    """Against a scan of (s - x)^2 / (2 h w) + lambda L s^(2/L): just below it has a minimum away from 0."""
    x, shape = 5.0, (8, 6)
    s = np.linspace(1e-4, 2 * x, 200_001)
    for factor, survives in ((0.99, True), (1.01, False)):
        ridge = factor * threshold_ridge(x, depth, shape)
        loss = (s - x) ** 2 / (2 * 48) + ridge * depth * s ** (2 / depth)
        assert (np.diff(loss) < 0).any() == survives


def test_largest_singular_value_and_factors():
    random = np.random.default_rng(0)
    left, right = random.standard_normal((7, 3)), random.standard_normal((5, 3))
    u, values, v = balanced_factors(left, right)
    np.testing.assert_allclose((u * values) @ v.T, left @ right.T, atol=1e-12)
    rows, columns = np.indices((7, 5)).reshape(2, -1)
    whole = Observations(rows, columns, (left @ right.T).ravel(), (7, 5))
    np.testing.assert_allclose(largest_singular_value(whole), values[0], rtol=1e-6)


def test_rounded_sizes_are_few_and_close():
    sizes = np.array([rounded(size) for size in range(1, 2000)])
    assert (sizes >= np.arange(1, 2000)).all()
    assert (sizes <= np.arange(1, 2000) * 1.25 + 4).all()
    assert len(set(sizes.tolist())) < 45


@pytest.fixture(scope="module")
def fitted():
    X, y, truth, missing = low_rank((30, 25), 2, 0.5, 0.1, seed=0)
    model = DeepMatrixFactorization(center=False, folds=2, restarts=2)
    return model.fit(X, y), X, y, truth, missing


def test_sgd_finds_the_rank_and_the_missing_entries(fitted):
    """Against alternating least squares that knows the rank and has next to no penalty."""
    model, X, y, truth, missing = fitted
    observations = Observations(X[:, 0], X[:, 1], y, truth.shape)
    left, right, _ = next(islice(alternate(observations, 2, 1e-6), 200, None))
    wanted = truth[tuple(missing.T)]
    best = np.sqrt(np.mean(((left @ right.T)[tuple(missing.T)] - wanted) ** 2))
    assert model.rank_ == 2
    assert np.sqrt(np.mean((model.predict(missing) - wanted) ** 2)) < 1.1 * best


def test_jumps_go_down_and_end_at_the_rank(fitted):
    model = fitted[0]
    assert (model.jumps_["after"] < model.jumps_["before"]).all()
    assert model.jumps_["after"].iloc[-1] == model.rank_
    assert model.jumps_["before"].iloc[0] == model.singular_values_.shape[1] == 8
    assert model.singular_values_.shape[0] == len(model.record_steps_)
    # The last record is what is predicted with.
    spectrum = np.linalg.svd(model.row_factors_ @ model.column_factors_.T, compute_uv=False)[:2]
    np.testing.assert_allclose(spectrum, model.singular_values_[-1, :2], rtol=1e-6)


def test_new_labels_get_the_mean_and_the_offset_of_the_other_label():
    X, y, _, _ = low_rank((12, 10), 1, 0.8, 0.1, seed=1)
    y = y + 3.0 * X[:, 0]
    model = clone(TwoWayMeans()).fit(X, y)
    row = model.row_labels_.get_loc(11)
    assert model.predict([[11, 99]])[0] == pytest.approx(model.mean_ + model.row_offsets_[row])
    assert model.predict([[99, 99]])[0] == pytest.approx(model.mean_)
    assert model.row_offsets_[row] > 10
    plain = AlternatingLeastSquares(center=False, max_rank=1, folds=2).fit(X, y)
    assert plain.predict([[11, 99], [99, 0]]) == pytest.approx([y.mean()] * 2)


@pytest.mark.parametrize("model", ESTIMATORS)
def test_strings_order_and_duplicates(model):
    """Labels may be strings; the order of entries does not matter; all entries twice are the same sums twice."""
    X, y, _, missing = low_rank((10, 9), 1, 0.6, 0.1, seed=2)
    names = pd.DataFrame({"row": [f"r{i:02}" for i in X[:, 0]], "column": [f"c{j:02}" for j in X[:, 1]]})
    asked = pd.DataFrame({"row": [f"r{i:02}" for i in missing[:, 0]], "column": [f"c{j:02}" for j in missing[:, 1]]})
    numbers = clone(model).fit(X, y).predict(missing)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(clone(model).fit(names.iloc[order], y[order]).predict(asked), numbers)
    twice = clone(model).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)).predict(missing)
    assert np.isfinite(twice).all()


@pytest.mark.parametrize("model", ESTIMATORS)
def test_odd_tables(model):
    X, y, _, _ = low_rank((10, 9), 1, 0.6, 0.1, seed=2)
    plain = clone(model).fit(X, y).predict(X)
    # A large offset leaves eight digits of the differences; SGD computes in float32 and amplifies rounding errors.
    np.testing.assert_allclose(clone(model).fit(X, y + 1e9).predict(X) - 1e9, plain, atol=0.02)
    np.testing.assert_allclose(clone(model).fit(X, np.full(len(y), 7e9 / 3)).predict(X), 7e9 / 3, rtol=1e-15)
    one_row = np.column_stack([np.zeros(8, int), np.arange(8)])
    assert np.abs(clone(model).fit(one_row, np.arange(8.0)).predict(one_row)).max() <= 8
    assert clone(model).fit([["a", 1]], [5.0]).predict([["a", 1], ["b", 2]]).tolist() == pytest.approx([5.0, 5.0])
    with pytest.raises(ValueError, match="X must have two columns, a row label and a column label, got 3 columns"):
        clone(model).fit(np.ones((4, 3)), np.ones(4))


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="depth must be a whole number of at least 3, got 2"):
        DeepMatrixFactorization(depth=2).fit([[0, 0]], [1.0])
    with pytest.raises(ValueError, match="ridge must be a positive number, got -1"):
        DeepMatrixFactorization(ridge=-1.0).fit([[0, 0]], [1.0])


@pytest.mark.slow
def test_a_step_size_that_is_too_large_is_made_smaller():
    X, y, _, _ = low_rank((10, 9), 1, 0.6, 0.1, seed=2)
    model = clone(QUICK).set_params(step_size=50.0).fit(X, y)
    assert model.step_size_ < 50.0
    assert np.isfinite(model.predict(X)).all()


def _messages(exception):
    while exception is not None:
        yield str(exception)
        exception = exception.__cause__ or exception.__context__


@pytest.mark.slow
@pytest.mark.parametrize("model", ESTIMATORS)
def test_estimator_checks(model):
    """The checks of scikit-learn pass, or fail because their data does not have two columns, and for nothing else."""
    results = check_estimator(clone(model), on_fail=None, on_skip=None)
    failed = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    others = [name for name, error in failed.items() if not any("must have two columns" in m for m in _messages(error))]
    assert others == []
    assert sum(each["status"] == "passed" for each in results) >= 25


@pytest.mark.parametrize("model", BASELINES, ids=lambda model: type(model).__name__)
def test_what_the_checks_with_more_columns_would_have_checked(model):
    X, y, _, missing = low_rank((10, 9), 1, 0.6, 0.1, seed=2)
    fitted = clone(model).fit(X.astype(float), y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(missing), fitted.predict(missing))
    np.testing.assert_allclose(fitted.predict(missing[:3]), fitted.predict(missing)[:3])
    np.testing.assert_allclose(clone(model).fit(X.tolist(), y.tolist()).predict(missing), fitted.predict(missing))
    for wrong in (np.nan, np.inf):
        labels = X.astype(float)
        labels[0, 1] = wrong
        with pytest.raises(ValueError, match="Input X contains"):
            clone(model).fit(labels, y)
        with pytest.raises(ValueError, match="Input y contains"):
            clone(model).fit(X, np.where(np.arange(len(y)) == 3, wrong, y))
