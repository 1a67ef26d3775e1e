import numpy as np
import pytest

from holdfast.completion.jumps import Jump, before_divergence, jumps, memory, ranks, waiting


def test_a_value_between_the_marks_keeps_its_state():
    values = np.array([0.05, 0.2, 0.05, 0.005, 0.05, 0.2, 0.005])
    assert ranks(values[:, None], 1.0).tolist() == [1, 1, 1, 0, 0, 1, 0]


def test_ranks_are_those_of_the_matrix_and_can_vanish():
    random = np.random.default_rng(0)
    matrices = [random.standard_normal((4, rank)) @ random.standard_normal((rank, 4)) for rank in (1, 2, 3)]
    values = np.linalg.svd(np.stack([*matrices, np.zeros((4, 4))]), compute_uv=False)
    assert ranks(values[:, None], 0.1).ravel().tolist() == [1, 2, 3, 0]


def test_a_scale_is_a_unit():
    values = np.random.default_rng(1).random((3, 50, 4))
    np.testing.assert_array_equal(ranks(values, 0.3), ranks(7 * values, 2.1))


def test_all_jumps_are_listed_with_their_stay():
    steps = np.arange(0, 700, 100)
    found = jumps(steps, np.array([3, 2, 2, 1, 1, 2, 0]))
    assert found == [Jump(100, 3, 2, 100), Jump(300, 2, 1, 200), Jump(500, 1, 2, 200), Jump(600, 2, 0, 100)]
    assert jumps(steps, np.full(7, 2)) == []


def test_waiting_begins_when_a_run_has_sat():
    steps = np.arange(0, 1000, 100)
    paths = np.array(
        [
            [2, 2, 2, 2, 2, 1, 1, 1, 1, 1],  # sits from 0, has sat at 300, jumps at 500
            [2, 2, 1, 1, 1, 1, 1, 1, 1, 1],  # leaves before it has sat
            [3, 3, 2, 2, 2, 2, 2, 2, 2, 2],  # sits from 200, never jumps
            [2, 2, 2, 2, 1, 1, 2, 2, 2, 2],  # jumps at 400, and back
            [2, 1, 2, 2, 2, 2, 0, 0, 0, 0],  # the second stay counts
            [1, 1, 1, 1, 1, 1, 1, 1, 1, 1],  # is never there
        ]
    )
    found = waiting(steps, paths, 2, 300, np.full(6, -1))
    assert found.sat.tolist() == [True, False, True, True, True, False]
    assert found.jumped.tolist() == [True, False, False, True, True, False]
    assert found.waited.tolist() == [200, 0, 400, 100, 100, 0]
    assert found.jump_step.tolist() == [500, -1, -1, 400, 600, -1]
    assert found.rose.tolist() == [False, False, False, True, False, False]


def test_a_diverged_run_is_watched_until_it_diverged():
    """Its state is frozen from then on, and would look like a run that sits for ever."""
    steps = np.arange(0, 1000, 100)
    paths = np.array(
        [
            [2, 2, 2, 2, 2, 2, 2, 2, 2, 2],  # diverged at 4, before it could sit
            [2, 2, 2, 2, 2, 2, 2, 2, 2, 2],  # has sat at 300, diverged at 555: cut off after 200 steps more
            [2, 2, 2, 2, 2, 1, 1, 1, 1, 1],  # jumps at 500, diverged at 555
            [2, 2, 2, 2, 2, 1, 1, 1, 1, 1],  # diverged at 500: what is shown there is no longer the run
            [2, 2, 2, 2, 1, 1, 3, 3, 3, 3],  # the rise is seen after it diverged at 600
        ]
    )
    diverged_at = np.array([4, 555, 555, 500, 600])
    found = waiting(steps, paths, 2, 300, diverged_at)
    assert found.sat.tolist() == [False, True, True, True, True]
    assert found.jumped.tolist() == [False, False, True, False, True]
    assert found.waited.tolist() == [0, 200, 200, 100, 100]
    assert found.jump_step.tolist() == [-1, -1, 500, -1, 400]
    assert not found.rose.any()
    cut = [
        waiting(steps[moving], path[moving][None], 2, 300, np.array([-1]))
        for path, moving in zip(paths, before_divergence(steps, diverged_at), strict=True)
    ]
    for name in found._fields:
        np.testing.assert_array_equal(getattr(found, name), np.concatenate([getattr(run, name) for run in cut]))


def test_memory_is_the_time_of_decay():
    assert (1 - 2 * 0.01 * 0.05) ** memory(0.01, 0.05) == pytest.approx(np.exp(-1), rel=1e-3)
    assert memory(0.1, 0.0) == np.inf
