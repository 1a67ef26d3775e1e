"""The sizes that the claims of a quick look name are those of runs that were made."""

import pytest

from holdfast_studies import load
from studies.experiments.runs_made import BATCH_SIZE, DIMENSION, STEPS, STEPS_IN_WORDS, named

# Those whose quick look has other sizes than the full run. Those on jumps are checked in `test_jump_experiments`.
SHORTENED = (
    "algorithm_4", "continuum", "factors", "number_of_environments", "optimizers", "order", "order_limits", "theorem_2",
)  # fmt: skip


def test_named_numbers_are_found():
    text = "d=100, m=8,000, T = 200; offshoots with 20,000 steps, m=400 d"
    assert named(DIMENSION, text) == {100}
    assert named(BATCH_SIZE, text) == {8000}
    assert named(STEPS, text) == {200}
    assert named(STEPS_IN_WORDS, text) == {20000}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTENED)
def test_claims_of_a_quick_look_name_what_was_run(name, runs_made):
    experiment = load(name)
    runs_made.check_texts(experiment, experiment.simulate(experiment.effort(quick=True), None))
