import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.completion import matrix_completion, random_low_rank, two_by_two
from holdfast.completion.jumps import ranks
from holdfast.completion.oracles import drawn_entries
from holdfast.completion.settings import CompletionSettings
from holdfast.completion.summary import summarise
from holdfast.completion.training import CompletionBuilder, offshoots, simulate_completion, starts, train

PROBLEM = two_by_two(0.25)
SEEDS = np.arange(4)
SMALL = {"steps": 60, "every": 20, "seeds": 3}


def spectrum(paths):
    return np.linalg.svd(paths.fitted, compute_uv=False)


def test_steps_are_those_of_a_plain_loop():
    """The same entries, drawn from the same keys, in a loop of NumPy."""
    paths = train(PROBLEM, starts((2, 3, 3, 2), 1.0, SEEDS), SEEDS, step_size=0.2, ridge=0.02, steps=50, every=50)
    for run, seed in enumerate(SEEDS):
        layers = [layer[run].astype(float) for layer in starts((2, 3, 3, 2), 1.0, SEEDS)]
        for step in range(50):
            key = jax.random.fold_in(jax.random.key(int(seed)), step)
            entry = int(drawn_entries(key, (), 3))
            row, column, value = (part[entry].item() for part in (PROBLEM.rows, PROBLEM.columns, PROBLEM.values))
            first, second, third = layers
            residual = (third @ second @ first)[row, column] - value
            slopes = (
                np.outer(third[row] @ second, np.eye(2)[column]),
                np.outer(third[row], first[:, column]),
                np.outer(np.eye(2)[row], second @ first[:, column]),
            )
            layers = [
                (1 - 2 * 0.2 * 0.02) * layer - 0.2 * residual * slope
                for layer, slope in zip(layers, slopes, strict=True)
            ]
        for ours, plain in zip(paths.final, layers, strict=True):
            np.testing.assert_allclose(ours[run], plain, rtol=1e-3, atol=1e-5)


def test_the_starts_are_the_first_record_and_seeds_do_not_know_each_other():
    layers = starts((2, 3, 3, 2), 1.0, SEEDS)
    together = train(PROBLEM, layers, SEEDS, step_size=0.2, ridge=0.02, steps=40, every=10)
    np.testing.assert_allclose(together.layers[0][:, 0], layers[0], rtol=1e-6)
    alone = train(PROBLEM, tuple(layer[2:3] for layer in layers), [2], step_size=0.2, ridge=0.02, steps=40, every=40)
    np.testing.assert_allclose(alone.fitted[0, -1], together.fitted[2, -1], rtol=1e-3, atol=1e-5)


def test_numbers_may_differ_between_runs():
    layers = starts((2, 3, 3, 2), 1.0, np.zeros(2))
    both = train(PROBLEM, layers, [7, 7], step_size=[0.1, 0.3], ridge=[0.0, 0.02], steps=30, every=30)
    single = train(PROBLEM, layers, [7, 7], step_size=0.3, ridge=0.02, steps=30, every=30)
    np.testing.assert_allclose(both.fitted[1], single.fitted[1], rtol=1e-4, atol=1e-6)
    assert np.abs(both.fitted[0, -1] - both.fitted[1, -1]).max() > 1e-3


def test_one_layer_goes_to_the_ridge_solution():
    """L = 1 is least squares: observed entries go to value / (1 + 2 N lambda), the others to 0, whatever the start."""
    ridge = 0.01
    layers = starts((2, 2), 1.0, SEEDS)
    paths = train(
        PROBLEM,
        layers,
        SEEDS,
        step_size=0.5,
        ridge=ridge,
        steps=3000,
        every=3000,
        build=CompletionBuilder("gradient-descent"),
    )
    expected = np.asarray(PROBLEM.targets) / (1 + 2 * 3 * ridge)
    np.testing.assert_allclose(paths.fitted[:, -1], np.broadcast_to(expected, (4, 2, 2)), atol=1e-5)


def test_float64_runs_in_float64():
    with jax.enable_x64(True):
        problem = two_by_two(0.25)
        layers = starts((2, 3, 2), 1.0, SEEDS)
        double = train(problem, layers, SEEDS, step_size=0.1, ridge=0.01, steps=30, every=30)
    assert double.layers[0].dtype == np.float64
    single = train(PROBLEM, layers, SEEDS, step_size=0.1, ridge=0.01, steps=30, every=30)
    np.testing.assert_allclose(double.fitted, single.fitted, atol=1e-4)


def test_no_observed_entry_leaves_the_ridge_alone():
    empty = matrix_completion(np.ones((2, 2)), np.zeros((2, 2)))
    layers = starts((2, 3, 2), 1.0, SEEDS)
    for name in ("sgd", "mini-batch", "label-noise", "gradient-descent", "sde"):
        paths = train(empty, layers, SEEDS, step_size=0.5, ridge=0.1, steps=20, every=20, build=CompletionBuilder(name))
        for start, end in zip(layers, paths.final, strict=True):
            np.testing.assert_allclose(end, start * 0.9**20, rtol=1e-4)


def test_a_width_bounds_the_rank():
    problem = random_low_rank(5, 6, 3, 0.8)
    layers = starts((6, 2, 4, 5), 1.0, SEEDS)
    paths = train(problem, layers, SEEDS, step_size=0.1, ridge=1e-3, steps=500, every=100)
    assert spectrum(paths)[..., 2:].max() < 1e-5
    assert (spectrum(paths)[:, -1, 1] > 0.1).all()


def test_a_large_ridge_makes_everything_vanish_and_says_so():
    result = summarise(simulate_completion(CompletionSettings(**SMALL | {"ridge": 0.5, "steps": 2000}))).asdict()
    for run in result["runs"]:
        assert run["rank"] == 0
        assert 0 <= run["ratio"] <= 1
        assert run["test_error"] == pytest.approx(16, abs=1e-3)
        assert "rank 0: the ridge made every singular value vanish" in run["outcome"]["sentence"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"init_scale": 0.01, "ridge": 0.0}, "at rank 0: no singular value has grown yet"),
        ({"init_scale": 0.01, "ridge": 0.02}, "at rank 0: no singular value has grown yet"),
        ({"problem": "random", "share": 0.0, "ridge": 0.0}, "no entry is observed, so no layer moves"),
        ({"problem": "random", "share": 0.0, "ridge": 0.1}, "so the ridge shrinks every layer to 0"),
    ],
)
def test_the_ridge_is_blamed_only_for_what_it_did(changes, reason):
    result = summarise(simulate_completion(CompletionSettings(**SMALL | {"steps": 10} | changes))).asdict()
    assert all(reason in run["outcome"]["sentence"] for run in result["runs"])


def test_a_run_that_diverges_does_not_jump_afterwards():
    settings = CompletionSettings(**SMALL | {"step_size": 3.0, "ridge": 0.0})
    simulation = simulate_completion(settings)
    assert (simulation.paths.diverged_at < 20).all()
    assert all(run["jumps"] == [] for run in summarise(simulation).asdict()["runs"])


def test_divergence_is_an_outcome():
    result = summarise(simulate_completion(CompletionSettings(**SMALL | {"step_size": 3.0, "ridge": 0.0}))).asdict()
    for run in result["runs"]:
        assert run["outcome"]["code"] == "diverged"
        assert "the squared norm of the layers passed" in run["outcome"]["sentence"]
        assert np.isfinite([run["ratio"], run["train_error"], run["test_error"]]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"depth": 1},
        {"depth": 1, "algorithm": "sde", "substeps": 3},
        {"width": 1, "algorithm": "mini-batch"},
        {"problem": "random", "dimension": 1, "rank": 1, "share": 1.0},
        {"problem": "random", "share": 0.0, "algorithm": "label-noise"},
        {"ridge": 0.0},
        {"steps": 0, "offshoots": 2, "offshoot_steps": 5},
    ],
)
def test_edges_have_finite_answers(changes):
    result = summarise(simulate_completion(CompletionSettings(**SMALL | changes))).asdict()
    assert len(result["runs"]) == 3
    for run in result["runs"]:
        assert np.isfinite([run["ratio"], run["train_error"], run["test_error"]]).all()
        assert run["outcome"]["code"] == "finished"


def test_offshoots_start_from_the_records_they_name():
    paths = train(PROBLEM, starts((2, 3, 3, 2), 1.0, SEEDS), SEEDS, step_size=0.2, ridge=0.02, steps=40, every=10)
    records = np.array([[1, 3]] * 4)
    unmoved = offshoots(PROBLEM, paths, records, SEEDS, step_size=0.1, ridge=0.01, steps=0)
    np.testing.assert_allclose(unmoved, paths.fitted[:, [1, 3]], atol=1e-5)
    moved = offshoots(PROBLEM, paths, records, SEEDS, step_size=0.1, ridge=1e-3, steps=5000)
    assert PROBLEM.train_error(moved).max() < 0.01


@pytest.mark.parametrize("order", ["independent", "reshuffled"])
def test_offshoots_have_random_numbers_of_their_own(order):
    options = {"step_size": 0.2, "ridge": 0.02, "steps": 40, "build": CompletionBuilder(order=order)}
    paths = train(PROBLEM, starts((2, 3, 3, 2), 1.0, SEEDS), SEEDS, every=40, **options)
    again, twin = np.moveaxis(offshoots(PROBLEM, paths, np.zeros((4, 2), int), SEEDS, **options), 1, 0)
    assert (np.abs(again - paths.fitted[:, -1]).max((1, 2)) > 1e-3).all()
    np.testing.assert_array_equal(again, twin)  # branches of a run share theirs


def test_sgd_jumps_and_gradient_descent_stays():
    """The effect itself, in small: SGD leaves rank 2 within thousands of steps, and no run comes back."""
    seeds = np.arange(32)
    layers = starts((2, 6, 6, 2), 1.0, seeds)
    options = {"step_size": 0.45, "ridge": 0.0245, "steps": 30_000, "every": 200}
    sgd = ranks(spectrum(train(PROBLEM, layers, seeds, **options)), PROBLEM.scale)
    descent = train(PROBLEM, layers, seeds, build=CompletionBuilder("gradient-descent"), **options)
    assert (ranks(spectrum(descent), PROBLEM.scale)[:, -1] == 2).all()
    assert (sgd[:, 5] == 2).mean() > 0.9
    assert (sgd[:, -1] == 1).mean() > 0.9
    assert (np.diff(sgd[:, 5:]) <= 0).all()


def test_an_equation_with_more_substeps_is_closer_to_its_limit():
    """Without noise the equation is gradient flow: the error of Euler's method halves with the step."""
    with jax.enable_x64(True):
        # With one observed entry SGD has no noise, and neither has the equation.
        problem = matrix_completion([[1.0, 0.5]], [[True, False]])
        layers = starts((2, 2, 1), 1.0, SEEDS)
        options = {"step_size": 0.1, "ridge": 0.01, "steps": 20, "every": 20}
        end = {
            n: train(problem, layers, SEEDS, build=CompletionBuilder("sde", substeps=n), **options).fitted[:, -1]
            for n in (1, 2, 64)
        }
    coarse, fine = (np.abs(end[n] - end[64]).max() for n in (1, 2))
    assert coarse / fine == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epsilon", 0.0, "a positive number"),
        ("ridge", -1.0, "a number of at least 0"),
        ("ridge", float("nan"), "a number of at least 0"),
        ("depth", 0, "a whole number of at least 1"),
        ("width", 2.5, "a whole number of at least 1"),
        ("share", 1.5, "a number from 0 to 1"),
        ("algorithm", "adam", "one of sgd, mini-batch, label-noise, gradient-descent, sde"),
        ("seed", 2**32, r"a whole number from 0 to 2\^32 - 1"),
    ],
)
def test_bad_settings_are_refused_by_name_value_and_range(name, value, allowed):
    with pytest.raises(ValueError, match=f"{name} must be {allowed}, got"):
        CompletionSettings(**{name: value})


def test_torch_programs_of_the_benchmark_take_the_same_steps():
    torch = pytest.importorskip("torch")
    assert torch is not None
    from holdfast_studies.benchmarks.deep_linear import (
        RIDGE,
        STEP_SIZE,
        batched_torch,
        batched_torch_by_hand,
        plain_torch,
    )

    steps = 30
    keys = [[jax.random.fold_in(jax.random.key(int(seed)), step) for seed in SEEDS] for step in range(steps)]
    entries = np.array([[int(drawn_entries(key, (), 3)) for key in row] for row in keys])
    layers = starts((2, 3, 3, 2), 1.0, SEEDS)
    ours = train(PROBLEM, layers, SEEDS, step_size=STEP_SIZE, ridge=RIDGE, steps=steps, every=steps).final
    for program in (batched_torch, batched_torch_by_hand):
        for own, theirs in zip(ours, program(layers, entries), strict=True):
            np.testing.assert_allclose(own, theirs, rtol=1e-3, atol=1e-5)
    single = plain_torch(tuple(layer[:1] for layer in layers), entries[:, :1])
    for own, theirs in zip(ours, single, strict=True):
        np.testing.assert_allclose(own[:1], theirs, rtol=1e-3, atol=1e-5)


def test_own_keys_are_those_of_jax():
    from holdfast.core.randomness import fold_in

    key = jax.random.key(11)
    for number in (0, 1, 77, 2**31):
        expected = jax.random.key_data(jax.random.fold_in(key, np.uint32(number)))
        np.testing.assert_array_equal(jax.random.key_data(fold_in(key, jnp.uint32(number))), expected)


def test_a_network_that_cannot_do_it_says_so():
    plain = summarise(simulate_completion(CompletionSettings(depth=1, steps=10, seeds=1))).asdict()
    assert "One layer is plain regression" in plain["notes"][0]
    narrow = CompletionSettings(problem="random", dimension=5, rank=3, width=2, steps=10, seeds=1)
    assert summarise(simulate_completion(narrow)).asdict()["notes"] == [
        "Width 2 is below the rank 3 of the matrix: it cannot be fitted exactly."
    ]


def test_a_ridge_that_overshoots_is_refused():
    with pytest.raises(ValueError, match=r"step_size \* ridge must be below 1, .* got 0.4 \* 1000000.0"):
        CompletionSettings(step_size=0.4, ridge=1e6)
