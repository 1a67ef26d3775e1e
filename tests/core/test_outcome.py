import numpy as np

from holdfast.core.outcome import Code, outcome_codes, outcomes
from holdfast.core.run import Records


def records(invariant, diverged_at=-1):
    path = np.asarray(invariant, float)[None]
    zero = np.zeros_like(path)
    values = {"invariant": path, "spurious": zero, "residual": zero, "phase": np.where(path < 1 / 9, 1, 2)}
    return Records(np.arange(path.shape[1]) * 10, values, np.array([diverged_at]))


def test_the_three_ends():
    (settled,) = outcomes(records([0, 0.5, 1, 1, 1.001, 1.002, 1, 1]))
    assert settled.code is Code.CONVERGED
    (moving,) = outcomes(records([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]))
    assert moving.code is Code.FINISHED
    assert "the invariant signal still moved by 0.1" in moving.sentence
    (lost,) = outcomes(records([0, 1, 1, 1, 1, 1, 1, 1], diverged_at=13))
    assert lost.code is Code.DIVERGED
    assert lost.sentence.startswith("diverged at step 13:")


def test_a_run_that_has_not_left_the_start_has_not_converged():
    (end,) = outcomes(records([1e-6] * 8))
    assert end.code is Code.FINISHED
    assert "still small" in end.sentence


def test_two_records_cannot_tell():
    (end,) = outcomes(records([0.0, 1.0]))
    assert end.code is Code.FINISHED
    assert "too few records" in end.sentence


def test_a_signal_that_is_no_number_has_not_settled():
    unknown = records([1.0] * 8)
    unknown.values["residual"][0, -1] = np.nan
    (end,) = outcomes(unknown)
    assert end.code is Code.FINISHED
    assert outcome_codes(unknown).tolist() == [Code.FINISHED]
