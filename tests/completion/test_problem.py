import numpy as np
import pytest

from holdfast.completion import matrix_completion, random_low_rank, two_by_two
from holdfast_studies.papers.jump_recovery import hidden_block


def test_list_and_mask_say_the_same():
    problem = random_low_rank(6, 9, 2, 0.5, noise_variance=0.1, seed=3)
    assert problem.count == 27
    filled = np.zeros(problem.shape)
    filled[problem.rows, problem.columns] = problem.values
    np.testing.assert_array_equal(filled, problem.targets)
    np.testing.assert_array_equal(filled != 0, problem.observed == 1)


def test_errors_are_means_of_squares_over_their_entries():
    problem = two_by_two(0.25)
    fitted = np.array([[1.0, 1.0], [0.25, 3.0]])
    assert problem.train_error(fitted) == pytest.approx(4 / 3)
    assert problem.test_error(fitted) == pytest.approx(9)
    assert problem.train_error(np.stack([fitted, problem.truth])).tolist() == pytest.approx([4 / 3, 0])


def test_the_missing_entry_makes_the_rank_one():
    assert np.linalg.matrix_rank(np.asarray(two_by_two(0.1).truth), 1e-5) == 1


def test_noise_has_its_variance_and_spares_the_truth():
    noisy, exact = (random_low_rank(80, 80, 2, 1.0, noise_variance=variance) for variance in (0.25, 0.0))
    np.testing.assert_array_equal(noisy.truth, exact.truth)
    noise = np.asarray(noisy.targets - exact.targets)
    assert noise.var() == pytest.approx(0.25, abs=5 * 0.25 * np.sqrt(2 / noise.size))


@pytest.mark.parametrize("observed", [np.zeros((2, 2)), np.ones((2, 2))])
def test_nothing_or_everything_may_be_observed(observed):
    problem = matrix_completion(np.ones((2, 2)), observed)
    assert problem.count == observed.sum()
    errors = problem.train_error(np.zeros((2, 2))), problem.test_error(np.zeros((2, 2)))
    assert errors == ((0, 1) if problem.count == 0 else (1, 0))
    assert problem.scale > 0


def test_small_completions_of_a_hidden_block_have_a_higher_rank():
    problem = hidden_block(10, 3, 0.25, (10, 10, 10), seed=2)
    values = np.linalg.svd(np.asarray(problem.truth), compute_uv=False)
    # Three turned copies of the 2 x 2 example: each has one singular value, 10 / sqrt(3) times that of the example.
    example = np.linalg.norm(np.asarray(two_by_two(0.25).truth))
    np.testing.assert_allclose(values[:4], [example * 10 / np.sqrt(3)] * 3 + [0], atol=1e-4)
    np.testing.assert_allclose(
        np.linalg.norm(problem.truth, axis=1)[:10], np.linalg.norm(problem.truth, axis=1)[0], rtol=1e-5
    )
    assert np.linalg.matrix_rank(np.asarray(problem.targets), 1e-4) == 6


def test_every_row_of_a_hidden_block_shows_as_many_entries():
    seen = np.asarray(hidden_block(10, 3, 0.25, (4, 6, 6)).observed)
    assert (seen[:10].sum(1) == 10).all()
    assert (seen[10:].sum(1) == 6).all()
    assert (seen[:, 10:].sum(0) == 6).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: two_by_two(0.0), "epsilon must be a positive number, got 0.0"),
        (lambda: random_low_rank(3, 4, 4, 0.5), "rank must be from 1 to the smaller side 3, got 4"),
        (lambda: random_low_rank(3, 4, 1, 1.5), "share must be from 0 to 1, got 1.5"),
        (lambda: matrix_completion(np.ones((2, 2)), np.ones((2, 3))), r"observed must have the shape \(2, 2\)"),
        (lambda: matrix_completion(np.ones(2), np.ones(2)), "truth must be a matrix"),
        (lambda: hidden_block(3, 3, 0.2, (1, 1, 1)), "rank must be from 1 to half - 1 = 2, got 3"),
        (lambda: hidden_block(3, 1, 0.2, (1, 1, 4)), "per_row must be three numbers from 0 to half = 3"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
