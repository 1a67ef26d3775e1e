import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features

from holdfast.algorithms.factored import Factors, factored, sampled
from holdfast.core.fingerprint import reached
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import matrix_sensing
from holdfast.sensing.batching import Batch, hetero, pooled
from holdfast.sensing.builder import SensingBuilder
from holdfast.sensing.ensembles import symmetric_gaussian
from holdfast.sensing.environments import table
from holdfast.sensing.kernel.fused import LARGEST, available, can_be_fused, fused
from holdfast.sensing.oracles import law
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import execute

EPSILON = np.finfo(np.float32).eps
STEP_SIZE = 0.05


def problem_of(dimension):
    """Two invariant and two spurious directions that overlap, with strengths that are not diagonal."""
    strengths = np.array([[[2.0, 0.5], [0.5, -1.0]], [[-3.0, 0.0], [0.0, 1.0]], [[1.0, -0.3], [-0.3, 4.0]]])
    frame = orthonormal_frame(dimension, 4, seed=1).astype(np.float32)
    return matrix_sensing(frame, 2, table(strengths, [0.5, 0.3, 0.2]), overlap=0.3, condition_number=2.0)


def steps_of(dimension, batching, noise_variance=None, runs=6):
    """One step of several runs from random states, by XLA and fused."""
    problem = problem_of(dimension)
    batches = batching(problem.environments)
    gradient = sampled(batches, law(problem, symmetric_gaussian, noise_variance))
    plain = factored(gradient, dimension, STEP_SIZE, 0.1)
    states = np.random.default_rng(3).standard_normal((runs, dimension, dimension)).astype(np.float32) / dimension**0.5
    keys = jax.random.split(jax.random.key(5, impl="threefry2x32"), runs)
    for algorithm in (plain, fused(plain, batches, problem, STEP_SIZE, noise_variance)):
        step = jax.vmap(lambda key, state: algorithm.step(key, Factors.symmetric(state), 2).positive)  # noqa: B023
        yield np.asarray(jax.jit(step)(keys, states.astype(np.float32)))


def check_close(first, second):
    """Sums of a few hundred float32 numbers of order one, in another order."""
    assert np.isfinite(first).all()
    np.testing.assert_allclose(first, second, rtol=0, atol=20 * EPSILON * np.abs(first).max())
    assert not np.array_equal(first, second)  # they were computed in two ways


def test_this_machine_has_fused_steps():
    """Otherwise the other tests would compare XLA with itself."""
    assert available()
    assert can_be_fused(25)


@pytest.mark.parametrize("dimension", [16, 17, 25, 32, 33, 100])
def test_a_fused_step_is_the_step_of_the_law(dimension):
    check_close(*steps_of(dimension, lambda environments: hetero(environments, 800)))


@pytest.mark.parametrize("noise_variance", [None, 0.5])
@pytest.mark.parametrize("batch_size", [1, 2, 800, 10**6])
def test_any_batch_size(batch_size, noise_variance):
    """With one or two samples the Wishart matrix is singular, or has chi-squares of one degree of freedom."""
    check_close(*steps_of(20, lambda environments: hetero(environments, batch_size), noise_variance))


def test_a_batch_of_several_environments_is_left_to_xla():
    plain, unfused = steps_of(20, lambda environments: pooled(environments, 800))
    np.testing.assert_array_equal(plain, unfused)


def test_a_batch_of_a_user_with_one_sample_in_each_group_is_left_to_xla():
    one = lambda environments: lambda key, step: Batch(environments.draw(key)[None], None)  # noqa: E731
    plain, unfused = steps_of(20, one)
    np.testing.assert_array_equal(plain, unfused)


def test_a_state_that_fits_perfectly_stays():
    """W = 0, so G = 0: nothing is divided by zero."""
    dimension = 20
    problem = matrix_sensing(np.eye(dimension, 2, dtype=np.float32), 1, table([4.0]))
    batches = hetero(problem.environments, 50)
    plain = factored(sampled(batches, law(problem, symmetric_gaussian)), dimension, STEP_SIZE, 0.1)
    truth = jnp.diag(jnp.zeros(dimension).at[:2].set(jnp.array([1.0, 2.0])))
    algorithm = fused(plain, batches, problem, STEP_SIZE)
    after = jax.jit(algorithm.step)(jax.random.key(0, impl="threefry2x32"), Factors.symmetric(truth), 0)
    np.testing.assert_array_equal(after.positive, truth)


def records_of(settings, fuse, **arguments):
    """A simulation, fused or not."""
    builder = SensingBuilder.of
    patched = lambda *parts: replace(builder(*parts), fuse=fuse)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SensingBuilder, "of", patched)
        return execute(settings, **arguments)


RUNS = Settings(dimension=24, heterogeneity=(3.0, 7.0), steps=60, every=20, seeds=5, batch_size=400)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"order": "reshuffled", "noise_variance": 0.3},
        {"order": "cyclic", "overlap": 0.3, "condition_number": 3.0, "invariant_rank": 2},
        {"spurious_rank": 2, "off_diagonal": 0.5, "width": 3},
        {"environments": "uniform"},
        {"environments": "gaussian", "panel": 5},
    ],
    ids=str,
)
def test_whole_runs_agree(changes):
    settings = replace(RUNS, **changes)
    assert SensingBuilder.of(settings).fuse
    plain, together = records_of(settings, False), records_of(settings, True)
    for name in ("invariant", "spurious", "residual", "distance"):
        # Rounding errors of 60 steps, each of up to the 20 units in the last place that a step is allowed above.
        np.testing.assert_allclose(plain.values[name], together.values[name], rtol=60 * 20 * EPSILON, atol=1e-9)


@pytest.mark.parametrize(
    "changes",
    [{"ensemble": "gaussian"}, {"oracle": "population"}, {"parameterisation": "signed"}, {"dtype": "float64"}],
    ids=str,
)
def test_other_settings_are_left_to_xla(changes):
    assert not SensingBuilder.of(replace(RUNS, **changes)).fuse


@pytest.mark.parametrize("dimension", [4, LARGEST + 1])
def test_matrices_of_other_sizes_are_left_to_xla(dimension):
    assert not can_be_fused(dimension)
    problem = problem_of(dimension)
    algorithm = factored(lambda key, fitted, step: fitted, dimension, STEP_SIZE, 0.1)
    assert fused(algorithm, hetero(problem.environments, 5), problem, STEP_SIZE) is algorithm


def test_of_strengths_that_are_not_symmetric_the_symmetric_part_is_seen():
    """So it is with symmetric measurements, of which <X, W> = <X, W^T>."""

    def always(strength):
        return lambda environments: lambda key, step: Batch(strength[None], jnp.ones(1))

    crooked = jnp.array([[2.0, 1.5], [-1.0, 3.0]])
    _, seen = steps_of(20, always(crooked))
    _, expected = steps_of(20, always((crooked + crooked.T) / 2))
    np.testing.assert_array_equal(seen, expected)


def test_code_is_compiled_anew_when_anything_that_it_is_made_from_changes():
    """Constants of `randomness`, which this code contains, among it."""
    parts = reached(("holdfast.sensing.kernel.law_kernel",))
    assert {"holdfast.core.randomness:CHI_SQUARE_PROPOSALS", "holdfast.sensing.kernel.matrices:multiply"} <= parts


def test_results_do_not_depend_on_slabs_and_workers():
    """Unlike XLA's programs, whose rounding depends on their shape, the kernel computes each run by itself."""
    whole = execute(RUNS)
    for slab, workers in ((1, 1), (3, 2), (7, 1)):
        parts = execute(RUNS, slab=slab, workers=workers)
        np.testing.assert_array_equal(whole.values["spurious"], parts.values["spurious"])


def test_a_run_that_diverges_stays_where_it_was_and_the_others_go_on():
    settings = replace(RUNS, step_size=(0.05, 2.0), heterogeneity=7.0)
    plain, together = records_of(settings, False), records_of(settings, True)
    np.testing.assert_array_equal(plain.diverged_at, together.diverged_at)
    assert (together.diverged_at[:5] < 0).all()
    assert (together.diverged_at[5:] > 0).all()
    assert all(np.isfinite(values).all() for values in together.values.values())


def test_without_numba_xla_computes_the_same():
    script = (
        "import sys; sys.modules['numba'] = None\n"
        "from holdfast.sensing.settings import Settings\n"
        "from holdfast.sensing.simulation import execute\n"
        "from holdfast.sensing.kernel.fused import can_be_fused\n"
        f"settings = {RUNS!r}\n"
        "assert not can_be_fused(settings.dimension)\n"
        "print(*execute(settings).values['spurious'][:, -1].tolist())"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    numbers = np.array(answer.stdout.split(), np.float32)
    np.testing.assert_allclose(numbers, execute(RUNS).values["spurious"][:, -1], rtol=60 * 20 * EPSILON)


X86 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+fma"


@pytest.mark.slow
@pytest.mark.skipif(not get_host_cpu_features().get("avx2"), reason="needs a processor with AVX2")
@pytest.mark.parametrize(("width", "features"), [(8, f"{X86},+avx,+avx2"), (4, X86)])
def test_narrower_registers(width, features):
    """The code for computers with registers of 8 and of 4 numbers; `+fma` without `+avx` exists in this test only."""
    # Of whole runs one with square matrices and one with three columns: who is in a batch does not depend on registers.
    tests = ["-k", "fused_step or any_batch_size or whole_runs and (uniform or width)", __file__]
    check = f"from holdfast.sensing.kernel.matrices import WIDTH; assert WIDTH == {width}"
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
