"""Runs of any optimiser of optax, all of them as one program: matrix sensing, or a plane without sampling error."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy.typing as npt
import optax  # type: ignore[import-untyped]
from jax.typing import ArrayLike, DTypeLike

from holdfast.algorithms.factored import Gradient, optimized, sampled
from holdfast.core.run import Algorithm, Records, Run, run
from holdfast.sensing.batching import hetero
from holdfast.sensing.environments import two_point
from holdfast.sensing.oracles.law import population
from holdfast.sensing.problem import matrix_sensing
from holdfast.theory.lyapunov import two_point_exponent
from holdfast_studies.kit.runs import over_seeds
from holdfast_studies.questions.momentum import momentum_exponent

BIAS, MOMENTUM, DECAY = 1.0, 0.9, 0.05
STEPS, INIT_SCALE = 200, 1e-3
# The heterogeneity at which step sizes are chosen and optimisers are judged.
STRONG = 6.5
# So small a start that no signal comes to order one.
TINY = 1e-30


class Optimizer(NamedTuple):
    """An optimiser, with what makes step sizes comparable.

    Attributes:
        make: (step size, momentum) -> optimiser of optax.
        unit: (dimension, momentum) -> step size of a relative step size of one.
    """

    make: Callable[[ArrayLike, ArrayLike], optax.GradientTransformation]
    unit: Callable[[int, ArrayLike], ArrayLike] = lambda dimension, momentum: 1.0


def _lasting(dimension: int, momentum: ArrayLike) -> ArrayLike:
    """A gradient acts 1 / (1 - momentum) times."""
    return 1 - momentum


def _entries(dimension: int, momentum: ArrayLike) -> ArrayLike:
    """A step that moves each of d^2 entries by eta has the norm eta d."""
    return 1 / dimension


OPTIMIZERS: dict[str, Optimizer] = {
    "SGD": Optimizer(lambda eta, beta: optax.sgd(eta)),
    "weight decay": Optimizer(lambda eta, beta: optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(eta))),
    "momentum": Optimizer(lambda eta, beta: optax.sgd(eta, momentum=beta), _lasting),
    "Nesterov": Optimizer(lambda eta, beta: optax.sgd(eta, momentum=beta, nesterov=True), _lasting),
    "normalised SGD": Optimizer(
        lambda eta, beta: optax.chain(optax.normalize_by_update_norm(), optax.scale_by_learning_rate(eta))
    ),
    "sign SGD": Optimizer(lambda eta, beta: optax.sign_sgd(eta), _entries),
    "RMSprop": Optimizer(lambda eta, beta: optax.rmsprop(eta), _entries),
    "Adam": Optimizer(lambda eta, beta: optax.adam(eta), _entries),
}
NAMES = tuple(OPTIMIZERS)


def any_optimizer(
    gradient: Gradient,
    dimension: int,
    step_size: ArrayLike,
    init_scale: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    choice: ArrayLike = 0,
    momentum: ArrayLike = MOMENTUM,
) -> Algorithm:
    """All optimisers as one program: `choice` is the number of the one that moves the factors.

    The updates of the others are computed and left out, which costs less than to compile a program for each.
    """

    def make(relative: ArrayLike) -> optax.GradientTransformation:
        sizes = [jnp.multiply(relative, each.unit(dimension, momentum)) for each in OPTIMIZERS.values()]
        return _one_of(choice, [o.make(size, momentum) for o, size in zip(OPTIMIZERS.values(), sizes, strict=True)])

    return optimized(gradient, dimension, step_size, init_scale, optimizer=make, dtype=dtype)


def _one_of(choice: ArrayLike, optimizers: list[optax.GradientTransformation]) -> optax.GradientTransformation:
    def update(gradient: Any, states: tuple, parameters: Any = None) -> tuple[Any, tuple]:
        found = [each.update(gradient, state, parameters) for each, state in zip(optimizers, states, strict=True)]
        selected = [choice == number for number in range(len(optimizers))]
        updates = jax.tree.map(lambda *leaves: jnp.select(selected, leaves), *[updates for updates, _ in found])
        return updates, tuple(state for _, state in found)

    return optax.GradientTransformation(lambda parameters: tuple(o.init(parameters) for o in optimizers), update)


def _plane(shared: None, parameters: dict[str, jax.Array]) -> Run:
    """One invariant and one spurious direction along the axes, without sampling error."""
    law = two_point(BIAS, parameters["heterogeneity"])
    problem = matrix_sensing(jnp.eye(2, dtype="float64"), 1, law)
    numbers = (parameters[name] for name in ("step_size", "init_scale"))
    options = {name: parameters[name] for name in ("choice", "momentum")}
    algorithm = any_optimizer(sampled(hetero(law, None), population(problem)), 2, *numbers, dtype="float64", **options)
    return Run(algorithm, lambda state: {"signals": jnp.abs(jnp.diagonal(state.positive))})


def in_plane(seeds: int, steps: int, every: int, given: Mapping[str, npt.ArrayLike], *, first_seed: int) -> Records:
    """Runs of problems, (problems, seeds) flattened; their parameters are numbers or equally long arrays."""
    parameters, numbers = over_seeds({"momentum": MOMENTUM, "init_scale": TINY, **given}, seeds, first_seed)
    with jax.enable_x64(True):
        return run(_plane, None, parameters, numbers, steps=steps, every=every, slab=128, double=True)


WITH_EXPONENT = ("SGD", "weight decay", "momentum", "Nesterov")
"""Optimisers that multiply a small spurious direction."""


def exponent(name: str, relative: float, heterogeneity: float, momentum: float = MOMENTUM, **grid: int) -> float:
    """The exponent of a small spurious direction, for the four optimisers that have one."""
    if name in ("SGD", "weight decay"):  # decay weakens every strength
        bias = BIAS - DECAY * (name == "weight decay")
        return float(two_point_exponent(relative, bias, heterogeneity))
    law = two_point(BIAS, heterogeneity)
    return momentum_exponent(law, relative * (1 - momentum), momentum, nesterov=name == "Nesterov", **grid)
