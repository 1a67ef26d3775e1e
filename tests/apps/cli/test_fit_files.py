"""What `holdfast fit` makes of missing values and dates."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from holdfast import HeteroRegressor
from holdfast.apps.cli.main import main
from holdfast.estimators.files import fit_table
from holdfast.tables import ReadingOptions, predict_table


def test_missing_values_are_imputed_as_a_pipeline_of_scikit_learn_would(tmp_path):
    """A tenth of light is missing, and a twelfth of the soils: too many rows to drop."""
    random = np.random.default_rng(3)
    light, soil = random.standard_normal(600), random.choice(["clay", "loam"], 600, p=[0.6, 0.4]).astype(object)
    response = light + (soil == "loam") + random.standard_normal(600)
    light[random.choice(600, 60, replace=False)] = np.nan
    soil[random.choice(600, 50, replace=False)] = np.nan
    frame = pd.DataFrame({"light": light, "soil": soil, "yield": response})
    frame.to_csv(tmp_path / "plants.csv", index=False)
    model, estimator = fit_table(tmp_path / "plants.csv", "yield")
    encoded = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), ["light"]),
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop=["clay"])),
            ["soil"],
        ),
        (MissingIndicator(), ["soil"]),
        sparse_threshold=0,
    ).fit_transform(frame[["light", "soil"]].assign(soil=soil))
    assert model.features == ["light", "light is missing", "soil=loam", "soil is missing"]
    assert model.groups == ["light", "light", "soil", "soil"]
    twin = HeteroRegressor().fit(encoded, response)
    np.testing.assert_allclose(estimator.coef_, twin.coef_, rtol=1e-6)
    (predicted,) = [chunk["prediction"] for chunk in predict_table(model, tmp_path / "plants.csv")]
    np.testing.assert_allclose(predicted, twin.predict(encoded), rtol=1e-6)
    assert any("of 600 rows miss values of light (60), soil (50)" in note for note in model.notes)
    dropped, _ = fit_table(tmp_path / "plants.csv", "yield", options=ReadingOptions(missing="drop"))
    assert dropped.rows == frame.dropna().shape[0]
    assert dropped.features == ["light", "soil=loam"]


def test_periods_of_a_date_are_environments(tmp_path):
    random = np.random.default_rng(5)
    dates = pd.date_range("2019-01-01", "2021-12-31", periods=900)
    light = random.standard_normal(900)
    frame = pd.DataFrame({"day": dates.strftime("%Y-%m-%d"), "light": light})
    frame["yield"] = light + random.standard_normal(900)
    frame.to_csv(tmp_path / "plants.csv", index=False)
    model, estimator = fit_table(tmp_path / "plants.csv", "yield", "day:year")
    assert estimator.environments_ == ["2019", "2020", "2021"]
    assert model.features == ["light"]
    assert model.environment == "day:year"


def test_environments_of_one_row_are_refused(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    frame = pd.DataFrame({"x": np.arange(60.0) ** 2, "y": np.arange(60.0), "who": [f"p{n}" for n in range(60)]})
    frame.to_csv(path, index=False)
    assert main(["fit", str(path), "--target", "y", "--environment", "who"]) == 2
    assert "got 'who' with 60 environments of one row each" in capsys.readouterr().err
