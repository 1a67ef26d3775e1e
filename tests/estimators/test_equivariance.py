"""Predictions do not depend on the order, the units and the offsets of what is in a table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.datasets import structural_dataset
from holdfast.estimators import HeteroRegressor

FEATURES = 8
EPSILON = np.finfo(float).eps
SEEDS = st.integers(0, 2**16)
EXPONENTS = st.lists(st.integers(-150, 150), min_size=FEATURES + 1, max_size=FEATURES + 1)
OFFSETS = st.lists(st.floats(-1e7, 1e7), min_size=FEATURES + 1, max_size=FEATURES + 1)
HELD_OUT = structural_dataset(11, samples=50).test.inputs


def _table():
    return structural_dataset(11, samples=200).train


def _predict(x, y, environments, new, **settings):
    return HeteroRegressor(**settings).fit(x, y, environments=environments).predict(new)


def _assert_close(found, expected, allowed=1e-8):
    assert np.abs(found - expected).max() <= allowed * expected.std()


@pytest.fixture(scope="module")
def plain():
    table = _table()
    return _predict(*table, HELD_OUT)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_the_order_of_rows_columns_and_environments(plain, seed):
    random, table = np.random.default_rng(seed), _table()
    rows, columns = random.permutation(len(table.targets)), random.permutation(FEATURES)
    labels = random.permutation(["a", "b", "c", "d", "e"])[table.environments]
    found = _predict(table.inputs[rows][:, columns], table.targets[rows], labels[rows], HELD_OUT[:, columns])
    _assert_close(found, plain)


@settings(max_examples=15, deadline=None)
@given(exponents=EXPONENTS)
def test_units(plain, exponents):
    """From 1e-150 to 1e150; the unit of the response is its own."""
    table, units = _table(), 10.0 ** np.array(exponents)
    found = _predict(table.inputs * units[:-1], table.targets * units[-1], table.environments, HELD_OUT * units[:-1])
    _assert_close(found / units[-1], plain)


@settings(max_examples=15, deadline=None)
@given(offsets=OFFSETS)
def test_offsets(plain, offsets):
    table, offsets = _table(), np.array(offsets)
    spread = np.append(table.inputs.std(0), table.targets.std())
    allowed = max(1e-8, 100 * EPSILON * np.abs(offsets / spread).max())
    moved = table.inputs + offsets[:-1], table.targets + offsets[-1], table.environments, HELD_OUT + offsets[:-1]
    _assert_close(_predict(*moved) - offsets[-1], plain, allowed)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_repeated_rows_are_weights(seed):
    table = _table()
    weights = np.random.default_rng(seed).integers(0, 4, len(table.targets))
    repeated = (np.repeat(part, weights, axis=0) for part in table)
    weighted = HeteroRegressor().fit(
        table.inputs, table.targets, environments=table.environments, sample_weight=weights
    )
    _assert_close(weighted.predict(HELD_OUT), _predict(*repeated, HELD_OUT))


def test_a_large_mean_is_no_constant():
    random = np.random.default_rng(0)
    x = random.normal([1e7, 0.0], 1.0, (300, 2))
    model = HeteroRegressor().fit(x, x[:, 0] - 1e7 + 0.1 * random.standard_normal(300), environments=np.arange(300) % 3)
    assert model.coef_[0] == pytest.approx(1.0, abs=0.03)  # 0.1 / sqrt(300) is 0.006
