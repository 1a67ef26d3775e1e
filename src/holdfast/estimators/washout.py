"""Which features are left when what varies is washed out, and the amplification and step size that do it.

Nothing but the training table is looked at. The choice goes in four steps, each by the exponents of
`holdfast.theory.effects`:

1. The washing strengths eta (1 + k)^2 at which the single features would die, found from their effects at the start,
   give the range of strengths worth trying, from one that spares almost all of them to one that spares almost none.
2. Runs of the dynamics at each of them, from a small start and in random orders, leave sets of features alive.
3. Each set is taken to where the dynamics would take it in the end. At the pooled fit of the set its features have no
   mean gradient, so every exponent is -eta (1 + k)^2 Var / 2 at most: a feature whose effect varies beyond sampling
   error has a negative exponent at any amplification and goes, the most variable first. A feature outside the set with
   a mean gradient comes in if all effects hold in its company: that alone counts, since the gradients of one that is
   missing vary with whatever it causes. A set of features that separates two classes perfectly leaves no errors that
   could vary; there the exponents at the start decide, where nothing is fitted yet.
4. Among the sets that stay as they are, the one that predicts best (by the Bayesian information criterion) is kept.
   For gradients and for effects, the strength whose runs came closest to it is a finalist, and so is the smallest
   amplification from there on at which the exponents of all features that vary are clearly negative; the finalist
   whose repeated runs agree best with the kept set is chosen.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from holdfast.algorithms.hadamard import Slopes, amplified, excess_share
from holdfast.estimators.dynamics import Cell, Paths, Program, wash
from holdfast.estimators.evidence import Equality, Evidence, Fitted, equality, tolerant_slopes
from holdfast.theory.effects import effect_exponents, washing_strength

STRENGTHS = 6  # tried, spaced geometrically
SCAN_ORDERS = 2  # random orders at each of them
LARGEST_STEP, SMALLEST_STEP = 0.05, 0.002
# The largest change of a factor in a step: beyond it log(1 - x) is no longer near -x - x^2/2 and factors hit the clip.
LARGEST_CHANGE = 0.7
# Clearly negative: a washed-out factor falls by this many powers of e in a run.
CLEARLY = 4.0
# A classifier that is this sure of all rows leaves too little for a test of its effects.
LEAST_INFORMATION = 0.01
# Features that rows can tell apart, for each row; larger sets fit anything.
MOST_FEATURES = 0.5
# Of a large set that varies, this share is removed at once.
REMOVED_SHARE = 0.1


class Washout(NamedTuple):
    """What is left, and why.

    Attributes:
        kept: (features,), the features that survive.
        fitted: the pooled fit of these features.
        cell: step size, amplification and scaling.
        slopes: gradients of all features at `fitted`.
        varies: (features,), whether an effect varies beyond sampling error at `fitted`, or would make the kept effects
            vary.
        exponents: (features,), the larger of the exponents of u and v at `fitted`; for kept features that of the
            factor that carries the coefficient.
        paths: the runs of the chosen cell.
        test: of equal effects of the kept features.
        pooled_test: of equal effects of all features, at the pooled fit.
        pooled: the pooled fit of all features.
        sets_tried: how many sets of features were looked at.
    """

    kept: np.ndarray
    fitted: Fitted
    cell: Cell
    slopes: Slopes
    varies: np.ndarray
    exponents: np.ndarray
    paths: Paths
    test: Equality
    pooled_test: Equality
    pooled: Fitted
    sets_tried: int


def washout(
    evidence: Evidence,
    program: Program,
    *,
    significance: float,
    orders: int,
    seed: int,
    step_size: float | None = None,
    amplification: float | None = None,
) -> Washout:
    """Wash out what varies.

    Args:
        evidence: the table, for decisions in double precision.
        program: the same table, for the runs.
        significance: level of the tests for variation.
        orders: random orders of the environments in the runs that are reported.
        seed: of these orders.
        step_size: eta; None: chosen.
        amplification: k; None: chosen.
    """
    critical = critical_variation(evidence, significance)
    cells = _cells(evidence, critical, step_size, amplification)
    runs = wash(program, cells, critical, SCAN_ORDERS, seed)
    search = _Search(evidence, critical, significance)
    everything, nothing = np.ones(evidence.dimension, bool), np.zeros(evidence.dimension, bool)
    for kept in (nothing, everything, *(row for paths in runs for row in _distinct(paths.survived))):
        search.settle(kept)
    kept, fitted = search.best()
    finalists = _finalists(evidence, fitted, kept, cells, runs, critical, (step_size, amplification), program)
    repeated = wash(program, finalists, critical, orders, seed + 1)
    chosen = int(np.argmax([_agreement(paths, kept) for paths in repeated]))
    cell, paths = finalists[chosen], repeated[chosen]
    slopes, tolerant = evidence.slopes(fitted), tolerant_slopes(evidence, fitted)
    pooled = evidence.solve(np.arange(evidence.dimension))
    return Washout(
        kept,
        fitted,
        cell,
        slopes,
        (np.asarray(excess_share(tolerant, evidence.weights, 1.0, critical)) > 0) | search.unsettling(kept, fitted),
        _exponents(tolerant, evidence, fitted, cell, critical),
        paths,
        equality(evidence, fitted, np.flatnonzero(kept)),
        equality(evidence, pooled, np.arange(evidence.dimension)),
        pooled,
        len(search.seen),
    )


def critical_variation(evidence: Evidence, significance: float) -> float:
    """The quantile of the variation of an effect that none of the features passes by chance (Bonferroni)."""
    environments = len(evidence.counts)
    return float(chi2.isf(significance / evidence.dimension, environments - 1)) if environments > 1 else np.inf


def _amplified(slopes: Slopes, evidence: Evidence, cell: Cell, critical: float) -> np.ndarray:
    return np.asarray(amplified(slopes, evidence.weights, cell.amplification, cell.scaling, critical))


def _exponents(slopes: Slopes, evidence: Evidence, fitted: Fitted, cell: Cell, critical: float) -> np.ndarray:
    both = effect_exponents(cell.step_size, _amplified(slopes, evidence, cell, critical))
    w = fitted.coefficients
    return np.where(w > 0, both[0], np.where(w < 0, both[1], both.max(0)))


def _surplus(slopes: Slopes, evidence: Evidence, scaling: float, critical: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean gradients, and for each environment what an amplification of 1 adds to them."""
    plain, once = (np.asarray(amplified(slopes, evidence.weights, k, scaling, critical)) for k in (0.0, 1.0))
    return evidence.weights @ np.asarray(slopes.gradient), once - plain


def _cells(evidence: Evidence, critical: float, step_size: float | None, amplification: float | None) -> list[Cell]:
    start = tolerant_slopes(evidence, Fitted(np.zeros(evidence.dimension), 0.0))
    mean, surplus = _surplus(start, evidence, 0.0, critical)
    largest = float(np.abs(surplus).max())
    if largest == 0:  # one environment, or none that differ: nothing to amplify
        return [Cell(step_size or LARGEST_STEP, amplification or 0.0, 0.0)]
    strengths = washing_strength(mean, np.mean(surplus**2, 0))
    strengths = strengths[np.isfinite(strengths) & (strengths > 0)]
    highest = LARGEST_CHANGE**2 / (largest**2 * SMALLEST_STEP)
    # where all that varies has no mean effect at all, nothing grows and any strength will do
    weakest, strongest = (strengths.min(), strengths.max()) if len(strengths) else (0.0, 0.0)
    low = float(np.clip(weakest / 4, 1.0, highest / 10))
    high = float(np.clip(strongest * 4, 10 * low, highest))
    cells = []
    for strength in np.geomspace(low, high, STRENGTHS):
        eta = step_size or float(np.clip(LARGEST_CHANGE**2 / (strength * largest**2), SMALLEST_STEP, LARGEST_STEP))
        k = max(np.sqrt(strength / eta) - 1, 0.0) if amplification is None else amplification
        cells += [Cell(eta, float(k), scaling) for scaling in (0.0, 1.0)]
    return list(dict.fromkeys(cells))


def _finalists(
    evidence: Evidence,
    fitted: Fitted,
    kept: np.ndarray,
    cells: list[Cell],
    runs: list[Paths],
    critical: float,
    given: tuple[float | None, float | None],
    program: Program,
) -> list[Cell]:
    """For each scaling, the cell whose runs came closest to the kept set, as it is and with clear exponents."""
    out = []
    for scaling in sorted({cell.scaling for cell in cells}):
        pairs = [(cell, paths) for cell, paths in zip(cells, runs, strict=True) if cell.scaling == scaling]
        nearest, _ = max(pairs, key=lambda pair: _agreement(pair[1], kept))
        out += [_clear(evidence, fitted, kept, nearest, critical, given, program), nearest]
    return list(dict.fromkeys(out))


def _agreement(paths: Paths, kept: np.ndarray) -> float:
    return float(np.mean(paths.survived == kept))


def _clear(
    evidence: Evidence,
    fitted: Fitted,
    kept: np.ndarray,
    start: Cell,
    critical: float,
    given: tuple[float | None, float | None],
    program: Program,
) -> Cell:
    """The smallest amplification, from that of `start` on, that clearly washes out every effect that varies."""
    step_size, amplification = given
    slopes = tolerant_slopes(evidence, fitted)
    _, surplus = _surplus(slopes, evidence, start.scaling, critical)
    varying = ~kept & (np.abs(surplus).max(0) > 0)
    if not varying.any() or amplification is not None:
        return start
    largest = float(np.abs(surplus[:, varying]).max())
    cell = start
    for k in (1 + start.amplification) * np.geomspace(1, 100, 25) - 1:
        # a larger amplification needs smaller steps, for the factors to stay within reach of the exponents
        eta = step_size or float(np.clip(LARGEST_CHANGE / ((1 + k) * largest), SMALLEST_STEP, start.step_size))
        cell = Cell(eta, float(k), start.scaling)
        both = effect_exponents(eta, _amplified(slopes, evidence, cell, critical)[:, varying])
        if both.max() * program.sweeps * program.environments < -CLEARLY or eta <= SMALLEST_STEP:
            break
    return cell


def _distinct(rows: np.ndarray) -> np.ndarray:
    return np.unique(rows, axis=0)


class _Search:
    """The sets of features that were looked at, and which of them stay as they are."""

    def __init__(self, evidence: Evidence, critical: float, significance: float):
        self.evidence, self.critical, self.significance = evidence, critical, significance
        self.rows = float(evidence.counts.sum())
        self.start = tolerant_slopes(evidence, evidence.solve(np.arange(0)))
        self.seen: dict[bytes, bool] = {}
        self.stable: list[tuple[float, np.ndarray, Fitted]] = []

    def settle(self, kept: np.ndarray) -> None:
        """Follow a set to where the exponents take it; stop where another set has been before."""
        while kept.tobytes() not in self.seen and kept.sum() <= MOST_FEATURES * self.rows:
            columns = np.flatnonzero(kept)
            fitted = self.evidence.solve(columns)
            # features that do nothing would only dilute the test of those that do
            needed = self._without_the_idle(kept, fitted)
            if not np.array_equal(needed, kept):
                self.seen[kept.tobytes()] = False
                kept = needed
                continue
            open_questions = self.evidence.information(fitted) >= LEAST_INFORMATION
            slopes = tolerant_slopes(self.evidence, fitted) if open_questions else self.start
            equal = equality(self.evidence, fitted, columns).significance >= self.significance
            accepted = equal and (open_questions or not self._excess(slopes, self.critical)[columns].any())
            self.seen[kept.tobytes()] = accepted
            if accepted:
                penalty = len(columns) * np.log(max(self.rows, 2.0))
                self.stable.append((self.evidence.deviance(fitted) + penalty, kept, fitted))
                kept = self._with_one_more(kept, fitted)
            else:
                kept = self._without_the_most_variable(kept, slopes)

    def best(self) -> tuple[np.ndarray, Fitted]:
        _, kept, fitted = min(self.stable, key=lambda entry: entry[0])
        return kept, fitted

    def _excess(self, slopes: Slopes, critical: float) -> np.ndarray:
        return np.asarray(excess_share(slopes, self.evidence.weights, 1.0, critical))

    def _without_the_most_variable(self, kept: np.ndarray, slopes: Slopes) -> np.ndarray:
        columns = np.flatnonzero(kept)
        variation = self._excess(slopes, 1e-9)[columns]  # increasing in T, since the critical value is next to nothing
        count = max(1, int(REMOVED_SHARE * len(columns)))
        left = kept.copy()
        left[columns[np.argsort(-variation, kind="stable")[:count]]] = False
        return left

    def _with_one_more(self, kept: np.ndarray, fitted: Fitted) -> np.ndarray:
        grows, ranks = self._growing(kept, fitted)
        candidates = np.flatnonzero(grows)
        for column in candidates[np.argsort(-ranks[candidates], kind="stable")]:
            more = kept.copy()
            more[column] = True
            if self._equal(more):
                return more
        return kept

    def unsettling(self, kept: np.ndarray, fitted: Fitted) -> np.ndarray:
        """(features,): those outside that would gain something, but together with which the kept effects vary."""
        grows, _ = self._growing(kept, fitted)
        single = np.eye(len(kept), dtype=bool)
        return np.array([one and not self._equal(kept | more) for one, more in zip(grows, single, strict=True)])

    def _equal(self, kept: np.ndarray) -> bool:
        columns = np.flatnonzero(kept)
        return equality(self.evidence, self.evidence.solve(columns), columns).significance >= self.significance

    def _growing(self, kept: np.ndarray, fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
        """Features outside whose mean gradient would pay for them in the information criterion, and by how much."""
        slopes = self.evidence.slopes(fitted)
        weights = self.evidence.weights[:, None]
        error = np.sqrt(np.maximum((weights**2 * slopes.variance).sum(0), 1e-300))
        ranks = np.abs((weights * slopes.gradient).sum(0)) / error
        return ~kept & (ranks > np.sqrt(np.log(max(self.rows, 2.0)))), ranks

    def _without_the_idle(self, kept: np.ndarray, fitted: Fitted) -> np.ndarray:
        """Leave out the least of the features that do not pay for themselves in the information criterion."""
        columns = np.flatnonzero(kept)
        if len(columns) == 0:
            return kept
        weights = self.evidence.weights[:, None, None]
        _, curvature, covariance = self.evidence.joint(fitted, columns)
        inverse = np.linalg.pinv((weights * curvature).sum(0), hermitian=True)
        errors = np.sqrt(np.maximum(np.diag(inverse @ (weights**2 * covariance).sum(0) @ inverse), 1e-300))
        gains = np.abs(fitted.coefficients[columns]) / errors
        count = max(1, int(REMOVED_SHARE * len(columns)))
        least = np.argsort(gains, kind="stable")[:count]
        left = kept.copy()
        left[columns[least[gains[least] < np.sqrt(np.log(max(self.rows, 2.0)))]]] = False
        return left
