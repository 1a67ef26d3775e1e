"""Mini-batches of a list of observed entries, for matrices too large for dense weights.

The gradient of `holdfast.completion.oracles.mini_batch` at the cost of the entries that are drawn: their rows and
columns are gathered, nothing of the size of the matrix is formed.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from holdfast.completion.deep_linear_network import LayerGradient, Layers
from holdfast.completion.oracles import drawn_entries


class ObservedEntries(NamedTuple):
    """Observed entries of a matrix as a list, perhaps padded, so that lists of similar size share a program.

    Attributes:
        rows: (length,), row i of each entry.
        columns: (length,), its column j.
        values: (length,), its value.
        total: N, how many of them there are; the rest of the list is never drawn.
        begin: the first entry that is held out.
        held_out: how many entries from there on are held out: they are never drawn.

    Example, the first of three entries is held out:
        >>> rows, columns, values = jnp.array([0, 0, 1]), jnp.array([0, 1, 1]), jnp.array([1.0, 2.0, 3.0])
        >>> entries = ObservedEntries(rows, columns, values, total=3, begin=0, held_out=1)
        >>> entries.total - entries.held_out
        2
    """

    rows: ArrayLike
    columns: ArrayLike
    values: ArrayLike
    total: Any
    begin: Any = 0
    held_out: Any = 0


def sampled_entries(entries: ObservedEntries, batch_size: int) -> LayerGradient:
    """The gradient of half the mean square over m observed entries, drawn uniformly with replacement.

        p_0 = e_j,  p_l = W_l p_{l-1},    q_L = e_i,  q_{l-1} = W_l^T q_l,    residual = A_ij - value
        gradient of W_l = mean over the batch of residual q_l p_{l-1}^T

    as in `holdfast.completion.deep_linear_network.entry_gradient`; with the same keys it is that of `mini_batch`.

    Args:
        entries: what is observed, and what of it is held out.
        batch_size: m.

    Example, d/dW of (A_01 - 1)^2 / 2 for two layers, 1 and (1, 3):
        >>> entries = ObservedEntries(jnp.array([0]), jnp.array([1]), jnp.array([1.0]), 1)
        >>> layers = (jnp.array([[1.0, 3.0]]), jnp.ones((1, 1)))
        >>> first, second = sampled_entries(entries, 1)(jax.random.key(0), layers, 0)
        >>> first.tolist(), second.tolist()
        ([[0.0, 2.0]], [[6.0]])
    """
    rows, columns, values = (jnp.asarray(part) for part in entries[:3])

    def gradient(key: jax.Array, layers: Layers, step: ArrayLike) -> Layers:
        if len(layers) < 2:
            raise ValueError(f"layers must be at least two, got {len(layers)}")
        drawn = drawn_entries(key, (batch_size,), entries.total - entries.held_out)
        entry = jnp.where(drawn >= entries.begin, drawn + entries.held_out, drawn)
        row, column = rows[entry], columns[entry]
        forwards, backwards = [layers[0][:, column].T], [layers[-1][row]]  # p_1 and q_{L-1}, one row for each entry
        for layer in layers[1:-1]:
            forwards.append(forwards[-1] @ layer.T)
        for layer in reversed(layers[1:-1]):
            backwards.append(backwards[-1] @ layer)
        scaled = (jnp.sum(forwards[-1] * backwards[0], 1) - values[entry])[:, None] / batch_size
        backwards.reverse()  # q_1, ..., q_{L-1}
        inner = [(scaled * q).T @ p for q, p in zip(backwards[1:], forwards, strict=False)]
        return (
            jnp.zeros_like(layers[0]).at[:, column].add((scaled * backwards[0]).T),
            *inner,
            jnp.zeros_like(layers[-1]).at[row].add(scaled * forwards[-1]),
        )

    return gradient
