"""Any optimiser of optax on a factored matrix."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from holdfast.algorithms.factored import Factors, Gradient, factored
from holdfast.core.algorithm import Algorithm

if TYPE_CHECKING:  # the caller brings the optimiser, so the numerical core runs without optax
    import optax  # type: ignore[import-untyped]


class OptimizerMaker(Protocol):
    """Makes an optimiser for a step size, such as `optax.adam`.

    Example:
        >>> import optax
        >>> make: OptimizerMaker = optax.adam
        >>> make(0.1).init(jnp.zeros(2))[0].mu.tolist()
        [0.0, 0.0]
    """

    def __call__(self, step_size: ArrayLike, /) -> "optax.GradientTransformation":
        """The optimiser; jax may trace the step size."""
        ...


class OptimizedState(NamedTuple):
    """What an optimiser needs for its next step.

    Attributes:
        factors: what is fitted.
        memory: the state of the optimiser, such as momenta.
    """

    factors: Factors
    memory: "optax.OptState"


def optimized(
    gradient: Gradient,
    dimension: int,
    step_size: ArrayLike,
    init_scale: ArrayLike,
    *,
    optimizer: OptimizerMaker,
    signed: bool = False,
    dtype: DTypeLike | None = None,
) -> Algorithm:
    """As `factored`, with the steps of an optimiser of optax: it is given G U as the gradient of U, and -G V of V.

    Args:
        gradient: (key, P, step) -> G; see `sampled`.
        dimension: d.
        step_size: eta, given to `optimizer`.
        init_scale: alpha, of the starting point U = V = alpha I.
        optimizer: step size -> optimiser. Fix it with `functools.partial`, once: it is part of the compiled program.
        signed: fit U U^T - V V^T instead of U U^T.
        dtype: of the factors.

    Example, Adam, whose first step moves every entry that has a gradient by the step size:
        >>> import functools
        >>> import optax
        >>> by_adam = functools.partial(optimized, optimizer=optax.adam)
        >>> algorithm = by_adam(lambda key, fitted, step: fitted - jnp.eye(2), 2, step_size=0.1, init_scale=0.5)
        >>> state = algorithm.step(jax.random.key(0), algorithm.init(), 0)
        >>> [round(float(entry), 4) for entry in algorithm.parameters(state).positive.ravel()]
        [0.6, 0.0, 0.0, 0.6]
    """
    transformation = optimizer(step_size)

    def init() -> OptimizedState:
        factors = factored(gradient, dimension, step_size, init_scale, signed=signed, dtype=dtype).init()
        return OptimizedState(factors, transformation.init(factors))

    def step(key: jax.Array, state: OptimizedState, number: ArrayLike) -> OptimizedState:
        factors = state.factors
        g = gradient(key, factors.fitted, number)
        slopes = Factors(g @ factors.positive, -g @ factors.negative)
        updates, memory = transformation.update(slopes, state.memory, factors)
        return OptimizedState(jax.tree.map(jnp.add, factors, updates), memory)

    return Algorithm(init, step, lambda state: state.factors)
