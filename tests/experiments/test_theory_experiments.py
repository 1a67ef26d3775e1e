import numpy as np
import pytest
from matplotlib.figure import Figure

from holdfast.experiments import isometry, proposition_1, sequences
from holdfast.reproduction.claims import Verdict

SEEDS = {proposition_1: 64, sequences: 64, isometry: 6}


@pytest.mark.parametrize("experiment", SEEDS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_claims_have_intervals_and_none_is_broken(experiment, monkeypatch):
    # A quarter of the rank-one measurements: the deviations double, which turns no verdict around.
    monkeypatch.setattr(isometry, "TRUNCATION_COUNT", 1_000_000)
    reports = []
    data = experiment.simulate(SEEDS[experiment], lambda done, total: reports.append((done, total)))
    assert reports[-1][0] == reports[-1][1]
    assert data.sizes["seed"] == SEEDS[experiment]
    claims = experiment.claims(data)
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.measured.low <= claim.measured.value <= claim.measured.high, claim.id
        assert np.isfinite(claim.measured).all(), claim.id
        assert not claim.broken, claim.id
        if claim.recorded is Verdict.DOES_NOT_HOLD:
            assert claim.verdict is Verdict.DOES_NOT_HOLD, claim.id
    figure = experiment.draw(data)
    assert isinstance(figure, Figure)
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_legend() is not None
    table = experiment.numbers(data)
    assert len(table) > 0
    assert not table.drop(columns=["along", "place"], errors="ignore").isna().any().any()


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
