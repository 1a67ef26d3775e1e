"""The auxiliary sequences of the proofs of Xu, Gu and Fang (NeurIPS 2024), appendix A.2.

Time is the last axis everywhere; all other axes are draws and broadcast.
"""

import numpy as np
from numpy.typing import ArrayLike


def invariant_sequence(step_size: ArrayLike, init_scale: ArrayLike, steps: int) -> np.ndarray:
    """The size of the invariant signal without errors: R_{t+1} = (1 - eta R_t^2 + eta) R_t, R_0 = alpha (eq. 25).

    Args:
        step_size: eta.
        init_scale: alpha.
        steps: how often to iterate.

    Returns:
        R_0, ..., R_steps along the last axis.

    Example:
        >>> round(float(invariant_sequence(0.05, 1e-3, 400)[-1]), 6)
        1.0
    """
    step_size, current = np.broadcast_arrays(np.asarray(step_size, float), np.asarray(init_scale, float))
    values = np.empty((*current.shape, steps + 1))
    values[..., 0] = current
    for step in range(steps):
        current = (1 - step_size * current**2 + step_size) * current
        values[..., step + 1] = current
    return values


def envelopes(step_size: ArrayLike, init_scale: ArrayLike, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper envelope of the invariant sequence (eq. 31, Definition 2).

        upper_{t+1} = (1 - eta upper_t^2 + eta) upper_t + c upper_t
        lower_{t+1} = (1 - eta lower_t^2 + eta) lower_t - c upper_t,    c = eta / (32 log(1 / alpha))

    Both start at alpha. The upper sequence drives both corrections, as printed.
    """
    step_size, init_scale = np.broadcast_arrays(np.asarray(step_size, float), np.asarray(init_scale, float))
    correction = step_size / (32 * np.log(1 / init_scale))
    lower, upper = (np.empty((*init_scale.shape, steps + 1)) for _ in range(2))
    lower[..., 0] = upper[..., 0] = init_scale
    for step in range(steps):
        below, above = lower[..., step], upper[..., step]
        upper[..., step + 1] = (1 - step_size * above**2 + step_size) * above + correction * above
        lower[..., step + 1] = (1 - step_size * below**2 + step_size) * below - correction * above
    return lower, upper


def calibration_line(
    invariant: ArrayLike, init_scale: float, bound: float, isometry: ArrayLike, rank: int
) -> np.ndarray:
    """L_t = max(alpha, 40 M delta sqrt(r1 + r2) R_t) (eq. 38, Definition 3).

    Args:
        invariant: R_t.
        init_scale: alpha.
        bound: M, the bound on the spurious strengths that Assumption 2 calls M1.
        isometry: delta.
        rank: r1 + r2.
    """
    return np.maximum(init_scale, 40 * bound * np.asarray(isometry) * np.sqrt(rank) * np.asarray(invariant))


def growth_factors(step_size: ArrayLike, strengths: ArrayLike) -> np.ndarray:
    """1 + eta xi + 2 eta, by which Definitions 4 and 5 multiply in each step; 2 eta makes room for the errors."""
    return 1 + np.asarray(step_size) * (np.asarray(strengths) + 2)


def controller(factors: np.ndarray, line: np.ndarray, init_scale: float, barrier: float = np.inf) -> np.ndarray:
    """q_t, reflected upwards at L_t and absorbed at `barrier` L_t (Definition 4).

    Without absorption q_{t+1} = max(f_{t+1} q_t, L_{t+1}), so with the sums S_t of log f

        log q_t = S_t + max(log alpha, max_{1 <= k <= t} log L_k - S_k)

    which needs no loop over the steps.

    Args:
        factors: f_1, ..., f_T along the last axis, positive.
        line: L_0, ..., L_T.
        init_scale: alpha, the start.
        barrier: p^-1.5 r2^1.5.

    Returns:
        q_0, ..., q_T along the last axis.

    Example:
        >>> controller(np.array([2.0, 0.1, 2.0, 2.0]), np.ones(5), 1.0, barrier=3.0)
        array([1., 2., 1., 2., 4.])
    """
    walk = np.concatenate([np.zeros((*factors.shape[:-1], 1)), np.cumsum(np.log(factors), -1)], -1)
    levels = np.log(line) - walk
    levels[..., 0] = np.log(init_scale)
    values = np.exp(walk + np.maximum.accumulate(levels, -1))
    absorbed = np.maximum.accumulate(values >= barrier * line, -1)
    # From the first hit on, every step has the value of that hit.
    hit = np.where(absorbed.any(-1), absorbed.argmax(-1), factors.shape[-1])[..., None]
    return np.where(absorbed, np.take_along_axis(values, hit, -1), values)


def row_process(factors: np.ndarray, line: np.ndarray, row: int) -> np.ndarray:
    """X_{k,t} of row k: L_k up to t = k, then multiplied by the factors (Definition 5).

    Eq. 40 prints L_t for t <= k, the matrix below it L_k. We follow the matrix: L_t grows, and with it the 2/3 power
    would not be a supermartingale before k, against Lemma 7.

    Args:
        factors: f_1, ..., f_T along the last axis.
        line: L_0, ..., L_T.
        row: k.
    """
    still = np.ones((*factors.shape[:-1], row + 1))
    return line[row] * np.concatenate([still, np.cumprod(factors[..., row:], -1)], -1)


def supermartingale_factor(step_size: ArrayLike, bias: ArrayLike, heterogeneity: ArrayLike) -> np.ndarray:
    """E (1 + eta xi + 2 eta)^(2/3) for strengths xi = bias -+ heterogeneity; Lemma 7 wants it at most one.

    Example:
        >>> float(supermartingale_factor(0.05, 1.0, 6.0)) > 1 > float(supermartingale_factor(7e-6, 0.0, 2000.0))
        True
    """
    bias, heterogeneity = np.asarray(bias, float), np.asarray(heterogeneity, float)
    low, high = (growth_factors(step_size, bias + sign * heterogeneity) for sign in (-1, 1))
    return (np.abs(low) ** (2 / 3) + np.abs(high) ** (2 / 3)) / 2


def step_size_window(bias: ArrayLike, heterogeneity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(24 / M2, 1 / (64 M1)) of Theorem 2 and Lemma 7 for strengths bias -+ heterogeneity; empty if out of order.

    M1 = |s| + M and M2 = M^2 / (1 + |s|) are the ends of what Assumption 2 allows.

    Example:
        >>> [round(float(end), 4) for end in step_size_window(1.0, 6.0)]
        [1.3333, 0.0022]
    """
    size, spread = np.abs(np.asarray(bias, float)), np.asarray(heterogeneity, float)
    return 24 * (1 + size) / spread**2, 1 / (64 * (size + spread))


def supermartingale_threshold(bias: ArrayLike, heterogeneity: ArrayLike) -> np.ndarray:
    """The least step size at which the supermartingale factor is at most one, by bisection.

    The search ends at 24 / M2, the lower end of the window; that is the result where the factor still exceeds one.
    """
    high = step_size_window(bias, heterogeneity)[0]
    low = np.zeros_like(high)
    for _ in range(60):
        middle = (low + high) / 2
        above = supermartingale_factor(middle, bias, heterogeneity) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high
