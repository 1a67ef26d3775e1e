import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from holdfast.datasets import toy_dataset
from holdfast.estimators import HeteroRegressor
from holdfast.estimators.held_out import held_out_errors
from holdfast.plots.features import draw_held_out, draw_survival


@pytest.fixture(scope="module")
def table():
    return toy_dataset(0.5, 0.5, seed=0, samples=500).train


@pytest.fixture(scope="module")
def model(table):
    return HeteroRegressor().fit(table.inputs, table.targets, environments=table.environments)


def test_survivors_end_above_the_others(model):
    axes = draw_survival(model).axes[0]
    # Named are the three that are selected and the three that are washed out. The selected ones are drawn last, on top.
    assert {text.get_text() for text in axes.texts} == {f"x{number}" for number in range(6)}
    ends = np.array([line.get_ydata()[-1] for line in axes.lines])
    assert ends[-3:].min() > 0.2 > 0.02 > ends[:-3].max()


def test_errors_where_it_was_not_fitted(table):
    errors = held_out_errors(
        {"invariant": HeteroRegressor(n_runs=1), "pooled": LinearRegression()},
        table.inputs,
        table.targets,
        table.environments,
    )
    assert errors.index.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(errors["invariant"], 1, atol=0.2)  # the variance of the noise
    assert errors["pooled"].max() > 0.9 * errors["invariant"].max()
    axes = draw_held_out(errors).axes[0]
    assert [line.get_label() for line in axes.lines] == ["invariant", "pooled"]
