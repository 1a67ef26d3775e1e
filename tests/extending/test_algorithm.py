"""Momentum on the factored matrix: the heavy ball, Nesterov's form, and what lies between them."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.typing import ArrayLike, DTypeLike

import holdfast as hf
from holdfast.algorithms import Factors, Gradient, factored
from holdfast.core import Algorithm

SETTINGS = hf.Settings(dimension=8, batch_size=500, steps=60, seeds=3, init_scale=0.01, dtype="float64")
SWEEP = {"momentum": [0.0, 0.3, 0.6], "lookahead": [0.0, 1.0]}
State = tuple[jax.Array, jax.Array]


def with_momentum(gradient: Gradient, dimension: int, step_size: ArrayLike, init_scale: ArrayLike, *,
        dtype: DTypeLike | None, momentum: ArrayLike = 0.0, lookahead: ArrayLike = 0.0) -> Algorithm:  # fmt: skip
    """Take the gradient at U + lookahead * momentum * velocity: 0 is the heavy ball, 1 is Nesterov's form."""

    def init() -> State:
        start = jnp.multiply(init_scale, jnp.eye(dimension, dtype=dtype))
        return start, jnp.zeros_like(start)

    def step(key: jax.Array, state: State, number: ArrayLike) -> State:
        factor, carried = state[0], jnp.multiply(momentum, state[1])
        seen = factor + jnp.multiply(lookahead, carried)
        velocity = carried - jnp.multiply(step_size, gradient(key, seen @ seen.T, number) @ seen)
        return factor + velocity, velocity

    return Algorithm(init, step, lambda state: Factors.symmetric(state[0]))


def test_without_momentum_it_is_the_algorithm_of_the_library() -> None:
    ours, theirs = (hf.simulate(SETTINGS, algorithm=maker).data for maker in (with_momentum, factored))
    xr.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-14)  # same sums in another order: rounding


def test_swept_run_is_labelled_equals_the_single_run_and_survives_the_disk(tmp_path: Path) -> None:
    swept = hf.simulate(SETTINGS, algorithm=with_momentum, sweep=SWEEP)
    assert swept.data["spurious"].dims == ("momentum", "lookahead", "seed", "step")
    assert swept.axes == SWEEP
    single = hf.simulate(SETTINGS, algorithm=functools.partial(with_momentum, momentum=0.6, lookahead=1.0)).data
    picked = swept.data.sel(momentum=0.6, lookahead=1.0, drop=True)
    xr.testing.assert_allclose(picked, single, rtol=1e-10, atol=1e-14)  # constant or traced: rounding
    swept.save(tmp_path / "swept.zarr")
    xr.testing.assert_identical(hf.Trajectory.load(tmp_path / "swept.zarr").data, swept.data)


def test_a_small_invariant_direction_grows_by_the_larger_root() -> None:
    quiet = hf.Settings(dimension=4, oracle="population", steps=120, seeds=1, init_scale=1e-8, dtype="float64")
    signal = hf.simulate(quiet, algorithm=with_momentum, sweep=SWEEP).data["invariant"].isel(seed=0)  # r^2
    b = signal["momentum"] * (1 + 0.05 * signal["lookahead"])  # r'' = 1.05 r' + b (r' - r), so z^2 = (1.05 + b) z - b
    root = (1.05 + b + np.sqrt((1.05 + b) ** 2 - 4 * b)) / 2
    # From step 80 on the other root has died out (0.51^80), and r stays small: the cube is below rtol.
    np.testing.assert_allclose(np.log(signal.sel(step=120) / signal.sel(step=80)) / 80, np.log(root), rtol=1e-5)
