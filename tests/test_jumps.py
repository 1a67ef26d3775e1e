import numpy as np
import pytest

from holdfast.jumps import Jump, jumps, memory, ranks, waiting


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
    found = waiting(steps, paths, 2, 300)
    assert found.sat.tolist() == [True, False, True, True, True, False]
    assert found.jumped.tolist() == [True, False, False, True, True, False]
    assert found.waited.tolist() == [200, 0, 400, 100, 100, 0]
    assert found.jump_step.tolist() == [500, -1, -1, 400, 600, -1]
    assert found.rose.tolist() == [False, False, False, True, False, False]


def test_memory_is_the_time_of_decay():
    assert (1 - 2 * 0.01 * 0.05) ** memory(0.01, 0.05) == pytest.approx(np.exp(-1), rel=1e-3)
    assert memory(0.1, 0.0) == np.inf
