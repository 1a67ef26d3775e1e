"""What experiments compute in a fast way, checked against a plain one."""

import numpy as np
import pytest

from holdfast.completion.training import starts, train
from holdfast.experiments import absorbing, proposition_1, sequences
from holdfast.problems import two_by_two
from holdfast.theory.absorbing import successor


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
