"""Types of columns: a new one is an object, and every step of a fit and a prediction follows it."""

import numpy as np
import pandas as pd
import pytest

from holdfast.estimators import fit_table
from holdfast.tables import ReadingOptions, TableModel, predict_table
from holdfast.tables.columns import COLUMN_TYPES, Column, ScalarType, check_kind, encode_column


def shares(cells, decimal):
    """5 % -> 0.05."""
    found = cells.astype(str).str.extract(r"^(-?[\d.]+) %$")[0]
    return found.astype(float).to_numpy() / 100


@pytest.fixture
def share_type(monkeypatch):
    notes = lambda name, found: [f"{name} holds shares."]  # noqa: E731
    monkeypatch.setitem(COLUMN_TYPES, "share", ScalarType("share", "shares such as 5 %", shares, notes))


@pytest.fixture
def plants():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"cover": random.integers(0, 1000, 600) / 10, "site": random.choice(["hill", "shore"], 600)})
    return frame.assign(grown=0.5 * frame["cover"] + random.standard_normal(600))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("chunk_rows", [50, 600])
def test_a_new_type_of_column_is_recognised_fitted_saved_and_predicted(
    plants, share_type, tmp_path, suffix, chunk_rows
):
    written = plants.assign(cover=[f"{number:.1f} %" for number in plants["cover"]])
    written.loc[7, "cover"] = "soon"
    path = tmp_path / f"plants{suffix}"
    written.to_csv(path, index=False) if suffix == ".csv" else written.to_parquet(path)
    found = fit_table(path, "grown", "site", chunk_rows=chunk_rows)
    assert found.model.columns == (Column("cover", "share"),)
    assert "cover holds shares." in found.model.notes
    assert "cover has text in 1 of 600 rows, which counts as missing: 'soon' (1)." in found.model.notes
    expected = fit_table(plants.drop(index=7), "grown", "site").model
    np.testing.assert_allclose(found.model.coefficients, 100 * np.array(expected.coefficients), rtol=1e-9)
    found.model.save(tmp_path / "model.json")
    model = TableModel.load(tmp_path / "model.json")
    (predicted,) = predict_table(model, path)
    assert predicted["prediction"].isna().sum() == 1
    with pytest.raises(ValueError, match=r"column 'cover' must hold shares such as 5 %, as in the fit, got numbers"):
        list(predict_table(model, _written(plants, tmp_path / "numbers.parquet")))


def test_a_new_type_of_column_is_imputed_and_may_be_curved(plants, share_type):
    table = plants.assign(cover=[f"{number:.1f} %" for number in plants["cover"]])
    table.loc[:99, "cover"] = None
    imputed = fit_table(table, "grown", "site", ReadingOptions(missing="impute")).model
    assert imputed.columns[0].fill == pytest.approx(plants["cover"][100:].median() / 100)
    curved = fit_table(table, "grown", "site", effects="smooth").model
    assert len(curved.columns[0].knots) > 2


def _written(frame, path):
    frame.to_parquet(path)
    return path


def test_models_with_a_type_that_is_not_known_are_refused():
    with pytest.raises(ValueError, match="column 'cover' must be one of number, date, category, got 'share'"):
        Column("cover", "share")


def test_features_of_a_category_are_compared_with_the_first():
    encoded = encode_column(pd.Series(["sand", "clay", None, "peat"]), Column("soil", "category", ("clay", "sand")))
    np.testing.assert_array_equal(encoded.values[:, 0], [1, 0, np.nan, np.nan])
    assert encoded.missing.tolist() == [False, False, True, False]
    assert encoded.unknown.tolist() == [False, False, False, True]


def test_infinite_numbers_are_numbers_in_predictions_too():
    cells, column = pd.Series(["inf", "-inf", "1e400", "1.5"]), Column("light")
    check_kind(cells, column, ".", "new.csv")
    assert encode_column(cells, column).missing.tolist() == [True, True, True, False]
