import json

import pandas as pd
import pytest

from holdfast.claims import Verdict
from holdfast.experiments import figure_3
from holdfast.experiments.reproduce import reproduce_all


def test_figures_numbers_and_claims_are_written(tmp_path, monkeypatch, capsys):
    small = type(figure_3.GIVEN)(**{**figure_3.GIVEN.asdict(), "dimension": 12, "every": 50})
    monkeypatch.setattr(figure_3, "GIVEN", small)
    assert reproduce_all(("figure_3",), tmp_path, seeds=48) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "figure_3.png", "figure_3.svg", "figure_3.csv", "claims.json",
    }  # fmt: skip
    assert (tmp_path / "figure_3.png").stat().st_size > 20_000
    numbers = pd.read_csv(tmp_path / "figure_3.csv")
    assert set(numbers["signal"]) == {"invariant", "spurious", "residual"}
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert len({claim["id"] for claim in claims}) == len(claims) == 4
    for claim in claims:
        assert claim["verdict"] in list(Verdict)
        assert claim["measured"]["low"] <= claim["measured"]["value"] <= claim["measured"]["high"]
    shown = capsys.readouterr().out
    assert "wrote" in shown
    assert "verdict" in shown


def test_a_broken_claim_is_told_by_the_exit_code(tmp_path, monkeypatch, capsys):
    small = type(figure_3.GIVEN)(**{**figure_3.GIVEN.asdict(), "dimension": 12, "steps": 20, "every": 10})
    monkeypatch.setattr(figure_3, "GIVEN", small)  # too few steps to learn anything
    assert reproduce_all(("figure_3",), tmp_path, seeds=16) == 1
    assert "figure-3-recovers" in capsys.readouterr().out


def test_unknown_experiments_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"names must be among figure_3, .* got 'figure_99'"):
        reproduce_all(("figure_99",), tmp_path)
