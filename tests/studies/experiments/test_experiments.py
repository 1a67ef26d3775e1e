"""Every experiment runs, draws, and judges its claims by intervals."""

import subprocess
import sys

import numpy as np
import pytest

from holdfast.plots import style
from holdfast_studies import TITLES, load
from holdfast_studies.claims import DECIDED, SEPARATOR, Position
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.papers import isometry
from holdfast_studies.papers.statements import STATEMENTS

# Seeds with which every claim is decided, for the experiments that are cheap enough.
DECIDING = {
    "figure_1": 16,
    "figure_2": 2000,
    "figure_6": 40,
    "theorem_8": 128,
    "proposition_1": 512,
    "sequences": 1024,
    "inside": 768,
    "lemmas": 64,
    "assumptions": 64,
    "phase": 6,
    "advised": 75,
}
# In the others a claim may be undecided with few seeds, but what was recorded must not be contradicted; the full run
# of `holdfast reproduce` decides them.
FEW = {
    "algorithm_4": 6,  # 20,000 samples a step are drawn one by one; the interval of a median needs no more
    "theorem_3": 8,
    "theorem_4": 12,
    "figure_3": 8,
    "figure_4": 8,
    "figure_5": 8,
    "isometry": 6,
    "exponents": 16,
    "tails": 32,
    "natural_environments": 1,
}
# One of each kind that takes a second or two: figures, theorems, and proofs. The others have more programs to compile,
# explicit samples, or jumps that have to be waited for.
FAST = ("figure_1", "figure_2", "figure_3", "theorem_4", "proposition_1", "sequences")
SEEDS = dict.fromkeys(TITLES, 8) | DECIDING | FEW


@pytest.mark.parametrize(
    ("name", "seeds"),
    [pytest.param(name, seeds, marks=() if name in FAST else pytest.mark.slow) for name, seeds in SEEDS.items()],
)
def test_experiment(name, seeds, monkeypatch, shared_claims):
    # A quarter of the rank-one measurements: the deviations double, which turns no verdict around.
    monkeypatch.setattr(isometry, "TRUNCATION_COUNT", 1_000_000)
    experiment = load(name)
    reports = []
    data = experiment.simulate(Effort(seeds), lambda done, total: reports.append((done, total)))
    assert not reports or reports[-1][0] == reports[-1][1]
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert data.attrs.get("seeds") == seeds or data.sizes["seed"] == seeds
    with style():
        figure = experiment.draw(data)
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>":
            continue
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_legend() is not None or figure.legends  # of its own, or one for all panels
    table = experiment.numbers(data)
    assert len(table) > 0
    assert name != "advised" or not table.isna().any().any()  # all twelve problems get an advice
    claims = experiment.claims(data)
    shared_claims.share(name, claims)
    assert claims
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert all(source in STATEMENTS for source in claim.source.split(SEPARATOR)), claim.source
        value, low, high = claim.measured
        if claim.position is not Position.NOT_MEASURED:
            assert low <= value + 1e-9
            assert value <= high + 1e-9
        assert claim.why
        assert claim.settings
        assert not claim.broken, claim
        assert np.isfinite(value) or claim.position not in DECIDED
        if name in DECIDING:
            assert claim.position is claim.expected, claim


@pytest.mark.parametrize("name", ["proposition_1", "sequences", "isometry"])
def test_tables_have_no_gaps(name, monkeypatch):
    monkeypatch.setattr(isometry, "TRUNCATION_COUNT", 10_000)
    monkeypatch.setattr(isometry, "PLANAR_DRAWS", 1)
    monkeypatch.setattr(isometry, "SEARCH", {"starts": 1, "iterations": 1})
    experiment = load(name)
    table = experiment.numbers(experiment.simulate(Effort(2), None))
    assert not table.drop(columns=["along", "position"], errors="ignore").isna().any().any()


def test_every_experiment_is_listed_with_what_is_left_open():
    for name, title in TITLES.items():
        experiment = load(name)
        assert isinstance(experiment, Experiment)
        assert experiment.title == title
        assert experiment.source.endswith(".")
        assert "\n" not in experiment.source
        assert all(isinstance(text, str) for text in experiment.left_open)


def test_unknown_experiments_are_refused():
    with pytest.raises(
        ValueError,
        match=r"names must be among the \d+ that .* got 'figure_99' \(perhaps figure_",
    ):
        load("figure_99")


def test_listing_imports_no_experiment():
    code = (
        "import sys; from holdfast.apps.cli.main import main; main(['reproduce', '--list']);"
        "sys.exit(any(name in sys.modules for name in ('jax', 'xarray', 'matplotlib')))"
    )
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == len(TITLES)
