"""The experiments on jumps, cut short: that they run, draw and count; what they find is tested with `slow`."""

from dataclasses import replace

import numpy as np
import pytest

from holdfast.completion import jumps as jumping
from holdfast.plots import style
from holdfast.sweeps.store import DATASETS, Key, Store
from holdfast_studies import load
from holdfast_studies.experiment import Effort
from holdfast_studies.papers import absorbing, entering, jump_rates, jumps


def check_outputs(experiment, data):
    """Drawn with labels, a table with rows, and claims with intervals that can be written."""
    with style():
        figure = experiment.draw(data)
    assert all(axes.get_xlabel() and axes.get_ylabel() and axes.get_legend() is not None for axes in figure.axes)
    assert len(experiment.numbers(data)) > 0
    for claim in experiment.claims(data):
        value, low, high = claim.measured
        assert low <= value <= high
        claim.asdict()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("jumps", marks=pytest.mark.slow),
        *("absorbing", "entering", "collapse", "jump_recovery", "jump_rates"),
    ],
)
def test_a_quick_look_contradicts_nothing_and_names_what_was_run(name, tmp_path, runs_made):
    experiment = load(name)
    reports = []
    data = experiment.simulate(experiment.effort(quick=True), lambda done, total: reports.append((done, total)))
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1][0] == reports[-1][1]
    store, file = Store(tmp_path, DATASETS), Key(name, {}, ("holdfast_studies",)).file
    store.save(file, data)
    data = store.load(file)
    check_outputs(experiment, data)
    assert not any(claim.broken for claim in experiment.claims(data))
    runs_made.check_texts(experiment, data)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(jumps, "RUN", replace(jumps.RUN, steps=8000, every=200, ridge=0.026))
    variants = {name: options | {"steps": 2000 if options else 8000} for name, options in jumps.VARIANTS.items()}
    # A step size at which most runs diverge, some of them before they could sit, and one at which all do.
    variants["SDE, 1 substep"] |= {"step_size": 0.6}
    monkeypatch.setattr(jumps, "VARIANTS", variants)
    monkeypatch.setattr(jumps, "OFFSHOOT", jumps.OFFSHOOT | {"steps": 500})
    monkeypatch.setattr(jump_rates, "STEP_SIZES", (*jump_rates.STEP_SIZES, 3.0))
    monkeypatch.setattr(jump_rates, "STEPS", 1500)
    # Those of a quick look, so that their programs are compiled once.
    monkeypatch.setattr(jump_rates, "WIDTHS", (4, 6, 10))
    monkeypatch.setattr(jump_rates, "RIDGES", {depth: jump_rates.RIDGES[depth] for depth in (2, 3, 4)})


@pytest.mark.parametrize("name", [pytest.param("jumps", marks=pytest.mark.slow), "jump_rates"])
def test_diverged_runs_count_until_they_diverge(name, short):
    experiment = load(name)
    data = experiment.simulate(Effort(8), None)
    diverged = data["diverged"].astype(bool)
    assert diverged.any()
    assert ((data["diverged_at"] > 0) == diverged).all()
    constants = {"step_size": jumps.STEP_SIZE, "ridge": jumps.RIDGE}
    step_size, ridge = (data.get(each, value) for each, value in constants.items())
    sitting = jumping.SITTING / (2 * step_size * ridge)
    # Whoever sat and waited did so before it diverged, and the jump came before that as well.
    sat = data["sat"].astype(bool)
    assert (sitting + data["waited"] < data["diverged_at"]).where(sat & diverged, True).all()
    assert (data["jump_step"] < data["diverged_at"]).where(diverged, True).all()
    assert (diverged & ~sat).any()
    if "rank" in data:
        assert data["rank"].where(diverged & (data["step"] >= data["diverged_at"])).isnull().all()
        assert data["rank"].where(data["step"] < data["diverged_at"]).notnull().any()
    check_outputs(experiment, data)


@pytest.mark.slow
def test_entering_uses_the_constants_that_absorbing_arrives_at():
    runs = absorbing._runs(range(absorbing.SELECTION_RUNS), absorbing.SEARCHED, "sgd", None)
    assert absorbing.constants_of(absorbing._search(runs)) == entering.CONSTANTS


def test_one_entry_drawn_in_a_row_leads_to_rank_one():
    """From the rotations: what the ridge leaves of the other directions after T steps is (1 - 2 eta lambda)^T of them.

    B_1 needs sum f <= 0.3 over at most 5 other values of at most that size squared; f(x) <= 2 x / alpha, so T is at
    most log(10 / (0.3 alpha)) / (4 eta lambda), rounded up, if the first condition and the third hold.
    """
    start = entering.chosen_starts()[entering.ROTATIONS]
    eta, ridge, constants = jumps.STEP_SIZE, jumps.RIDGE, entering.CONSTANTS
    longest = np.ceil(np.log(10 / (constants.slack * constants.level)) / (-2 * np.log(1 - 2 * eta * ridge)))
    assert 50 < entering.path_length(start, [(0, 0, 1.0)], 1) <= longest
    assert entering.path_length(start, [(0, 0, 1.0)], 0) != entering.path_length(start, [(0, 0, 1.0)], 1)
