"""Laws of strengths with one mean and variance, and runs whose strengths follow any of them or drift along time."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.typing import ArrayLike
from scipy.special import stdtrit

from holdfast.algorithms.factored import Factors, factored
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.progress import Progress
from holdfast.core.randomness import standard_normals
from holdfast.core.run import Algorithm, Records, Run, run
from holdfast.sensing.batching import Batch
from holdfast.sensing.deviations import NORMAL, UNIFORM, Deviation
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import Environments, continuum, table, two_point
from holdfast.sensing.oracles.law import law, population
from holdfast.sensing.problem import matrix_sensing
from holdfast_studies.kit.runs import over_seeds

# At this step size and standard deviation of the strengths the shape of the law decides.
BIAS, INIT_SCALE, STEP_SIZE, DEVIATION = 1.0, 1e-3, 0.1, 5.0
# Skewed laws of two strengths: the probability of the larger one.
RARE, FREQUENT = 0.1, 0.9


def draw_heavy(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Student's t with 3 degrees of freedom over sqrt(3), which has variance one."""
    normals = standard_normals(key, (4, *shape), jnp.float32)
    return normals[0] / jnp.sqrt(jnp.sum(jnp.square(normals[1:]), 0))


def heavy_quantile(probability: np.ndarray) -> np.ndarray:
    """Its quantiles."""
    found = stdtrit(3.0, probability) / np.sqrt(3)
    return np.where(np.asarray(probability) == 0, -np.inf, found)


HEAVY = Deviation(draw_heavy, heavy_quantile)


def skewed(bias: float, deviation: float, probability: float) -> Environments:
    """Two strengths with a mean and a standard deviation, the larger one with a probability."""
    up, down = np.sqrt((1 - probability) / probability), -np.sqrt(probability / (1 - probability))
    return table(bias + deviation * np.array([up, down]), np.array([probability, 1 - probability]))


@dataclass(frozen=True)
class Shape:
    """A law of strengths of variance one, as the program and as the theory know it.

    Attributes:
        choice: number in the program.
        probability: of the larger strength, for two of them.
    """

    choice: int
    probability: float = 0.5

    def environments(self, deviation: float) -> Environments:
        """The law with a standard deviation."""
        if self.choice == TWO_POINT:
            return skewed(BIAS, deviation, self.probability)
        known = {DRIFTING_NORMAL: (NORMAL, 1.0), FLAT: (UNIFORM, np.sqrt(3.0)), TAILS: (HEAVY, 1.0)}
        law_of_one, scale = known[self.choice]
        return continuum(law_of_one, BIAS, scale * deviation)


DRIFTING_NORMAL, TWO_POINT, FLAT, TAILS = range(4)
LAWS: dict[str, Shape] = {
    "two-point": Shape(TWO_POINT),
    "uniform": Shape(FLAT),
    "normal": Shape(DRIFTING_NORMAL),
    "Student t3": Shape(TAILS),
    "rare strong": Shape(TWO_POINT, RARE),
    "rare negative": Shape(TWO_POINT, FREQUENT),
}


@dataclass(frozen=True)
class StrengthsBuilder:
    """Makes a run whose strengths follow any of the laws, or drift: one program for the whole experiment.

    Attributes:
        dimension: d.
        infinite: without sampling error, along the axes.
    """

    dimension: int
    infinite: bool = False

    def __call__(self, frame: jax.Array, parameters: dict[str, jax.Array]) -> Run:
        """The algorithm, whose state has the last normal number next to the factors, and the signals."""
        problem = matrix_sensing(frame, 1, two_point(BIAS, 0.0))
        oracle = population(problem) if self.infinite else law(problem, symmetric_gaussian)
        size = jnp.ones(1) if self.infinite else parameters["batch_size"][None]
        dtype = frame.dtype

        def gradient(strength: jax.Array):
            batch = Batch(strength[None, None, None].astype(dtype), size.astype(dtype))
            return lambda key, fitted, step: oracle(key, fitted, batch)

        def descent(strength: jax.Array) -> Algorithm:
            numbers = (parameters[name].astype(dtype) for name in ("step_size", "init_scale"))
            return factored(gradient(strength), self.dimension, *numbers, dtype=dtype)

        def step(key: jax.Array, state: tuple[Factors, jax.Array], number: ArrayLike) -> tuple[Factors, jax.Array]:
            strength_key, oracle_key = jax.random.split(key)
            factors, before = state
            normal, deviation = _deviation(strength_key, before, number, parameters)
            strength = BIAS + parameters["deviation"] * deviation
            return descent(strength).step(oracle_key, factors, number), normal

        def init() -> tuple[Factors, jax.Array]:
            return descent(jnp.zeros(())).init(), jnp.zeros((), jnp.float32)

        def observe(factors: Factors) -> dict[str, jax.Array]:
            square = lambda basis: jnp.sum(jnp.square(factors.positive.T @ basis))  # noqa: E731
            return {
                "invariant": square(problem.invariant_basis),
                "spurious": square(problem.spurious_basis),
                "size": jnp.max(jnp.abs(factors.positive.T @ problem.spurious_basis)),  # whose square may underflow
            }

        return Run(Algorithm(init, step, lambda state: state[0]), observe)


def _deviation(
    key: jax.Array, before: jax.Array, number: ArrayLike, parameters: dict[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The next normal number, correlated with the one before, and the deviation of the law that is chosen."""
    normal_key, two_key, flat_key, tails_key = jax.random.split(key, 4)
    fresh = standard_normals(normal_key, (), jnp.float32)
    rho = jnp.where(number == 0, 0.0, parameters["correlation"])
    normal = (rho * before + jnp.sqrt(1 - rho**2) * fresh).astype(jnp.float32)
    p = parameters["probability"]
    larger = jax.random.uniform(two_key, dtype=jnp.float32) < p
    two = jnp.where(larger, jnp.sqrt((1 - p) / p), -jnp.sqrt(p / (1 - p)))
    flat = np.sqrt(3.0) * UNIFORM.draw(flat_key, ())
    drawn = [normal, two, flat, draw_heavy(tails_key, ())]
    return normal, jnp.select([parameters["choice"] == k for k in range(len(drawn))], drawn)


def run_strengths(
    size: tuple[int, int] | None,
    seeds: int,
    steps: int,
    given: Mapping[str, npt.ArrayLike],
    report: Progress | None = None,
    *,
    first_seed: int,
) -> Records:
    """Runs of settings, (settings, seeds) flattened.

    Args:
        size: d and m; None: a plane without sampling error, in double precision.
        seeds: of each setting.
        steps: T.
        given: parameters of the runs, numbers or equally long arrays; the others have the defaults of this module.
        report: of the progress.
        first_seed: of each setting; the others follow it.
    """
    dimension, batch_size = size or (2, 1)
    defaults: dict[str, npt.ArrayLike] = {
        "choice": DRIFTING_NORMAL, "probability": 0.5, "correlation": 0.0, "deviation": DEVIATION,
        "step_size": STEP_SIZE, "init_scale": INIT_SCALE, "batch_size": float(batch_size),
    }  # fmt: skip
    double = size is None
    parameters, numbers = over_seeds({**defaults, **given}, seeds, first_seed, float if double else np.float32)
    with jax.enable_x64(double):
        frame = np.eye(2) if double else np.asarray(orthonormal_frame(dimension, 2, 0), np.float32)
        return run(
            StrengthsBuilder(dimension, double), jnp.asarray(frame), parameters, numbers, steps=steps, every=steps,
            slab=64 if double else 8, double=double, progress=report,
        )  # fmt: skip


def columns_of(laws: list[Shape]) -> dict[str, npt.ArrayLike]:
    """The parameters of runs of these laws."""
    return {"choice": [each.choice for each in laws], "probability": [each.probability for each in laws]}


def growth(sizes: np.ndarray, steps: np.ndarray, seeds: int, *, since: int = 0) -> np.ndarray:
    """Growth of log|q| per step, (settings, seeds).

    Args:
        sizes: |q|, (settings times seeds, records).
        steps: of the records.
        seeds: of each setting.
        since: the record to count from.
    """
    logarithms = np.log(sizes)
    return ((logarithms[:, -1] - logarithms[:, since]) / (steps[-1] - steps[since])).reshape(-1, seeds)
