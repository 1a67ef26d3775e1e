"""What the view draws of deep linear networks is what they did."""

import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

from holdfast.apps.cli.main import _parse
from holdfast.apps.lab.server import encoded
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.jumps import EARLY, RECORDS, VIEW, JumpsSettings, code
from holdfast.completion.training import simulate_completion

# The ridge takes rank 2 away within a few hundred steps.
QUICK = JumpsSettings(steps=1000, ridge=0.03, offshoots=2, offshoot_steps=1000, seed=3)


def computed(chosen, progress=lambda done, total: None, send=lambda part, data: None):
    found = VIEW.compute(chosen, Context(send, progress, lambda number: None))
    return {**found["curves"], "summary": found["summary"]}


def test_ratios_errors_ranks_and_offshoots():
    reports = []
    found = computed(QUICK, lambda done, total: reports.append((done, total)))
    simulation = simulate_completion(QUICK.simulated())
    fitted = simulation.paths.fitted
    # Two by two: the singular values follow from the norm and the determinant.
    norm, product = np.square(fitted).sum((-1, -2)), np.abs(np.linalg.det(fitted))
    gap = np.sqrt(np.maximum(norm**2 - 4 * product**2, 0))
    largest = np.sqrt((norm + gap) / 2)
    # s2 = |det| / s1; what cancels is at most a few roundings of float64.
    np.testing.assert_allclose(found["ratio"], product / largest**2, atol=1e-12)
    np.testing.assert_allclose(found["test_error"], np.square(fitted[..., 0, 1] - 4.0), rtol=1e-6)
    observed = [np.square(fitted[..., i, j] - truth) for i, j, truth in ((0, 0, 1), (1, 0, 0.25), (1, 1, 1))]
    np.testing.assert_allclose(found["train_error"], sum(observed) / 3, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(sum(found["ranks"].values()), 1.0)
    assert found["ranks"]["2"][0] == 1
    assert found["ranks"]["1"][-1] > 0
    run = found["single"]["seed"] - QUICK.seed
    np.testing.assert_allclose(found["single"]["singular_values"][0], largest[run], rtol=1e-6)
    branches = found["offshoots"]
    np.testing.assert_array_equal(branches["steps"], [500, 1000])
    np.testing.assert_allclose(branches["end"], simulation.offshoot_errors)
    np.testing.assert_array_equal(branches["begin"][:, -1], found["test_error"][:, -1])
    assert branches["true_rank"] == 1
    # The first steps, runs and offshoots fill one bar.
    assert reports[-1] == (1000 // EARLY + 1000 + 2 * 1000,) * 2
    assert reports == sorted(reports)
    assert "jumps down and none up; the first down, from rank 2 to 1" in found["summary"]
    assert "Offshoots from rank 1" in found["summary"]


def test_the_curves_that_come_first_are_the_beginning_of_the_others():
    parts = {}
    found = computed(replace(QUICK, problem="random", order="reshuffled"), send=parts.__setitem__)
    early = parts["curves"]
    records = len(early["steps"])
    assert early["steps"].tolist() == found["steps"][:records].tolist()
    assert early["steps"][-1] == 1000 // EARLY
    for name in ("ratio", "test_error", "train_error"):
        np.testing.assert_array_equal(early[name], found[name][:, :records])
    assert early["offshoots"]["steps"].size == 0


def test_runs_that_diverge_leave_the_curves():
    chosen = JumpsSettings(steps=1000, step_size=1.0, ridge=1e-4, init_scale=2.0)
    found = computed(chosen)
    assert "8 runs diverged, the first at step" in found["summary"]
    assert np.isnan(found["ratio"][:, -1]).all()
    assert sum(found["ranks"].values())[-1] == 0
    assert b"NaN" not in encoded(found)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm": "mini-batch", "batch_size": 3},
        {"algorithm": "label-noise", "noise_variance": 0.1, "order": "cyclic"},
        {"problem": "random", "dimension": 7, "share": 0.3, "offshoots": 3},
    ],
)
def test_copied_code_is_the_simulation_that_is_drawn(changes):
    chosen = JumpsSettings(steps=20_000, depth=4, **changes)
    copied = code(chosen)
    simulated = chosen.simulated()
    assert _parse(shlex.split(copied["command"])[1:]).settings == simulated
    seen = {}
    exec(copied["python"].split("summary =")[0], seen)
    assert seen["settings"] == simulated
    assert all(getattr(simulated, name) == value for name, value in changes.items())
    assert simulated.steps // simulated.every == RECORDS


def test_copied_python_runs_as_it_stands(capsys):
    exec(code(replace(QUICK, offshoots=0))["python"], {})
    assert len(re.findall(r"^\d+ .*Jump", capsys.readouterr().out, re.MULTILINE)) == 8


def test_what_does_not_matter_is_left_out():
    other = replace(QUICK, dimension=15, rank=4, share=0.9, problem_seed=5, batch_size=9, noise_variance=0.5)
    assert other.simulated() == QUICK.simulated()


def test_an_order_without_single_entries_is_refused_by_the_computation():
    chosen = JumpsSettings(algorithm="gradient-descent", order="cyclic")
    with pytest.raises(ValueError, match="order must be independent"):
        computed(chosen)
