"""Partial pooling: linear mixed models by restricted maximum likelihood, from the second moments of environments."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

# The search starts at random effects of this standard deviation, in units of that of the errors.
START = 0.5
# It ends where no derivative of -2 log REML, divided by the number of environments, is larger than this; rounding may
# stop it earlier, which is no harm below the second number.
GRADIENT, LARGEST_GRADIENT = 1e-7, 1e-3
MOST_STEPS = 500
# A fit that leaves less than this share of the sum of squares of y leaves nothing but rounding.
PERFECT = 1e-15


class MixedModel(NamedTuple):
    """A fitted mixed model; `fit_mixed` has its equations.

    Attributes:
        fixed: (columns,), beta.
        covariance: (columns, columns), of the estimates of beta.
        factor: (random, random), L, lower triangular: the covariance of b_e is sigma^2 L L^T.
        variance: sigma^2, of the errors.
        best: (environments, random), the best linear unbiased predictions of b_e.
        criterion: -2 log of the restricted likelihood.
        converged: whether the search ended at a stationary point.

    Example, two environments with the means 0 and 4, of four rows each:
        >>> y = np.array([[-1.0, 1.0, -1.0, 1.0], [3.0, 5.0, 3.0, 5.0]])
        >>> rows = np.stack([np.ones_like(y), y], axis=2)
        >>> model = fit_mixed(np.einsum("eni,enj->eij", rows, rows), np.array([0]))
        >>> model.fixed.round(2).tolist(), model.best.round(1).ravel().tolist()
        ([2.0], [-1.9, 1.9])
    """

    fixed: np.ndarray
    covariance: np.ndarray
    factor: np.ndarray
    variance: float
    best: np.ndarray
    criterion: float
    converged: bool

    @property
    def between(self) -> np.ndarray:
        """(random, random), the covariance of b_e over environments."""
        return self.variance * self.factor @ self.factor.T


def fit_mixed(sums: np.ndarray, random: np.ndarray, *, diagonal: bool = False) -> MixedModel:
    """Fit y = X beta + Z b_e + error to the sums of products of each environment, by restricted maximum likelihood.

        b_e ~ N(0, sigma^2 L L^T),    errors ~ N(0, sigma^2)

    With A_e = Z^T Z, B_e = Z^T (X, y), M_e = I + L^T A_e L and P_e = L M_e^-1 L^T, all that depends on the rows is

        W = sum_e (X, y)^T V_e^-1 (X, y) = sum_e [ (X, y)^T (X, y) - B_e^T P_e B_e ],    V_e = I + Z L L^T Z^T
        -2 log REML = (N - p) (1 + log(2 pi sigma^2)) + sum_e log det M_e + log det W_xx

    where beta = W_xx^-1 W_xy and sigma^2 = (W_yy - W_yx beta) / (N - p) are the best for given L. Best predictions are
    b_e = P_e B_e (-beta, 1). L is found by BFGS, with G = (-beta, 1) (-beta, 1)^T / sigma^2 + W_xx^-1 along

        d(-2 log REML) / dL = 2 sum_e [ A_e - (I - A_e P_e) B_e G B_e^T ] L M_e^-1

    Args:
        sums: (environments, columns + 1, columns + 1), of products of (X, y); the first column of X is 1.
        random: the columns of X that are in Z.
        diagonal: whether L is.

    Reference: D. Bates, M. Mächler, B. Bolker and S. Walker, Journal of Statistical Software 67 (2015), section 3.

    Example, the levels of 200 environments have variance 4:
        >>> rng = np.random.default_rng(0)
        >>> y = 1.0 + 2.0 * rng.standard_normal((200, 1)) + rng.standard_normal((200, 20))
        >>> rows = np.stack([np.ones_like(y), y], axis=2)
        >>> found = fit_mixed(np.einsum("eni,enj->eij", rows, rows), np.array([0]))
        >>> found.between.round().tolist(), round(float(found.variance), 1)
        ([[4.0]], 1.0)
    """
    size, environments = len(random), len(sums)
    free = np.diag_indices(size) if diagonal else np.tril_indices(size)
    likelihood = _Likelihood(sums, random)

    def factor(parameters: np.ndarray) -> np.ndarray:
        found = np.zeros((size, size))
        found[free] = parameters
        return found

    def criterion(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = likelihood.criterion(factor(parameters))
        return value / environments, gradient[free] / environments

    if not size:
        return likelihood.model(factor(np.zeros(0)), converged=True)
    options = {"gtol": GRADIENT, "maxiter": MOST_STEPS}
    found = minimize(criterion, START * np.eye(size)[free], jac=True, method="BFGS", options=options)
    return likelihood.model(factor(found.x), converged=bool(np.abs(found.jac).max() < LARGEST_GRADIENT))


class _Likelihood:
    """-2 log REML as a function of L. Stacks of small matrices have the environments last, which NumPy vectorises."""

    def __init__(self, sums: np.ndarray, random: np.ndarray):
        self.total = sums.sum(0)
        self.rows = self.total[0, 0] - (len(self.total) - 1)  # N - p
        self.inner = np.ascontiguousarray(sums[:, random[:, None], random].transpose(1, 2, 0))  # A
        self.cross = np.ascontiguousarray(sums[:, random].transpose(1, 2, 0))  # B

    def criterion(self, factor: np.ndarray) -> tuple[float, np.ndarray]:
        """-2 log REML, and its gradient in L."""
        root, half, shrunk, weighted = self._parts(factor)
        fixed, beta, variance = self._solved(weighted)
        value = self.rows * (1 + np.log(2 * np.pi * variance))
        value += 2 * np.log(np.diagonal(root)).sum() + 2 * np.log(np.diag(fixed)).sum()
        columns = np.zeros_like(weighted)  # G = columns columns^T
        columns[:, 0] = np.append(-beta, 1.0) / np.sqrt(variance)
        columns[:-1, 1:] = solve_triangular(fixed, np.eye(len(fixed)), lower=True).T
        seen = _times(self.cross, columns)  # B columns
        drawn = _times(shrunk, columns)  # M^-1/2 L^T B columns
        remaining = seen - _products(self.inner, _products(half.swapaxes(0, 1), drawn))  # (I - A P) B columns
        gradient = np.tensordot(self.inner, _solve(root, half, transposed=True), ((1, 2), (1, 2)))
        gradient -= np.tensordot(remaining, _solve(root, drawn, transposed=True), ((1, 2), (1, 2)))
        return value, 2 * gradient

    def model(self, factor: np.ndarray, *, converged: bool) -> MixedModel:
        """All that is estimated, for the best L."""
        _, half, shrunk, weighted = self._parts(factor)
        fixed, beta, variance = self._solved(weighted)
        residual = np.append(-beta, 1.0)
        best = _products(half.swapaxes(0, 1), _times(shrunk, residual[:, None]))[:, 0].T
        inverse = solve_triangular(fixed, np.eye(len(fixed)), lower=True)
        value, _ = self.criterion(factor)
        return MixedModel(beta, variance * inverse.T @ inverse, factor, variance, best, value, converged)

    def _parts(self, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """R with M = R R^T; R^-1 L^T; R^-1 L^T B; and W."""
        scaled = np.einsum("ji,jkg->ikg", factor, self.inner)
        root = _cholesky(_times(scaled, factor) + np.eye(len(factor))[:, :, None])
        half = _solve(root, np.broadcast_to(factor.T[:, :, None], self.inner.shape))
        shrunk = _products(half, self.cross)
        return root, half, shrunk, self.total - np.tensordot(shrunk, shrunk, ((0, 2), (0, 2)))

    def _solved(self, weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The Cholesky factor of W_xx, beta and sigma^2."""
        fixed = np.linalg.cholesky(weighted[:-1, :-1])
        half = solve_triangular(fixed, weighted[:-1, -1], lower=True)
        left = max(weighted[-1, -1] - half @ half, PERFECT * self.total[-1, -1], np.finfo(float).tiny)
        return fixed, solve_triangular(fixed, half, lower=True, trans="T"), left / self.rows


def _times(stack: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """(i, j, e) and (j, k) -> (i, k, e)."""
    return np.matmul(matrix.T, stack)


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(i, j, e) and (j, k, e) -> (i, k, e), the product of the matrices of each environment."""
    return np.einsum("ije,jke->ike", left, right)


def _cholesky(matrices: np.ndarray) -> np.ndarray:
    """(size, size, e), R, lower triangular, with R R^T the matrix of each environment."""
    root = np.zeros_like(matrices)
    for column in range(len(matrices)):
        before = np.einsum("ije,je->ie", root[column:, :column], root[column, :column])
        rest = matrices[column:, column] - before
        root[column:, column] = rest / np.sqrt(rest[0])
    return root


def _solve(root: np.ndarray, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """(size, columns, e): R^-1 right, or R^-T right, for each environment."""
    found = np.zeros_like(right)
    triangle = root.swapaxes(0, 1) if transposed else root
    for row in reversed(range(len(root))) if transposed else range(len(root)):
        before = np.einsum("je,jke->ke", triangle[row], found)  # rows that are not found yet are zero
        found[row] = (right[row] - before) / root[row, row]
    return found
