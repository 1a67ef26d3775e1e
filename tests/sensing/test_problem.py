import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import matrix_sensing
from holdfast.sensing.environments import gaussian, two_point


@pytest.mark.parametrize(("invariant_rank", "spurious_rank"), [(1, 1), (3, 2), (2, 4)])
@pytest.mark.parametrize("overlap", [0.0, 0.4, 1.0])
def test_overlap_is_exact_and_bases_are_orthonormal(invariant_rank, spurious_rank, overlap):
    frame = orthonormal_frame(9, invariant_rank + spurious_rank)
    problem = matrix_sensing(frame, invariant_rank, two_point(1.0, 2.0, rank=spurious_rank), overlap=overlap)
    for basis in (problem.invariant_basis, problem.spurious_basis):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-6)
    cosine = np.linalg.norm(problem.invariant_basis.T @ problem.spurious_basis, 2)
    assert cosine == pytest.approx(overlap, abs=1e-6)


def test_signals_have_the_stated_spectra():
    problem = matrix_sensing(orthonormal_frame(8, 5), 3, gaussian(0.5, 2.0, rank=2), condition_number=4.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(problem.invariant_matrix)[-3:], [0.25, 0.5, 1.0], rtol=1e-5)
    mean = np.linalg.eigvalsh(problem.mean_spurious_matrix)
    np.testing.assert_allclose(mean[-2:], [0.5, 0.5], rtol=1e-5)
    np.testing.assert_allclose(mean[:-2], 0, atol=1e-6)
    strength = jnp.array([[1.0, 0.3], [0.3, -2.0]])
    inside = problem.spurious_basis.T @ problem.spurious_matrix(strength) @ problem.spurious_basis
    np.testing.assert_allclose(inside, strength, atol=1e-6)


def test_frames_are_uniform_and_seeded():
    assert (orthonormal_frame(4, 2, seed=3) == orthonormal_frame(4, 2, seed=3)).all()
    # E v v^T = I / d; each entry v_i^2 has variance below 2 / d^2.
    first = np.stack([orthonormal_frame(4, 1, seed)[:, 0] for seed in range(2000)])
    np.testing.assert_allclose(first.T @ first / 2000, np.eye(4) / 4, atol=5 * np.sqrt(2) / 4 / np.sqrt(2000))


def test_bad_problems_are_refused():
    with pytest.raises(ValueError, match=r"overlap must be in \[0, 1\], got 1.5"):
        matrix_sensing(orthonormal_frame(4, 2), 1, two_point(1.0, 1.0), overlap=1.5)
    with pytest.raises(ValueError, match="frame must have"):
        matrix_sensing(orthonormal_frame(4, 2), 2, two_point(1.0, 1.0))
