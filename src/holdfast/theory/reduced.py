"""A run of HeteroSGD in four numbers: what the d x d factor does in the directions that matter, with sampling error."""

from typing import NamedTuple

import numpy as np

from holdfast.core.validation import COUNT, POSITIVE, require
from holdfast.environments import FiniteEnvironments
from holdfast.theory.epochs import ordered_visits
from holdfast.theory.strengths import diagonal_entries, diagonalised


class ReducedSignals(NamedTuple):
    """The signals of many runs after the last step, each (runs,).

    Attributes:
        invariant: R^2.
        spurious: Q^2.
        residual: ||E||_F^2.

    Example:
        >>> ReducedSignals(np.ones(3), np.zeros(3), np.zeros(3)).spurious.max().item()
        0.0
    """

    invariant: np.ndarray
    spurious: np.ndarray
    residual: np.ndarray


def reduced_signals(
    environments: FiniteEnvironments,
    *,
    step_size: float,
    steps: int,
    init_scale: float,
    dimension: int,
    batch_size: float,
    order: str = "independent",
    runs: int = 4000,
    seed: int = 0,
) -> ReducedSignals:
    """Signals after T steps for ranks r1 = r2 = 1, orthogonal subspaces and symmetric Gaussian measurements.

    With r = U^T u*, q = U^T v* and the residual W = U U^T - A* - A(e), whose batch error N has off-diagonal entries of
    variance w^2 / (2 m) and diagonal ones of w^2 / m, w = ||W||_F, the step U <- (I - eta (W + N)) U becomes

        R <- R (1 + eta (1 - R^2 - c^2 - f - n_uu))               R = ||r||
        c <- c (1 + eta (xi - R^2 - q^2 - n_vv)) - eta R n_uv     c = the part of q along r
        p^2 <- p^2 (1 + eta (xi - q^2 - n_vv))^2 + eta^2 (d - 2) alpha^2 w^2 / (2 m)
        f <- f (1 - eta R^2)^2 + eta^2 R^2 (d - 2) w^2 / (2 m)

    p is the rest of q, which starts at alpha, so that q^2 = c^2 + p^2; f = ||E||_F^2 has many entries and is replaced
    by its mean. Left out: the part of N along W, rotations of r, and products of small quantities.

    Args:
        environments: finitely many, with one spurious direction.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        dimension: d.
        batch_size: m.
        order: independent, reshuffled or cyclic.
        runs: how many.
        seed: of the visits and the errors.

    Example, in reshuffled order nine of ten runs end below 0.001:
        >>> from holdfast.environments import two_point
        >>> settings = {"step_size": 0.05, "steps": 200, "init_scale": 1e-3, "dimension": 100, "batch_size": 8000}
        >>> found = reduced_signals(two_point(1.0, 7.0), order="reshuffled", runs=500, **settings)
        >>> bool(np.quantile(found.spurious, 0.9) < 0.001), bool(found.invariant.min() > 0.9)
        (True, True)
    """
    for rule, name, value in (
        (COUNT, "steps", steps),
        (COUNT, "runs", runs),
        (COUNT, "dimension", dimension),
        (POSITIVE, "step_size", step_size),
        (POSITIVE, "init_scale", init_scale),
        (POSITIVE, "batch_size", batch_size),
    ):
        rule.check(name, value)
    diagonal = diagonalised(environments)
    one = isinstance(diagonal, FiniteEnvironments) and diagonal.rank == 1
    require(one, "environments must be finitely many with one spurious direction", f"rank {environments.rank}")
    assert isinstance(diagonal, FiniteEnvironments)
    visits = ordered_visits(diagonal, order, steps=steps, runs=runs, seed=seed)
    random = np.random.default_rng([seed, 1])  # not the stream of the visits
    size, aligned = np.full(runs, init_scale), np.zeros(runs)
    rest, residual = np.full(runs, init_scale**2), np.full(runs, (dimension - 2) * init_scale**2)
    others = max(dimension - 2, 0)
    for strength in diagonal_entries(diagonal.strengths)[visits, 0]:
        share, learned = aligned**2 + rest, size**2
        entry = ((learned - 1) ** 2 + (share - strength) ** 2 + 2 * learned * aligned**2) / (2 * batch_size)
        n_uv, n_uu, n_vv = np.sqrt(entry) * random.standard_normal((3, runs))
        pull = strength - share - np.sqrt(2) * n_vv
        size = size * (1 + step_size * (1 - learned - aligned**2 - residual - np.sqrt(2) * n_uu))
        residual = residual * (1 - step_size * learned) ** 2 + step_size**2 * learned * others * entry
        rest = rest * (1 + step_size * pull) ** 2 + step_size**2 * others * init_scale**2 * entry
        aligned = aligned * (1 + step_size * (pull - learned)) - step_size * np.sqrt(learned) * n_uv
    return ReducedSignals(size**2, aligned**2 + rest, residual)
