"""Environments: the law of the symmetric strength matrix S(e) of the spurious signal A(e) = V S(e) V^T."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from holdfast.core.randomness import PANEL, purpose_key, uniform_number
from holdfast.core.validation import COUNT, require
from holdfast.sensing.deviations import NORMAL, UNIFORM, Deviation, check_deviation

__all__ = [
    "ContinuousEnvironments",
    "Deviation",
    "Environments",
    "FiniteEnvironments",
    "Law",
    "PanelLaw",
    "continuum",
    "gaussian",
    "panel",
    "table",
    "two_point",
    "uniform",
]
__dir__ = __all__.copy


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FiniteEnvironments:
    """Finitely many environments: S(e) is `strengths[e]` with probability `probabilities[e]`.

    Example:
        >>> environments = FiniteEnvironments(np.array([[[-5.0]], [[7.0]]]), np.array([0.25, 0.75]))
        >>> environments.count, environments.mean.tolist()
        (2, [[4.0]])
    """

    strengths: jax.Array | np.ndarray
    probabilities: jax.Array | np.ndarray

    @property
    def rank(self) -> int:
        """r2, the number of spurious directions."""
        return self.strengths.shape[-1]

    @property
    def count(self) -> int:
        """The number of environments."""
        return self.strengths.shape[0]

    @property
    def mean(self) -> jax.Array:
        """E S(e)."""
        return jnp.einsum("e,eij->ij", jnp.asarray(self.probabilities), jnp.asarray(self.strengths))

    def draw(self, key: jax.Array) -> jax.Array:
        """One strength matrix, S(e) with e ~ D."""
        boundaries = jnp.cumsum(jnp.asarray(self.probabilities))[:-1]
        index = jnp.searchsorted(boundaries, uniform_number(key), side="right", method="compare_all")
        return jnp.asarray(self.strengths)[index]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ContinuousEnvironments:
    """A continuum of environments: S(e) = location + scale * N, entry by entry, N symmetric.

    The entries of N have the law `deviation`. With `shared` one number moves the whole diagonal; otherwise each
    spurious direction has a number of its own. Each off-diagonal entry always does.

    Example:
        >>> environments = uniform(1.0, 6.0, rank=2)
        >>> environments.mean.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> strength = jax.jit(environments.draw)(jax.random.key(0))
        >>> bool(strength[0, 0] == strength[1, 1])  # one number moves the diagonal
        True
    """

    location: jax.Array | np.ndarray
    scale: jax.Array | np.ndarray
    deviation: Deviation = field(metadata={"static": True})
    shared: bool = field(metadata={"static": True})

    @property
    def rank(self) -> int:
        """r2, the number of spurious directions."""
        return self.location.shape[-1]

    @property
    def mean(self) -> jax.Array:
        """E S(e)."""
        return jnp.asarray(self.location)

    def draw(self, key: jax.Array) -> jax.Array:
        """One strength matrix, S(e) with e ~ D."""
        rank = self.rank
        diagonal_key, other_key = jax.random.split(key)
        diagonal = jnp.broadcast_to(self.deviation.draw(diagonal_key, (1 if self.shared else rank,)), (rank,))
        below = jnp.tril(self.deviation.draw(other_key, (rank, rank)), -1)
        location = jnp.asarray(self.location)
        return location + self.scale * (jnp.diag(diagonal) + below + below.T).astype(location.dtype)


Environments = FiniteEnvironments | ContinuousEnvironments
"""The law of S(e), with its mean and how it is drawn."""


def finitely_many(environments: Environments, contract: str) -> FiniteEnvironments:
    """These environments, for what needs them one by one; a ValueError with its contract if they are a continuum.

    Example:
        >>> finitely_many(uniform(1.0, 6.0), "an order needs finitely many environments")
        Traceback (most recent call last):
        ValueError: an order needs finitely many environments, got a continuum of them
    """
    if isinstance(environments, FiniteEnvironments):
        return environments
    raise ValueError(f"{contract}, got a continuum of them")


class Law(Protocol):
    """A law of environments that depends on a mean and a spread, such as `two_point`, `uniform` and `gaussian`.

    Simulations call it inside of a compiled program, so the numbers may be traced by jax. Take it from a module, or
    make it once: the law is part of what identifies a compiled program.

    Example, three environments, one of which has the mean strength:
        >>> def three_point(bias, heterogeneity, *, rank=1, off_diagonal=0.0, shared=True):
        ...     strengths = bias + heterogeneity * np.array([-1.0, 0.0, 1.0])
        ...     return FiniteEnvironments(strengths[:, None, None] * np.eye(rank), np.full(3, 1 / 3))
        >>> law: Law = three_point
        >>> law(1.0, 6.0).strengths.ravel().tolist()
        [-5.0, 1.0, 7.0]
    """

    def __call__(
        self,
        bias: ArrayLike,
        heterogeneity: ArrayLike,
        *,
        rank: int = 1,
        off_diagonal: ArrayLike = 0.0,
        shared: bool = True,
    ) -> Environments:
        """The environments with mean `bias` and spread `heterogeneity` of the strengths; see `two_point`."""
        ...


def table(strengths: ArrayLike, probabilities: ArrayLike | None = None) -> FiniteEnvironments:
    """Environments given one by one.

    Args:
        strengths: (E,) one strength for all of a rank-one spurious signal, (E, r2) one per spurious direction,
            or (E, r2, r2) symmetric matrices S(e).
        probabilities: (E,), of each environment; equal if left out.

    Example:
        >>> table([-5.0, 7.0]).mean.tolist()
        [[1.0]]
    """
    values = _finite_numbers(strengths, "strengths")
    require(values.size > 0, "strengths must not be empty", "no entry")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim == 2:
        values = np.stack([np.diag(row) for row in values])
    square = values.ndim == 3 and values.shape[1] == values.shape[2] and np.allclose(values, values.swapaxes(1, 2))
    contract = "strengths must have shape (E,), (E, r2) or (E, r2, r2) with symmetric matrices"
    require(square, contract, f"shape {values.shape}")
    count = len(values)
    weights = np.full(count, 1 / count) if probabilities is None else _finite_numbers(probabilities, "probabilities")
    proper = weights.shape == (count,) and bool((weights >= 0).all()) and math.isclose(weights.sum(), 1, rel_tol=1e-6)
    require(proper, f"probabilities must be {count} non-negative numbers that sum to 1", weights.tolist())
    return FiniteEnvironments(values, weights)


def two_point(
    bias: ArrayLike, heterogeneity: ArrayLike, *, rank: int = 1, off_diagonal: ArrayLike = 0.0, shared: bool = True
) -> FiniteEnvironments:
    """Two strengths, bias - heterogeneity and bias + heterogeneity, with equal probability.

    With `shared` all spurious directions move together (two environments); otherwise each has its own sign
    (2^rank environments). `off_diagonal` is the size of the entries S_ij, i != j; their sign is the product of the
    signs of i and j when the directions are independent, and the common sign when they are shared.

    Example:
        >>> two_point(1.0, 6.0).strengths.ravel().tolist()
        [-5.0, 7.0]
    """
    _check_law(rank, shared, bias=bias, heterogeneity=heterogeneity, off_diagonal=off_diagonal)
    if shared:
        signs = np.array([[-1.0], [1.0]]) * np.ones(rank)
        couplings = signs[:, :, None] * np.ones((rank, rank))
    else:
        require(rank <= 10, "spurious_rank must be at most 10 for independent two-point directions", rank)
        signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * rank, indexing="ij"), -1).reshape(-1, rank)
        couplings = signs[:, :, None] * signs[:, None, :]
    identity = np.eye(rank)
    strengths = (
        bias * identity
        + heterogeneity * jnp.asarray(signs[:, :, None] * identity)
        + off_diagonal * jnp.asarray(couplings * (1 - identity))
    )
    return FiniteEnvironments(strengths, jnp.full(len(signs), 1 / len(signs), strengths.dtype))


def continuum(
    deviation: Deviation,
    bias: ArrayLike,
    heterogeneity: ArrayLike,
    *,
    rank: int = 1,
    off_diagonal: ArrayLike = 0.0,
    shared: bool = True,
) -> ContinuousEnvironments:
    """A continuum: each strength is bias + heterogeneity * N, with N of the law `deviation`.

    `shared` and `off_diagonal` are as in `two_point`; each off-diagonal entry is off_diagonal * N with an N of its own.

    Example:
        >>> from holdfast.sensing.deviations import UNIFORM
        >>> environments = continuum(UNIFORM, bias=1.0, heterogeneity=6.0)
        >>> -5 < environments.draw(jax.random.key(0)).item() < 7
        True
    """
    check_deviation(deviation)
    _check_law(rank, shared, bias=bias, heterogeneity=heterogeneity, off_diagonal=off_diagonal)
    identity = jnp.eye(rank)
    scale = jnp.asarray(heterogeneity * identity + off_diagonal * (1 - identity))
    return ContinuousEnvironments(jnp.asarray(bias * identity), scale, deviation, shared)


uniform = partial(continuum, UNIFORM)
"""A continuum whose strengths are uniform on (bias - heterogeneity, bias + heterogeneity)."""
gaussian = partial(continuum, NORMAL)
"""A continuum whose strengths are normal with mean `bias` and standard deviation `heterogeneity`."""


def panel(environments: Environments, count: int, *, seed: int = 0) -> FiniteEnvironments:
    """Finitely many environments drawn once, such as the hospitals of a study, each with the same probability.

    A continuum has no environment that is visited twice. A panel of it has, so it can be visited in an order.

    Args:
        environments: the law that they are drawn from.
        count: how many.
        seed: of the draw.

    Example:
        >>> hospitals = panel(uniform(1.0, 6.0), 5)
        >>> hospitals.count, bool((abs(hospitals.strengths - 1) < 6).all())
        (5, True)
    """
    COUNT.check("count", count)
    strengths = _panel_strengths(environments, np.uint32(seed), count)
    return FiniteEnvironments(strengths, np.full(count, 1 / count, strengths.dtype))


@partial(jax.jit, static_argnames="count")  # as one program: each operation alone would be compiled as one
def _panel_strengths(environments: Environments, seed: ArrayLike, count: int) -> jax.Array:
    return jax.vmap(environments.draw)(jax.random.split(purpose_key(seed, PANEL), count))


@dataclass(frozen=True)
class PanelLaw:
    """The law that makes a `panel` of the environments of another law: the same draws for every bias and heterogeneity.

    Example:
        >>> law = PanelLaw(uniform, count=5)
        >>> small, large = (law(0.0, heterogeneity).strengths.ravel() for heterogeneity in (1.0, 2.0))
        >>> bool(np.allclose(2 * small, large))
        True
    """

    law: Law
    count: int
    seed: int = 0

    def __call__(self, bias: ArrayLike, heterogeneity: ArrayLike, **options: Any) -> FiniteEnvironments:
        """The panel with mean `bias` and spread `heterogeneity` of the law that it is drawn from."""
        return panel(self.law(bias, heterogeneity, **options), self.count, seed=self.seed)


def _check_law(rank: int, shared: bool, **numbers: ArrayLike) -> None:
    for name, value in numbers.items():
        require(np.ndim(value) == 0, f"{name} must be one number, call the law once for each", value)
        if not isinstance(value, jax.core.Tracer):  # what a compiled program traces has no value yet
            _finite_numbers(value, name)
    COUNT.check("rank", rank)
    require(isinstance(shared, bool | np.bool_), "shared must be True or False", repr(shared))


def _finite_numbers(value: ArrayLike, name: str) -> np.ndarray:
    array = np.asarray(value)
    require(array.size == 0 or array.dtype.kind in "fiu", f"{name} must be numbers", repr(value))
    require(bool(np.isfinite(array).all()), f"{name} must be finite numbers", array.tolist())
    return array.astype(float)
