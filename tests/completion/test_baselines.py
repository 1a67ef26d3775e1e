"""The convex and the alternating baseline against what defines their solutions."""

from itertools import islice

import numpy as np
import pytest

from holdfast.completion.baselines import AlternatingLeastSquares, SoftImpute, TwoWayMeans
from holdfast.completion.baselines.alternating import alternate
from holdfast.completion.baselines.soft_impute import soft_impute
from holdfast.completion.observations import Observations


def observed(shape, rank, share, noise, seed, repeats=0):
    random = np.random.default_rng(seed)
    truth = random.standard_normal((shape[0], rank)) @ random.standard_normal((rank, shape[1]))
    pairs = np.argwhere(random.permutation(truth.size).reshape(shape) < share * truth.size)
    pairs = np.concatenate([pairs, pairs[:repeats]])
    values = truth[tuple(pairs.T)] + noise * random.standard_normal(len(pairs))
    return Observations(pairs[:, 0], pairs[:, 1], values, shape), truth


@pytest.mark.parametrize("repeats", [0, 20])
@pytest.mark.parametrize("penalty", [1.0, 4.0])
def test_soft_impute_satisfies_the_conditions_of_the_nuclear_norm(repeats, penalty):
    """The gradient G = weight (y - A) is penalty (U V^T + H) with U^T H = 0, H V = 0 and ||H|| <= 1."""
    observations, _ = observed((15, 12), 2, 0.5, 0.3, seed=0, repeats=repeats)
    fitted = soft_impute(observations, penalty, np.zeros((15, 12)), tolerance=1e-12, max_iter=20_000)
    counts, sums = observations.counts_and_sums()
    u, values, v = np.linalg.svd(fitted, full_matrices=False)
    rank = int((values > 1e-8).sum())
    assert 0 < rank < 12
    rest = (sums - counts * fitted) / penalty - u[:, :rank] @ v[:rank]
    np.testing.assert_allclose(u[:, :rank].T @ rest, 0, atol=1e-6)
    np.testing.assert_allclose(rest @ v[:rank].T, 0, atol=1e-6)
    assert np.linalg.norm(rest, 2) < 1 + 1e-6


def test_soft_impute_gives_zero_from_the_largest_penalty_on():
    observations, _ = observed((8, 7), 1, 0.6, 0.3, seed=1)
    largest = np.linalg.norm(observations.counts_and_sums()[1], 2)
    options = {"start": np.zeros((8, 7)), "tolerance": 1e-10, "max_iter": 1000}
    assert not soft_impute(observations, 1.0001 * largest, **options).any()
    assert soft_impute(observations, 0.99 * largest, **options).any()


def test_alternating_least_squares_never_raises_the_objective():
    observations, _ = observed((15, 12), 3, 0.4, 0.5, seed=2, repeats=15)
    objectives = np.array([objective for _, _, objective in islice(alternate(observations, 3, 0.3), 60)])
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert objectives[-1] < objectives[0]


def test_alternating_least_squares_recovers_a_matrix_without_noise():
    observations, truth = observed((30, 25), 2, 0.5, 0.0, seed=3)
    left, right, _ = next(islice(alternate(observations, 2, 1e-9), 300, None))
    np.testing.assert_allclose(left @ right.T, truth, atol=1e-5)


def test_the_rank_is_found_on_held_out_entries():
    observations, truth = observed((30, 25), 2, 0.6, 0.05, seed=4)
    X = np.column_stack([observations.rows, observations.columns])
    model = AlternatingLeastSquares(max_rank=4, center=False).fit(X, observations.values)
    assert model.rank_ == 2
    missing = np.argwhere(observations.counts_and_sums()[0] == 0)
    wanted = truth[tuple(missing.T)]
    errors = {
        type(each).__name__: np.mean((each.fit(X, observations.values).predict(missing) - wanted) ** 2)
        for each in (model, SoftImpute(center=False, folds=2), TwoWayMeans())
    }
    assert errors["AlternatingLeastSquares"] < errors["SoftImpute"] < errors["TwoWayMeans"]


def test_offsets_of_a_complete_table_without_noise_are_its_means():
    """Exact for an additive table, since the least shrinkage is chosen and the table is complete: k = 0.1 of 40."""
    a, b = np.linspace(-2, 3, 40), np.linspace(5, 9, 30) ** 2
    rows, columns = np.indices((40, 30)).reshape(2, -1)
    y = a[rows] + b[columns]
    model = TwoWayMeans().fit(np.column_stack([rows, columns]), y)
    np.testing.assert_allclose(model.row_offsets_ * (1 + 0.1 / 30), a - a.mean(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.column_offsets_ * (1 + 0.1 / 40), b - b.mean(), rtol=1e-4, atol=1e-3)
