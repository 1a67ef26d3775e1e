"""The tables of the structural model have the moments of its rows, and the selection is that of the estimator."""

import numpy as np
import pytest

from holdfast import HeteroRegressor
from holdfast_studies.questions.causal_roles import (
    FEATURES,
    INTERVENTIONS,
    ROWS,
    TARGET,
    _scatter,
    drawn_table,
    strict_coefficients,
)


def _rows(intervention, random, rows=ROWS):
    tables = []
    for size in (0.5, -0.5, 0.5, -0.5):
        model, means = INTERVENTIONS[intervention].environment(size)
        noise = means + model.scales * random.standard_normal((rows, 6))
        tables.append(noise @ np.linalg.inv(np.eye(6) - model.weights))
    return np.stack(tables)


def test_sums_drawn_by_their_law_have_the_moments_of_rows():
    model, means = INTERVENTIONS["level of y"].environment(0.5)
    random = np.random.default_rng(0)
    drawn = np.stack([_scatter(model, means, random) for _ in range(400)]) / ROWS
    noise = means + model.scales * random.standard_normal((400, ROWS, 6))
    rows = noise @ np.linalg.inv(np.eye(6) - model.weights)
    rows = np.concatenate([np.ones((400, ROWS, 1)), rows], 2)
    sampled = rows.swapaxes(1, 2) @ rows / ROWS
    error = 5 * np.sqrt((drawn.var(0) + sampled.var(0)) / 400) + 1e-12
    assert (np.abs(drawn.mean(0) - sampled.mean(0)) <= error).all()
    # A variance from 400 draws has a relative error of 0.07; entry 0, 0 is constant.
    ratio = drawn.var(0)[1:, 1:] / sampled.var(0)[1:, 1:]
    assert (np.abs(np.log(ratio)) < 0.5).all()


@pytest.mark.parametrize("intervention", ["child's mechanism", "spouse"])
def test_strict_coefficients_are_those_of_the_estimator(intervention):
    rows = _rows(intervention, np.random.default_rng(1))
    flat = rows.reshape(-1, 6)
    environments = np.repeat(np.arange(4), ROWS)
    model = HeteroRegressor(pooling=0).fit(flat[:, FEATURES], flat[:, TARGET], environments=environments)
    # Other rows of the same law: coefficients agree within their sampling error of about 0.02.
    assert np.allclose(model.coef_, strict_coefficients(drawn_table(intervention, 0.5, seed=1)), atol=0.1)
    assert ((model.coef_ == 0) == (strict_coefficients(drawn_table(intervention, 0.5, seed=1)) == 0)).all()
