"""Orders of environments: their laws, and that nothing else about a run depends on them."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Settings, simulate
from holdfast.algorithms.factored import random_start
from holdfast.completion import CompletionSettings, simulate_completion
from holdfast.core.order import LONGEST_CYCLE, ORDERS, cycle, cyclic, reshuffled, reshuffling
from holdfast.core.randomness import START, standard_normals
from holdfast.core.run import Algorithm, Run, run
from holdfast.core.validation import setting_types
from holdfast.sensing import batching, builder
from holdfast.sensing.builder import Parts
from holdfast.sensing.environments import PanelLaw, panel, table, two_point, uniform
from holdfast.sensing.measurements import fixed_data_set
from holdfast.sensing.simulation import execute
from holdfast.sweeps import phase_diagram

SMALL = Settings(dimension=8, batch_size=200, steps=41, seeds=5, every=7)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any))
@settings(deadline=None, max_examples=50)
def test_a_cycle_has_every_environment_in_its_proportion(visits):
    total = sum(visits)
    found = cycle(np.float32(np.array(visits) / total))
    counts = np.bincount(found, minlength=len(visits))
    np.testing.assert_array_equal(counts * total, np.array(visits) * len(found))
    assert len(found) == total // np.gcd.reduce(visits)  # and there is no shorter one
    # The visits are spread: each half of the cycle has half of them, up to one.
    first_half = np.bincount(found[: len(found) // 2], minlength=len(visits))
    assert np.abs(first_half - counts / 2).max() <= 1


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
@settings(deadline=None, max_examples=20)
def test_other_probabilities_are_met_to_less_than_one_visit_in_a_cycle(weights):
    shares = np.array(weights) / np.sum(weights)
    found = cycle(shares)
    assert len(found) <= LONGEST_CYCLE
    assert np.abs(np.bincount(found, minlength=len(shares)) - len(found) * shares).max() < 1


def test_a_rare_environment_is_visited_or_refused():
    assert Counter(cycle([0.9992, 0.0008])) == {0: 999, 1: 1}  # 1250 steps would be exact, and are too many
    with pytest.raises(ValueError, match=r"large enough for a visit in a cycle of at most 1000 steps, got \[0.0005\]"):
        cycle([0.9995, 0.0005])
    rows = np.append(0, np.ones(2000, int))
    data = fixed_data_set(np.zeros((2001, 1), np.float32), np.zeros(2001), rows, dimension=1)
    with pytest.raises(ValueError, match="probabilities must be 0 or large enough for a visit"):
        batching.row_cycle(data)


@pytest.mark.parametrize("probabilities", [[], [0.5, 0.6], [-0.5, 1.5], [[1.0]]])
def test_a_cycle_needs_probabilities(probabilities):
    with pytest.raises(ValueError, match="probabilities must be non-negative numbers that sum to 1, got"):
        cycle(probabilities)


@pytest.mark.parametrize("make", [cyclic, reshuffled])
def test_every_cycle_of_an_order_has_the_same_visits(make):
    visits = cycle([0.2, 0.5, 0.3])
    order = jax.jit(make(visits, 3))
    seen = np.array([order(step) for step in range(5 * len(visits))]).reshape(5, -1)
    for row in seen:
        assert Counter(row.tolist()) == Counter(visits)
    assert (len({tuple(row) for row in seen}) == 1) == (make is cyclic)


def test_reshuffled_permutations_are_uniform_and_differ_between_seeds():
    cycles = 6000
    order = lambda seed, step: reshuffled((0, 1, 2), seed)(step)  # noqa: E731
    steps = jnp.arange(3 * cycles)
    seen = np.asarray(jax.jit(jax.vmap(lambda step: order(7, step)))(steps)).reshape(cycles, 3)
    counts = np.array([(seen == each).all(1).sum() for each in permutations(range(3))])
    assert counts.sum() == cycles
    assert np.abs(counts / cycles - 1 / 6).max() < 5 * np.sqrt(1 / 6 * 5 / 6 / cycles)
    # Neighbouring cycles, and seeds, are independent: the first of one says nothing about the first of the next.
    other = np.asarray(jax.jit(jax.vmap(lambda seed: order(seed, 0)))(jnp.arange(cycles)))
    for pairs in ((seen[:-1, 0], seen[1:, 0]), (other[:-1], other[1:])):
        assert abs(np.mean(pairs[0] == pairs[1]) - 1 / 3) < 5 * np.sqrt(2 / 9 / cycles)


def test_an_order_a_start_and_a_panel_share_no_random_numbers_with_each_other_or_with_the_steps():
    run_key = jax.random.key(0, impl="threefry2x32")
    start_key = jax.random.fold_in(run_key, START)
    expected = jax.jit(standard_normals, static_argnums=(1, 2))(start_key, (3, 3), jnp.dtype("float32")) / np.sqrt(3)
    np.testing.assert_allclose(random_start(0, 3, 3), expected, rtol=1e-5)
    # The first cycle is not the permutation that belongs to the first number of the start.
    entries = 50
    seen = jax.jit(jax.vmap(reshuffled(tuple(range(entries)), 0)))(jnp.arange(entries))
    assert not np.array_equal(seen, jax.random.permutation(jax.random.fold_in(start_key, 0), entries))
    # No strength of a panel is the one that a step of the run with the same seed would draw.
    law, steps = uniform(0.0, 1.0), 20
    drawn = jax.vmap(lambda step: law.draw(jax.random.fold_in(run_key, step)))(jnp.arange(steps))
    assert not np.isin(panel(law, steps, seed=0).strengths, drawn).any()


def test_the_names_of_orders_are_those_that_settings_accept():
    kinds = [setting_types(kind)["order"].choices for kind in (Settings, CompletionSettings)]
    assert [tuple(names) for names in kinds] == [tuple(ORDERS)] * 2


def drawn_anew(environments, batch_size):
    def draw(key, step):
        strength = environments.draw(key)[None]
        return batching.Batch(strength, jnp.full(1, 1 if batch_size is None else batch_size, strength.dtype))

    return draw


@pytest.mark.parametrize("oracle", ["law", "population"])
def test_independent_is_the_paper_to_the_bit(oracle):
    given = replace(SMALL, oracle=oracle)
    named, written_out = execute(given), execute(given, Parts(batching=drawn_anew))
    for name, values in named.values.items():
        np.testing.assert_array_equal(values, written_out.values[name])


@pytest.mark.parametrize("slab", [1, 3])
def test_a_remembered_cycle_is_the_same_to_the_bit(slab):
    """What runs visit in 40 steps: the permutation is found anew in each step, or carried along."""
    visits = (0, 1, 1, 2, 3, 4, 4)

    def make(order):
        start = jnp.zeros(40, jnp.int32)
        return Algorithm(lambda: start, lambda key, seen, number: seen.at[number].set(order(number)))

    def found(shared, parameters):
        return Run(make(reshuffled(visits, parameters)), lambda seen: {"seen": seen})

    def remembered(shared, parameters):
        return Run(reshuffling(make, visits, parameters), lambda seen: {"seen": seen})

    seeds = np.arange(3, dtype=np.uint32)
    both = [run(each, None, seeds, seeds, steps=40, every=9, slab=slab).values["seen"] for each in (found, remembered)]
    assert np.array_equal(*both)
    assert all(sorted(row[:7]) == sorted(visits) for row in both[1][:, -1].tolist())
    assert len({tuple(row) for row in both[1][:, -1].tolist()}) == len(seeds)


def test_a_run_that_remembers_a_long_cycle_is_the_same_to_the_bit(monkeypatch):
    given = Settings(
        dimension=4, oracle="population", environments="gaussian", heterogeneity=6.0, panel=20, order="reshuffled",
        steps=50, seeds=3,
    )  # fmt: skip
    remembered = execute(given).values["spurious"]
    monkeypatch.setattr(builder, "SHUFFLED_IN_EVERY_STEP", 20)
    jax.clear_caches()  # the settings are the same, and so would be the compiled program
    assert np.array_equal(execute(given).values["spurious"], remembered)


@pytest.mark.parametrize("order", ["reshuffled", "cyclic"])
def test_an_order_depends_on_nothing_but_the_seed(order):
    given = replace(SMALL, order=order)
    together = execute(given).values["spurious"]
    others = {
        "slabs and workers": execute(given, slab=2, workers=1).values["spurious"],
        "records, hence chunks": execute(replace(given, every=41), slab=5).values["spurious"][:, [-1]],
        "the other seeds": execute(replace(given, seed=2, seeds=3)).values["spurious"],
    }
    np.testing.assert_allclose(others["slabs and workers"], together, rtol=1e-4)
    np.testing.assert_allclose(others["records, hence chunks"], together[:, [-1]], rtol=1e-4)
    np.testing.assert_allclose(others["the other seeds"], together[2:], rtol=1e-4)
    assert not np.allclose(together, execute(SMALL).values["spurious"], rtol=0.1)


def test_in_cyclic_order_the_spurious_signal_is_the_product_of_the_factors():
    given = Settings(
        dimension=4, oracle="population", order="cyclic", steps=60, every=1, seeds=1, dtype="float64", bias=1.0
    )
    share = execute(given).values["spurious"][0]
    factors = np.where(np.arange(60) % 2 == 0, 1 - 0.05 * 5, 1 + 0.05 * 7)
    expected = 1e-6 * np.cumprod(np.append(1, factors)) ** 2
    np.testing.assert_allclose(share, expected, rtol=1e-3)  # saturation: the share stays below 1e-5


def test_a_fixed_data_set_is_visited_in_cycles():
    rows = np.array([0, 1, 1, 1])
    data = fixed_data_set(np.eye(4, dtype=np.float32), np.arange(4.0), rows, dimension=2)
    visits = batching.row_cycle(data)
    order = reshuffled(visits, 0)
    draw = jax.jit(batching.hetero_rows(data, order=order))
    for step in range(12):
        weights = np.asarray(draw(jax.random.key(step), step))[:4]
        assert set(rows[weights > 0]) == {int(order(step))}
    assert Counter(visits) == {0: 1, 1: 3}
    sampled = {"oracle": "data", "samples_per_environment": 60, "batch_size": 40, "steps": 12}
    runs = [execute(replace(SMALL, order=name, **sampled)).values["spurious"] for name in ("independent", "cyclic")]
    assert np.isfinite(runs).all()
    assert not np.allclose(*runs, rtol=1e-3)
    # All rows of one environment after the other, in the same order: seeds no longer differ.
    everything = {**sampled, "batch_size": 60}
    same = execute(replace(SMALL, order="cyclic", **everything)).values["spurious"]
    np.testing.assert_allclose(same, np.broadcast_to(same[:1], same.shape), rtol=1e-4)


def test_a_panel_is_drawn_once_and_visited_in_cycles():
    continuum = uniform(1.0, 4.0)
    drawn = panel(continuum, 50, seed=3)
    assert drawn.count == 50
    assert len(np.unique(drawn.strengths)) == 50
    np.testing.assert_array_equal(drawn.strengths, panel(continuum, 50, seed=3).strengths)
    assert abs(float(drawn.mean[0, 0]) - 1) < 5 * 4 / np.sqrt(3 * 50)
    # Without sampling error and in cyclic order nothing else is random.
    given = replace(SMALL, dimension=3, oracle="population", problem_seed=3, order="cyclic")
    named = simulate(replace(given, environments="uniform", panel=5))
    own = simulate(given, environments=PanelLaw(uniform, 5, 3))
    np.testing.assert_array_equal(named.data["spurious"], own.data["spurious"])


@pytest.mark.parametrize(
    ("given", "parts", "message"),
    [
        ({"batching": "pooled"}, {}, "order must be independent for pooled batches.*got 'cyclic'"),
        ({"batching": "full"}, {}, "order must be independent for full batches.*got 'cyclic'"),
        ({"environments": "gaussian"}, {}, "order must be left out for a continuum.*panel.*got 'cyclic'"),
        ({}, {"batching": drawn_anew}, "order must be left out when batching is given, got 'cyclic'"),
        ({"panel": 3}, {"environments": table([1.0])}, "panel must be left out when environments are given.*got 3"),
        ({"panel": 0}, {}, "panel must be a whole number of at least 1, got 0"),
    ],
)
def test_where_an_order_does_not_apply_one_sentence_says_so(given, parts, message):
    with pytest.raises(ValueError, match=message):
        simulate(replace(SMALL, **{"order": "cyclic", **given}), **parts)


def test_probabilities_that_vary_with_what_is_swept_have_no_cycle():
    def moving(bias, heterogeneity, *, rank=1, off_diagonal=0.0, shared=True):
        made = two_point(bias, heterogeneity, rank=rank)
        return replace(made, probabilities=jnp.stack([heterogeneity / 10, 1 - heterogeneity / 10]))

    with pytest.raises(ValueError, match="environments must have the same probabilities for all swept values"):
        simulate(replace(SMALL, order="cyclic", heterogeneity=(2.0, 6.0)), environments=moving)


def test_observed_entries_are_visited_in_passes():
    in_passes = CompletionSettings(steps=300, seeds=3, every=100, order="cyclic")
    first, second = (simulate_completion(replace(in_passes, seed=seed)).paths for seed in (0, 0))
    np.testing.assert_array_equal(first.layers[0], second.layers[0])
    anew = simulate_completion(replace(in_passes, order="independent")).paths
    assert not np.allclose(first.layers[0], anew.layers[0], rtol=0.01)
    for algorithm in ("gradient-descent", "mini-batch", "sde"):
        with pytest.raises(ValueError, match="order must be independent unless a step sees one entry"):
            CompletionSettings(algorithm=algorithm, order="cyclic")


def test_a_phase_diagram_has_an_order():
    plane = phase_diagram("time", order="reshuffled", cells=2, seeds=2)
    assert plane.attrs["order"] == "reshuffled"
    with pytest.raises(ValueError, match="order must be one of independent, reshuffled, cyclic, got 'sorted'"):
        phase_diagram("time", order="sorted", cells=2, seeds=2)
