import os
import subprocess
import sys
import weakref
from importlib import import_module

import jax
import numpy as np
import pytest

from holdfast.core.run import Run, _advance, _known, run
from holdfast.sensing.builder import SensingBuilder
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import execute

SMALL = Settings(dimension=8, batch_size=100, steps=40, every=10, seeds=7, heterogeneity=3.0)


def with_settings(**changes):
    return Settings(**{**SMALL.asdict(), **changes})


def test_a_seed_does_not_know_its_neighbours():
    together = execute(SMALL, slab=7)
    for seed in (0, 6):
        alone = execute(with_settings(seeds=1, seed=seed))
        np.testing.assert_allclose(alone.values["spurious"][0], together.values["spurious"][seed], rtol=1e-4)
    # Equal shapes: equal to the bit, whoever else is in the slab, in whatever place.
    shifted = execute(with_settings(seed=3), slab=7)
    np.testing.assert_array_equal(shifted.values["spurious"][:4], together.values["spurious"][3:])


@pytest.mark.parametrize(("workers", "slab"), [(1, 2), (2, 2), (3, 3)])
def test_workers_and_slabs_change_nothing(workers, slab):
    reference = execute(SMALL, slab=2, workers=1)
    other = execute(SMALL, slab=slab, workers=workers)
    compare = np.testing.assert_array_equal if slab == 2 else _close
    compare(other.values["distance"], reference.values["distance"])


def _close(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-4)


def test_the_distance_of_records_changes_nothing():
    often, seldom = execute(with_settings(every=1)), execute(with_settings(every=17))
    assert seldom.steps.tolist() == [0, 17, 34, 40]
    np.testing.assert_array_equal(often.values["invariant"][:, seldom.steps], seldom.values["invariant"])


def test_cells_of_a_sweep_are_the_single_runs():
    swept = execute(with_settings(step_size=(0.01, 0.05), heterogeneity=(1.0, 3.0), batch_size=(50, 100)), slab=56)
    single = execute(with_settings(step_size=0.05, heterogeneity=3.0))
    last = swept.values["invariant"].reshape(2, 2, 2, 7, -1)[1, 1, 1]
    np.testing.assert_allclose(last, single.values["invariant"], rtol=1e-4)


def test_one_compilation_for_each_shape():
    _advance.clear_cache()
    for changes in (
        {},
        {"step_size": 0.01},
        {"steps": 33, "every": 4},
        {"seed": 9},
        {"heterogeneity": 1.0},
        {"batch_size": 7},
    ):
        execute(with_settings(**changes))
    assert _advance._cache_size() == 1
    execute(with_settings(seeds=15))  # two slabs on two threads still are one program
    assert _advance._cache_size() == 1 + 1


def test_float64_sees_the_same_random_numbers():
    single, double = execute(with_settings(steps=20)), execute(with_settings(steps=20, dtype="float64"))
    assert double.values["distance"].dtype == np.float64
    assert not jax.config.jax_enable_x64
    np.testing.assert_allclose(single.values["invariant"], double.values["invariant"], rtol=1e-3)
    np.testing.assert_allclose(single.values["spurious"], double.values["spurious"], rtol=1e-2)


def test_divergence_is_found_at_its_step_and_spoils_nothing():
    mixed = execute(with_settings(step_size=(0.05, 5.0)), slab=14)
    calm = execute(with_settings(step_size=0.05), slab=7)
    np.testing.assert_array_equal(mixed.diverged_at[:7], -1)
    assert (mixed.diverged_at[7:] > 0).all()
    np.testing.assert_allclose(mixed.values["distance"][:7], calm.values["distance"], rtol=1e-4)
    assert all(np.isfinite(values).all() for values in mixed.values.values())
    # The step it names is the one that would have passed the limit: one step less is still fine.
    at = int(mixed.diverged_at[7])
    assert execute(with_settings(step_size=5.0, steps=at - 1, seeds=1)).diverged_at[0] == -1
    assert execute(with_settings(step_size=5.0, steps=at, seeds=1)).diverged_at[0] == at


@pytest.mark.parametrize(
    "step_sizes",
    [
        pytest.param((0.05, 5.0), id="one diverges"),
        pytest.param((0.04, 0.05), id="none diverges", marks=pytest.mark.slow),
    ],
)
def test_the_loop_of_accelerators_gives_what_that_of_cpus_gives(step_sizes, monkeypatch):
    """Chunks of odd and even length, with runs that diverge in the middle of a turn, so that a chunk is repeated."""
    module = import_module("holdfast.core.run")
    settings = with_settings(step_size=step_sizes, seeds=2, every=7)
    expected = execute(settings, slab=4)
    monkeypatch.setattr(module, "ON_CPU", module.ON_ACCELERATOR)
    found = execute(settings, slab=4)
    np.testing.assert_array_equal(found.diverged_at, expected.diverged_at)
    assert (expected.diverged_at > 0).any() == (max(step_sizes) > 1)
    np.testing.assert_allclose(found.values["distance"], expected.values["distance"], rtol=1e-5)


def test_the_form_of_the_loop_follows_the_device_that_computes(monkeypatch):
    """A CPU that is chosen on a machine with a GPU gets the loop of CPUs."""
    expected = execute(SMALL)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr(import_module("holdfast.core.run"), "ON_ACCELERATOR", None)
    np.testing.assert_array_equal(execute(SMALL).values["distance"], expected.values["distance"])


@pytest.mark.slow
def test_devices_change_nothing():
    """One device or three: the slabs are the same, so the numbers are."""
    script = (
        "from holdfast.sensing.settings import Settings\nfrom holdfast.sensing.simulation import execute\nimport jax\n"
        "values = execute(Settings(dimension=8, batch_size=100, steps=40, seeds=7), slab=2).values\n"
        "print(jax.device_count(), values['distance'].tobytes().hex())"
    )
    outputs = []
    for devices in (1, 3):
        flags = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"}
        done = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, **flags}, capture_output=True, text=True
        )
        count, numbers = done.stdout.split()
        assert int(count) == devices
        outputs.append(numbers)
    assert outputs[0] == outputs[1]


def test_global_precision_and_generator_do_not_matter():
    plain = execute(SMALL)
    with jax.enable_x64(True), jax.default_prng_impl("rbg"):
        np.testing.assert_array_equal(execute(SMALL).values["distance"], plain.values["distance"])


def test_a_failure_in_one_slab_stops_the_others_and_is_raised():
    seen = []

    def progress(done, total):
        seen.append(done)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(with_settings(seeds=64, steps=100_000), slab=4, progress=progress)
    assert seen[-1] < 64 * 100_000 / 10


def test_a_run_needs_a_seed():
    with pytest.raises(ValueError, match="at least one seed"):
        run(_walk, None, {}, [], steps=1)


def test_progress_adds_up():
    reports = []
    execute(SMALL, slab=2, progress=lambda done, total: reports.append((done, total)))
    assert reports[-1] == (280, 280)
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)


def test_any_algorithm_runs_in_the_loop():
    """A random walk with known variance: the loop knows nothing of matrices."""
    records = run(_walk, None, {"scale": np.full(4000, 2.0, np.float32)}, np.arange(4000), steps=9, slab=1000)
    final = records.values["place"][:, -1]
    assert final.var() == pytest.approx(36, abs=5 * 36 * np.sqrt(2 / 4000))
    assert records.values["place"].shape == (4000, 10)


def _walk(shared, parameters):
    from holdfast.core import Algorithm

    def step(key, place, number):
        return place + parameters["scale"] * jax.random.normal(key)

    return Run(Algorithm(lambda: jax.numpy.zeros(()), step), lambda place: {"place": place})


def _with_growing_moments(shared, parameters):
    """A parameter that stays small beside a moment that grows without bound."""
    from holdfast.core import Algorithm

    def step(key, state, number):
        _, moment = state
        return jax.numpy.sin(1.0 * number), 10 * moment

    start = (jax.numpy.zeros(()), jax.numpy.ones(()))
    only_parameters = (lambda state: state[0],) if parameters is not None and "declared" in parameters else ()
    return Run(Algorithm(lambda: start, step, *only_parameters), lambda seen: {"seen": jax.tree.leaves(seen)[0]})


def test_the_algorithm_declares_what_decides_divergence():
    whole = run(_with_growing_moments, None, {}, [0, 1], steps=20)
    assert (whole.diverged_at == 4).all()  # the square of 10^4 is the limit itself
    declared = run(_with_growing_moments, None, {"declared": np.ones(2, np.float32)}, [0, 1], steps=20)
    assert (declared.diverged_at == -1).all()
    # A step knows its number, and the observer sees the parameters alone.
    np.testing.assert_allclose(declared.values["seen"][0, 1:], np.sin(np.arange(20.0)), atol=1e-6)


def test_equal_structures_are_equal_builds():
    assert SensingBuilder.of(SMALL) == SensingBuilder.of(with_settings(step_size=0.2, seeds=3, steps=5))
    assert SensingBuilder.of(SMALL) != SensingBuilder.of(with_settings(batching="pooled"))


def test_builders_that_are_gone_leave_no_locks():
    class Builder:
        """Hashable, as any object."""

    alive = weakref.WeakSet()
    for _ in range(1000):
        alive.add(builder := Builder())
        assert _known(builder, 2) is _known(builder, 2)
    assert len(alive) < 300
