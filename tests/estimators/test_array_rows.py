"""What estimators take besides arrays of numbers: weights, names of columns, and errors that say what to do."""

import numpy as np
import pandas as pd
import pytest

from holdfast.estimators import (
    HeteroClassifier,
    HeteroRegressor,
    HeteroSelector,
    HeteroSplineRegressor,
    MixedRegressor,
    fit_table,
)
from holdfast.tables import ReadingOptions


@pytest.fixture(scope="module")
def plants():
    random = np.random.default_rng(0)
    site = random.choice(["hill", "lake", "shore"], 600)
    light, water = random.standard_normal((2, 600))
    grown = np.sin(2 * light) + water + 0.5 * random.standard_normal(600)
    return pd.DataFrame({"light": light, "water": water, "site": site, "yield": grown})


@pytest.mark.parametrize("weights", [np.arange(600) % 3, np.arange(600) % 2 + 1])
def test_a_weight_of_two_is_the_row_twice(plants, weights):
    """Knots, screening, moments and curves alike."""
    twice = plants.loc[np.repeat(plants.index, weights)]
    weighted, repeated = (HeteroSplineRegressor(effects="auto") for _ in range(2))
    columns = ["light", "water"]
    weighted.fit(plants[columns], plants["yield"], environments=plants["site"], sample_weight=weights)
    repeated.fit(twice[columns], twice["yield"], environments=twice["site"])
    np.testing.assert_allclose(weighted.regressor_.coef_, repeated.regressor_.coef_, rtol=1e-8)
    assert weighted.expansion_.curved_.tolist() == repeated.expansion_.curved_.tolist() == [True, False]
    for one, other in zip(weighted.curves_.values(), repeated.curves_.values(), strict=True):
        np.testing.assert_allclose(one.estimates, other.estimates, rtol=1e-6, atol=1e-8)
    parts = [plants.iloc[:250], plants.iloc[250:]]
    chunks = [(part[columns], part["yield"], part["site"], weights[part.index]) for part in parts]
    chunked = HeteroSplineRegressor(effects="auto").fit_chunks(chunks)
    np.testing.assert_allclose(chunked.regressor_.coef_, repeated.regressor_.coef_, rtol=1e-8)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_selector_takes_weights(plants, task):
    weights = np.arange(600) % 3
    twice = plants.loc[np.repeat(plants.index, weights)]
    found = []
    for rows, more in ((plants, {"sample_weight": weights}), (twice, {})):
        y = rows["yield"] if task == "regression" else rows["yield"] > 0
        selector = HeteroSelector(task=task).fit(rows[["light", "water"]], y, environments=rows["site"], **more)
        found.append(selector.relations_)
    pd.testing.assert_frame_equal(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_weights_of_files_are_those_of_arrays(plants, tmp_path, suffix):
    table = plants.assign(rows=np.arange(600) % 3)
    path = tmp_path / f"plants{suffix}"
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = fit_table(path, "yield", "site", ReadingOptions(weights="rows"), chunk_rows=250)
    assert found.model.features == ["light", "water"]
    given = {"environments": plants["site"], "sample_weight": table["rows"]}
    arrays = HeteroRegressor().fit(plants[["light", "water"]], plants["yield"], **given)
    np.testing.assert_allclose(found.estimator.coef_, arrays.coef_, rtol=1e-8)
    with pytest.raises(ValueError, match="weights must be one of the columns"):
        fit_table(path, "yield", "site", ReadingOptions(weights="row"))
    with pytest.raises(ValueError, match="weights must be another column than target"):
        fit_table(path, "yield", "site", ReadingOptions(weights="yield"))


ESTIMATORS = [HeteroRegressor, HeteroSplineRegressor, MixedRegressor, HeteroSelector, HeteroClassifier]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_environments_may_be_named(plants, estimator, kind):
    frame, y = plants.drop(columns="yield"), plants["yield"]
    y = y > 0 if estimator is HeteroClassifier else y
    given = frame
    if kind == "arrow":
        given = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    if kind == "polars":
        given = pytest.importorskip("polars").DataFrame({name: frame[name].to_numpy() for name in frame})
    named = estimator().fit(given, y, environments="site")
    labelled = estimator().fit(frame[["light", "water"]], y, environments=frame["site"])
    assert list(named.environments_) == list(labelled.environments_)
    assert list(named.feature_names_in_) == ["light", "water"]
    if estimator is HeteroSelector:
        np.testing.assert_array_equal(named.transform(frame), labelled.transform(frame[["light", "water"]]))
    else:
        new = frame[["light", "water"]]
        np.testing.assert_allclose(named.predict(new).astype(float), labelled.predict(new).astype(float))
    with pytest.raises(ValueError, match="or the name of a column of the data frame X, got 'place' for the columns"):
        estimator().fit(given, y, environments="place")
    with pytest.raises(ValueError, match="got 'place' for an array without names"):
        estimator().fit(frame[["light"]].to_numpy(), y, environments="place")


def test_environments_of_dask_may_be_named(plants):
    frame = pytest.importorskip("dask.dataframe").from_pandas(plants, npartitions=3)
    named = HeteroRegressor().fit(frame[["light", "water", "site"]], frame["yield"], environments="site")
    labelled = HeteroRegressor().fit(plants[["light", "water"]], plants["yield"], environments=plants["site"])
    np.testing.assert_allclose(named.coef_, labelled.coef_, rtol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_dates_are_refused_by_name(plants, estimator):
    frame = plants[["light"]].assign(day=pd.date_range("2020-01-01", periods=600))
    y = plants["yield"] > 0 if estimator is HeteroClassifier else plants["yield"]
    for columns in (["light", "day"], ["day"]):
        with pytest.raises(ValueError, match="got dates in the column 'day': make numbers of them"):
            estimator().fit(frame[columns], y)


@pytest.mark.parametrize("column", ["light", "yield"])
def test_columns_without_finite_coefficients_are_named(plants, column, tmp_path):
    tiny = plants.assign(**{column: plants[column] * 1e-308})
    with pytest.raises(ValueError, match=f"smaller ones only in the column '{column}': multiply it"):
        HeteroRegressor().fit(tiny[["light", "water"]], tiny["yield"], environments=tiny["site"])
    tiny.to_parquet(tmp_path / "plants.parquet")
    with pytest.raises(ValueError, match="multiply it"):
        fit_table(tmp_path / "plants.parquet", "yield", "site")
    small = plants.assign(**{column: plants[column] * 1e-250})
    model = HeteroRegressor().fit(small[["light", "water"]], small["yield"], environments=small["site"])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.relations_.select_dtypes(float).dropna(axis=1)).all().all()


@pytest.mark.parametrize("copies", [1, 2])
def test_copies_of_the_target_are_named(plants, tmp_path, copies):
    table = plants.assign(again=2 * plants["yield"] + 1)
    if copies == 2:
        table["rounded"] = plants["yield"].round(5)
    table.to_csv(tmp_path / "plants.csv", index=False)
    notes = " ".join(fit_table(tmp_path / "plants.csv", "yield", "site").model.notes)
    assert "nearly determine" in notes
    assert ("again, rounded each" if copies == 2 else "again nearly determines yield") in notes
