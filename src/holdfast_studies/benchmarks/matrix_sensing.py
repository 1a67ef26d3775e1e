"""Matrix sensing: the exact law against explicit measurements, and both against the machine."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.randomness import standard_normals
from holdfast.core.run import available_workers
from holdfast.sensing.batching import hetero
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import two_point
from holdfast.sensing.measurements import collect
from holdfast.sensing.oracles.data import fixed
from holdfast.sensing.oracles.quadratic import BLOCK_NUMBERS, rank_one
from holdfast.sensing.problem import matrix_sensing
from holdfast.sensing.settings import ENSEMBLES, Settings
from holdfast.sensing.simulation import execute, slab_size
from holdfast_studies.benchmarks.timing import best, best_of_each, best_on_all_cores, product_rate, read_rate

BATCH_SIZE = 8000
PAPER = Settings(batch_size=BATCH_SIZE, every=200)
# Products in a chain of a quick look.
FEW_PRODUCTS = 10


def seconds_per_trajectory(settings: Settings, repeats: int = 3) -> float:
    """Seconds per trajectory when `settings.seeds` of them are computed together."""
    return best(lambda: execute(settings), repeats) / settings.seeds


def law_against_data(quick: bool) -> dict:
    """Seconds per trajectory of both oracles, for both ensembles, at d=100, m=8000.

    The explicit oracle is timed over a few steps and scaled to the whole run: each of its steps costs the same. Two
    numbers are given for it: one trajectory alone, and one on each core. The third is a plain NumPy program: draw the
    batch, multiply it by the residual and by the errors. The ratio to the product limit is the largest that the law
    could reach against one explicit trajectory.
    """
    seeds, data_steps, batch_size = (16, 2, BATCH_SIZE // 10) if quick else (256, 20, BATCH_SIZE)
    rows = {}
    for ensemble in ("symmetric", "gaussian"):
        paper = replace(PAPER, ensemble=ensemble, batch_size=batch_size)
        law = seconds_per_trajectory(replace(paper, seeds=seeds))
        explicit = replace(paper, oracle="data", steps=data_steps, seeds=1)
        scale = PAPER.steps / data_steps
        alone = scale * seconds_per_trajectory(explicit, 2)
        together = scale * seconds_per_trajectory(replace(explicit, seeds=available_workers()), 2)
        plain = PAPER.steps * numpy_step_seconds(ensemble, batch_size)
        rate = product_rate(PAPER.dimension, slab_size(PAPER), FEW_PRODUCTS if quick else None)
        flops = 4 * PAPER.dimension**3 * PAPER.steps
        rows[ensemble] = {
            "law_seconds": law,
            "data_seconds_alone": alone,
            "data_seconds_all_cores": together,
            "numpy_seconds": plain,
            "data_alone_over_law": alone / law,
            "data_all_cores_over_law": together / law,
            "data_alone_over_product_limit": alone * rate / flops,
            "numpy_over_law": plain / law,
            "product_rate_gflops": rate / 1e9,
            "share_of_product_limit": flops / law / rate,
        }
    return rows


def numpy_step_seconds(ensemble: str, batch_size: int) -> float:
    """Seconds of one explicit gradient as one would write it in NumPy, without blocks."""
    random = np.random.default_rng(0)
    coordinates = ENSEMBLES[ensemble].load().size(PAPER.dimension)
    residual = random.standard_normal(coordinates, np.float32)

    def step() -> np.ndarray:
        measurements = random.standard_normal((batch_size, coordinates), np.float32)
        return (measurements @ residual) @ measurements / batch_size

    return best(step, 2)


def cost_against_batch_size(quick: bool) -> dict[str, float]:
    """Seconds per trajectory of the law for growing m: they should not depend on it."""
    seeds = 16 if quick else 256
    sizes = (80, 8_000, 800_000, 8_000_000)
    works = {str(m): partial(execute, replace(PAPER, batch_size=m, seeds=seeds)) for m in sizes}
    return {m: seconds / seeds for m, seconds in best_of_each(works, 2 if quick else 4).items()}


def cost_against_dimension(quick: bool) -> dict[str, dict[str, float]]:
    """Seconds per trajectory of the law for growing d, with the matrix-product limit."""
    results = {}
    for dimension in (25, 50, 100) if quick else (25, 50, 100, 200, 400):
        seeds = max(32, 256 * 100**2 // dimension**2 // (16 if quick else 1) // 32 * 32)
        # As often as the products are timed: other work on the machine should not count for one of the two only.
        seconds = seconds_per_trajectory(replace(PAPER, dimension=dimension, seeds=seeds), 5)
        slab = slab_size(replace(PAPER, dimension=dimension))
        rate = product_rate(dimension, slab, FEW_PRODUCTS if quick else None)
        limit = 4 * dimension**3 * PAPER.steps / rate
        results[str(dimension)] = {"law_seconds": seconds, "share_of_product_limit": limit / seconds}
    return results


def quadratic_network(quick: bool) -> dict[str, dict[str, float]]:
    """One gradient over 20,000 rank-one measurements for growing d, against the matrix-product rate (4 m d^2).

    The products are not all that has to be done: m d normal numbers have to be drawn as well, which matters more the
    smaller d is. The second share is that of the time that products at the full rate and the draw alone would take.
    """
    count = 2_000 if quick else 20_000
    results = {}
    for dimension in (30, 100) if quick else (30, 100, 200, 400):
        frame = orthonormal_frame(dimension, 2).astype(np.float32)
        problem = matrix_sensing(frame, 1, two_point(1.0, 6.0))
        batch = hetero(problem.environments, count)(jax.random.key(0), 0)
        gradient = jax.jit(lambda key: rank_one(problem, count)(key, problem.invariant_matrix, batch).gradient)  # noqa: B023
        seconds = best_on_all_cores(lambda: jax.block_until_ready(gradient(jax.random.key(1))))  # noqa: B023
        products = 4 * count * dimension**2 / product_rate(dimension, 8, FEW_PRODUCTS if quick else None)
        draw = _draw_seconds(dimension, count)
        results[str(dimension)] = {
            "seconds": seconds,
            "share_of_product_rate": products / seconds,
            "draw_seconds": draw,
            "share_of_products_and_draw": (products + draw) / seconds,
        }
    return results


def _draw_seconds(dimension: int, count: int) -> float:
    """Seconds to draw `count` samples of N(0, I), in blocks that stay in the cache, and add them up."""
    blocks = max(1, round(count * dimension / BLOCK_NUMBERS))
    size = count // blocks

    def add(key: jax.Array, total: jax.Array) -> jax.Array:
        keys = jax.random.split(key, dimension)
        return total + jnp.sum(jax.vmap(lambda key: standard_normals(key, (size,), jnp.float32))(keys), 0)

    def sums(key: jax.Array) -> jax.Array:
        step = lambda block, total: add(jax.random.fold_in(key, block), total)  # noqa: E731
        return jax.lax.fori_loop(0, blocks, step, jnp.zeros(size))

    draw = jax.jit(sums)
    return best_on_all_cores(lambda: jax.block_until_ready(draw(jax.random.key(1))))


def fixed_data(quick: bool) -> dict[str, float]:
    """One gradient over a fixed data set, against the memory bandwidth and a loop of two NumPy products."""
    count = 2000 if quick else 8000
    problem = matrix_sensing(orthonormal_frame(100, 2).astype(np.float32), 1, two_point(1.0, 6.0))
    data = collect(problem, symmetric_gaussian, count)
    gradient = jax.jit(lambda data, *given: fixed(data, symmetric_gaussian)(jax.random.key(0), *given))
    one = np.asarray(data.environment == 0, np.float32) / count
    fitted = np.asarray(problem.invariant_matrix)
    plain = np.asarray(data.measurements.reshape(-1, data.measurements.shape[-1])[:count])
    target = np.asarray(np.pad(symmetric_gaussian.pack(problem.invariant_matrix), (0, plain.shape[1] - 5050)))
    responses = np.asarray(data.responses[:count])
    step = lambda: jax.block_until_ready(gradient(data, fitted, one))  # noqa: E731
    seconds = {
        "alone": best(step),
        "all_cores": best_on_all_cores(step),
        "numpy": best(lambda: plain.T @ (plain @ target - responses)),
    }
    limit = plain.nbytes / read_rate()
    return {
        **{f"{name}_seconds": value for name, value in seconds.items()},
        "bandwidth_limit_seconds": limit,
        **{f"{name}_over_limit": value / limit for name, value in seconds.items()},
    }
