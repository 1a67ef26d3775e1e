"""An answer from measurements: the problem behind them, its assumptions, and what HeteroSGD would do on it."""

from typing import Any, NamedTuple

import numpy as np

from holdfast.core.progress import counted
from holdfast.core.validation import NOT_NEGATIVE
from holdfast.sensing.ensembles import Ensemble
from holdfast.theory.assumptions import LARGEST_SEARCH, Check, check_assumptions
from holdfast.theory.diagnosis import Diagnosis, diagnose, plain
from holdfast.theory.estimation import Estimated, blocks, estimate


class Findings(NamedTuple):
    """An estimated problem and what follows from it.

    Attributes:
        estimated: the problem and how well it is known.
        checks: the assumptions of the paper; none without an invariant and a spurious signal.
        diagnosis: of its environments; None without a spurious signal.
        sentences: the answer in words.

    Example, measurements of a signal that is the same in both environments:
        >>> random = np.random.default_rng(0)
        >>> x, e = random.standard_normal((4000, 6, 6)), np.repeat(["a", "b"], 2000)
        >>> found = examine(x, x[:, 0, 0], e)
        >>> found.diagnosis is None
        True
        >>> print(found.sentences[0])
        Found an invariant signal of rank 1 and a spurious one of rank 0 in 2 environments.
    """

    estimated: Estimated
    checks: list[Check]
    diagnosis: Diagnosis | None
    sentences: tuple[str, ...]

    def asdict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        estimated, problem = self.estimated, self.estimated.problem
        overlap = np.asarray(problem.invariant_basis).T @ np.asarray(problem.spurious_basis)
        return {
            "dimension": problem.dimension,
            "invariant_rank": problem.invariant_rank,
            "spurious_rank": problem.spurious_rank,
            "invariant_spectrum": plain(np.asarray(problem.invariant_spectrum)),
            "overlap": float(np.linalg.norm(overlap, 2)) if overlap.size else 0.0,
            "environments": [
                {"label": label, "count": count, "strengths": plain(strength), "standard_error": float(error)}
                for label, count, strength, error in zip(
                    estimated.labels,
                    estimated.counts,
                    np.asarray(problem.environments.strengths),  # type: ignore[union-attr]
                    estimated.standard_error,
                    strict=True,
                )
            ],
            "noise": plain(estimated.residual),
            "assumptions": [
                {**check._asdict(), "limit": plain(check.limit), "holds": check.holds} for check in self.checks
            ],
            **(self.diagnosis.asdict() if self.diagnosis else {"lyapunov": None, "sharp_window": None}),
            "advice": " ".join(self.sentences),
        }


def examine(
    measurements: Any,
    responses: np.ndarray,
    environment: np.ndarray,
    *,
    step_size: float = 0.05,
    steps: int = 200,
    init_scale: float = 1e-3,
    confidence: float = 0.95,
    tolerance: float = 0.01,
    batch_size: int | None = None,
    noise_variance: float | None = None,
    ensemble: str | Ensemble | None = None,
) -> Findings:
    """Estimate the problem behind measurements, check the paper's assumptions on it and say what HeteroSGD would do.

    Args:
        measurements: X, (n, d, d).
        responses: y, (n,).
        environment: labels, (n,).
        step_size: eta.
        steps: T.
        init_scale: alpha.
        confidence: wanted probability that the spurious share ends below the tolerance.
        tolerance: largest spurious share that counts as washed out.
        batch_size: fresh measurements of one environment in each step; as many as the smallest environment has, if it
            is not given.
        noise_variance: of the label noise, in the units of the squared responses; as estimated from the measurements,
            if it is not given.
        ensemble: of the measurements; if it is not given, "symmetric" where all of them are symmetric matrices, and
            "gaussian" elsewhere.

    Example:
        >>> random = np.random.default_rng(0)
        >>> x, e = random.standard_normal((4000, 6, 6)), np.repeat(["a", "b"], 2000)
        >>> found = examine(x, x[:, 0, 0] + np.where(e == "a", -4.0, 6.0) * x[:, 1, 1], e)
        >>> print(found.sentences[0])
        Found an invariant signal of rank 1 and a spurious one of rank 1 in 2 environments.
    """
    estimated = estimate(measurements, responses, environment)
    problem = estimated.problem
    if problem.spurious_rank == 0:
        return Findings(estimated, [], None, tuple(_about_signals(estimated)))
    spectrum = np.abs(np.asarray(problem.invariant_spectrum)) if problem.invariant_rank else 1.0
    if batch_size is None:
        batch_size = min(estimated.counts)
    # Problem and residual are those of measurements and responses divided by the scale.
    noise = float(np.mean(np.square(estimated.residual)))
    if noise_variance is not None:
        NOT_NEGATIVE.check("noise_variance", noise_variance)
        noise = noise_variance / estimated.scale**2
    # The step size of the user acts on measurements of their scale: (1/m) sum <X, W> X is scale^2 W.
    diagnosis = diagnose(
        problem.environments,
        step_size=step_size * estimated.scale**2,
        steps=steps,
        init_scale=init_scale,
        confidence=confidence,
        tolerance=tolerance,
        spectrum=spectrum,
        dimension=problem.dimension,
        batch_size=batch_size,
        noise_variance=noise,
        ensemble=ensemble or ("symmetric" if _all_symmetric(measurements) else "gaussian"),
    )
    checks = []
    if problem.invariant_rank:
        sample = None
        if problem.dimension <= LARGEST_SEARCH:
            rows = np.flatnonzero(np.asarray(environment) == estimated.labels[0])
            # Only the span of these rows is read from a file.
            sample = np.asarray(measurements[rows[0] : rows[-1] + 1])[rows - rows[0]] / estimated.scale
        checks = check_assumptions(problem, sample)
    return Findings(estimated, checks, diagnosis, (*_about_signals(estimated), *diagnosis.sentences))


def _all_symmetric(measurements: Any) -> bool:
    """Whether every measurement is a symmetric matrix; reading ends at the first block with one that is not."""
    return all(np.allclose(block, np.swapaxes(block, 1, 2)) for block in blocks(measurements, np.shape(measurements)))


def _about_signals(estimated: Estimated) -> list[str]:
    problem = estimated.problem
    if problem.invariant_rank == problem.spurious_rank == 0:
        sentences = ["No signal rises above the noise: there is nothing to learn from these measurements."]
    else:
        sentences = [
            f"Found an invariant signal of rank {problem.invariant_rank} and a spurious one of rank "
            f"{problem.spurious_rank} in {counted(len(estimated.labels), 'environment')}."
        ]
        if problem.invariant_rank == 0:
            sentences.append("Nothing is invariant: what survives HeteroSGD is not a signal.")
        if estimated.signed:
            sentences.append("The invariant signal has negative eigenvalues: fit U U^T - V V^T, not U U^T.")
        if estimated.scale != 1:
            sentences.append(
                f"The measurements have the scale {estimated.scale:.3g} instead of 1: the step sizes below are for "
                f"measurements divided by it. For yours, divide them by {estimated.scale**2:.3g}."
            )
    if problem.spurious_rank == 0:
        alone = "There is only one environment: a signal that varies looks like one that does not, and"
        alike = "The environments do not differ beyond the noise: nothing varies, so"
        sentences.append(f"{alike if len(estimated.labels) > 1 else alone} nothing can be washed out.")
    return sentences
