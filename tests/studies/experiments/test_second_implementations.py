"""What experiments compute in a fast way, checked against a plain one."""

import numpy as np
import pytest

from holdfast.completion import two_by_two
from holdfast.completion.training import starts, train
from holdfast.core.linear_algebra import pack_symmetric
from holdfast.theory.absorbing import successor
from holdfast.theory.assumptions import error_tensor
from holdfast_studies.papers import absorbing, inside, lemmas, proposition_1, sequences
from holdfast_studies.papers.isometry_lemmas import symmetric_measurements


def test_overlaps_are_those_of_qr_factors():
    """The same draws, once by Cholesky factors and once by QR decompositions."""
    overlaps = proposition_1.subspace_overlaps(np.random.default_rng(0), 5, 30, 3)
    first, second = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 5, 30, 3)))[0]
    assert overlaps == pytest.approx(np.linalg.norm(first.swapaxes(1, 2) @ second, 2, axis=(1, 2)))


def test_controller_by_blocks_dominates_the_exact_one():
    """With steps as long as inside the window, 40 blocks: the bound of the experiment lies above every exact path."""
    step_size, heterogeneity, block, blocks = 7e-6, 2000.0, 128, 40
    random = np.random.default_rng(1)
    strengths = heterogeneity * random.choice([-1, 1], (50, block * blocks))
    exact_line = np.full(block * blocks + 1, 1e-2)
    factors = sequences.growth_factors(step_size, strengths)
    exact = sequences.controller(factors, exact_line, 1e-2)
    slack = block * np.log(factors.max())
    grouped = factors.reshape(50, blocks, block).prod(2)
    bound = sequences.controller(grouped, np.full(blocks + 1, 1e-2) * np.exp(slack), 1e-2)
    within = exact[:, 1:].reshape(50, blocks, block).max(2)
    assert (within <= np.maximum(bound[:, :-1], 1e-2) * np.exp(slack) * (1 + 1e-9)).all()


def test_successors_are_the_steps_of_the_algorithm():
    """Each recorded step of SGD is one of the three that `successor` lists."""
    problem, seeds = two_by_two(absorbing.EPSILON), np.arange(3)
    layers = starts((2, 4, 4, 2), 1.0, seeds)
    options = {"step_size": absorbing.STEP_SIZE, "ridge": absorbing.RIDGE}
    paths = train(problem, layers, seeds, steps=20, every=1, **options)
    before = tuple(layer[:, :-1].reshape(-1, *layer.shape[2:]).astype(float) for layer in paths.layers)
    after = tuple(layer[:, 1:].reshape(-1, *layer.shape[2:]) for layer in paths.layers)
    gaps = []
    for row, column, value in zip(problem.rows, problem.columns, problem.values, strict=True):
        reached = successor(before, int(row), int(column), float(value), **options)
        gaps.append(np.max([np.abs(a - b).max((-2, -1)) for a, b in zip(reached, after, strict=True)], axis=0))
    assert np.min(gaps, axis=0).max() < 1e-5


def test_wishart_draws_are_error_operators_of_measurements():
    """Second moments of the entries, and the mean of the norm, as from explicit measurements, within 4 errors."""
    random, count, size = np.random.default_rng(0), 400, 200
    drawn = lemmas.error_operators(random, count, size)
    explicit = np.stack([error_tensor(symmetric_measurements(random, size, lemmas.DIMENSION)) for _ in range(count)])
    # An entry squared has mean v = 1/m (2/m on the diagonal) and a variance of about 2 v^2.
    for values in (drawn, explicit):
        scaled = size * (values**2).mean(0) / (1 + np.eye(values.shape[1]))
        assert abs(scaled.mean() - 1) < 4 * np.sqrt(2 / (count * scaled.size))
    norms = [np.abs(np.linalg.eigvalsh(values)).max(1) for values in (drawn, explicit)]
    error = np.sqrt(sum(each.var() for each in norms) / count)
    assert abs(norms[0].mean() - norms[1].mean()) < 4 * error


def test_error_of_one_matrix_has_the_law_of_the_operator():
    """The exact law for one matrix against the whole operator: mean square of the error, within 4 errors."""
    random, count, size = np.random.default_rng(1), 4000, 300.0
    matrix = np.diag(np.arange(1.0, lemmas.DIMENSION + 1))
    packed = np.tile(pack_symmetric(matrix[None]), (count, 1))
    whole = np.einsum("nij,nj->ni", lemmas.error_operators(random, count, size), packed)
    alone = lemmas._error_of_one(random, packed, size)
    squares = [np.sum(each**2, 1) for each in (whole, alone)]
    error = np.sqrt(sum(each.var() for each in squares) / count)
    assert abs(squares[0].mean() - squares[1].mean()) < 4 * error


def test_invariant_path_follows_the_logistic_curve(monkeypatch):
    """R^2 / (1 - R^2) grows by e^(2 eta) a step up to terms of order eta."""
    monkeypatch.setattr(inside, "STEP_SIZE", 1e-4)
    monkeypatch.setattr(inside, "INIT_SCALE", 1e-8)
    monkeypatch.setattr(inside, "STEPS", 250_000)
    first, settled = inside.invariant_path()
    goal = (1 / 3 - 1e-4) ** 2
    expected = (np.log(goal / (1 - goal)) - 2 * np.log(1e-8)) / (2 * np.log1p(1e-4))
    assert first == pytest.approx(expected, rel=1e-3)
    odds = np.exp(2 * 1e-4 * 250_000) * 1e-16
    assert settled == pytest.approx(np.sqrt(odds / (1 + odds)), rel=1e-3)
