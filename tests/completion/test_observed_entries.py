"""Gathered mini-batches against the dense ones, for the same keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.completion import random_low_rank
from holdfast.completion.oracles import ObservedEntries, mini_batch, sampled_entries

PROBLEM = random_low_rank(5, 4, 2, 0.6, seed=1)
LISTS = (PROBLEM.rows, PROBLEM.columns, PROBLEM.values)


def _layers(widths):
    random = np.random.default_rng(2)
    pairs = zip(widths[1:], widths[:-1], strict=True)
    return tuple(jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in pairs)


@pytest.mark.parametrize("widths", [(4, 3, 5), (4, 3, 3, 5), (4, 3, 2, 3, 5)])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_the_gradient_is_that_of_a_mini_batch(widths, batch_size):
    layers = _layers(widths)
    key = jax.random.key(3)
    gathered = sampled_entries(ObservedEntries(*LISTS, PROBLEM.count), batch_size)(key, layers, 0)
    for ours, dense in zip(gathered, mini_batch(PROBLEM, batch_size)(key, layers, 0), strict=True):
        np.testing.assert_allclose(ours, dense, rtol=1e-4, atol=1e-5)


def test_padding_and_held_out_entries_are_never_drawn():
    """Three of six places are drawn from; a value elsewhere would show as NaN."""
    values = np.array([1.0, np.nan, np.nan, 2.0, 3.0, np.nan], np.float32)
    lists = (np.zeros(6, np.int32), np.arange(6, dtype=np.int32), values)
    entries = ObservedEntries(*map(jnp.asarray, lists), total=5, begin=1, held_out=2)
    layers = (jnp.ones((1, 6)), jnp.ones((1, 1)))
    first, second = sampled_entries(entries, 200)(jax.random.key(0), layers, 0)
    assert np.isfinite(np.asarray(second)).all()
    # Residuals are 0, -1 and -2 on the columns 0, 3 and 4.
    assert (np.asarray(first)[0] != 0).tolist() == [False, False, False, True, True, False]
