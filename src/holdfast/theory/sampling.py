"""Finite batches: what is measured in them, and the residual that sampling error sustains under HeteroSGD."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.validation import NOT_NEGATIVE, POSITIVE, Count, check_fields, require
from holdfast.sensing.ensembles import Ensemble, named_ensemble
from holdfast.sensing.environments import Environments, FiniteEnvironments


class SamplingOptions(TypedDict, total=False):
    """The arguments of `Sampling`, as keyword arguments of the predictions that take them."""

    batch_size: float | None
    noise_variance: float
    dimension: int
    spectrum: ArrayLike
    ensemble: str | Ensemble


@dataclass(frozen=True)
class Sampling:
    """What a step measures, for all predictions with sampling error.

    Attributes:
        batch_size: m, fresh measurements of one environment in each step; None: no sampling error.
        noise_variance: sigma^2, of the label noise; 0 without a batch.
        dimension: d.
        spectrum: eigenvalues of A*, positive; a single one stands for r1 = 1.
        ensemble: of the measurements, "symmetric" (tau = 1/2), "gaussian" (tau = 1) or an `Ensemble`.

    Example, what predictions without sampling error assume:
        >>> Sampling().eigenvalues.tolist(), Sampling().entry_variance
        ([1.0], 0.5)
    """

    batch_size: Annotated[float | None, POSITIVE] = None
    noise_variance: Annotated[float, NOT_NEGATIVE] = 0.0
    dimension: Count = 100
    spectrum: ArrayLike = 1.0
    ensemble: str | Ensemble = "symmetric"

    def __post_init__(self) -> None:
        check_fields(self)
        contract = "noise_variance must be 0 without a batch_size, because an infinite batch averages the noise out"
        require(self.batch_size is not None or self.noise_variance == 0, contract, self.noise_variance)
        values = np.asarray(self.spectrum)
        proper = values.ndim <= 1 and values.size > 0 and values.dtype.kind in "fiu"
        proper = proper and bool((np.isfinite(values) & (values > 0)).all())
        require(proper, "spectrum must hold positive numbers", repr(self.spectrum))
        named_ensemble(self.ensemble)

    @property
    def eigenvalues(self) -> np.ndarray:
        """The spectrum as an array, (r1,)."""
        return np.atleast_1d(np.asarray(self.spectrum, float))

    @property
    def entry_variance(self) -> float:
        """tau, the variance of an entry of a measurement off the diagonal."""
        return named_ensemble(self.ensemble).entry_variance

    @property
    def words(self) -> str:
        """What a step measures, for a sentence."""
        return "without sampling error" if self.batch_size is None else f"with fresh batches of {self.batch_size}"


def mean_square_strength(environments: Environments) -> float:
    """E ||S(e)||_F^2."""
    if isinstance(environments, FiniteEnvironments):
        squares = np.square(np.asarray(environments.strengths, float)).sum((1, 2))
        weights = np.asarray(environments.probabilities, float)
        return float(squares @ weights / weights.sum())
    location, scale = np.asarray(environments.location, float), np.asarray(environments.scale, float)
    return float(np.square(location).sum() + np.square(scale).sum() * environments.deviation.expectation(np.square))


def residual_floor(
    environments: Environments,
    step_size: float,
    dimension: int,
    batch_size: float,
    invariant_rank: int = 1,
    *,
    ensemble: str | Ensemble = "symmetric",
) -> float:
    """The residual ||E||_F^2 that sampling error sustains once A* of unit spectrum is learned and nothing else.

    With P = A* a batch adds noise of variance tau ||S(e)||_F^2 / m to the entries of G off the diagonal, tau that of
    an entry of a measurement. It drives each of d r1 entries of E, and the invariant signal pulls them back by 1 - eta
    a step:

        ||E||_F^2 = eta^2 r1 d tau E||S||^2 / m / (1 - (1 - eta)^2) = eta r1 d tau E||S||^2 / (m (2 - eta))

    Args:
        environments: the law of S(e).
        step_size: eta, below 1.
        dimension: d.
        batch_size: m.
        invariant_rank: r1.
        ensemble: of the measurements, "symmetric" (tau = 1/2), "gaussian" (tau = 1) or an `Ensemble`.

    Example:
        >>> from holdfast.sensing.environments import two_point
        >>> round(residual_floor(two_point(1.0, 8.0), 0.05, 100, 8000), 4)
        0.0104
    """
    variance = named_ensemble(ensemble).entry_variance * mean_square_strength(environments) / batch_size
    return step_size * invariant_rank * dimension * variance / (2 - step_size)
