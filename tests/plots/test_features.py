import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from holdfast.datasets import toy_dataset
from holdfast.estimators import HeteroRegressor
from holdfast.estimators.held_out import held_out_errors
from holdfast.plots.features import draw_held_out


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
