"""Rows of Dask data frames and of chunks: what belongs together, weights, names, and numbers that are too large."""

import re

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from estimators.chunked import RELATIVE, ROWS, cut, plants_table
from holdfast.estimators import HeteroClassifier, HeteroRegressor, HeteroSplineRegressor, fit_table


@pytest.fixture(scope="module")
def plants():
    return plants_table()


@pytest.mark.parametrize("divisions", [True, False])
def test_rows_of_dask_that_do_not_match_are_refused(plants, divisions):
    """Partition by partition: neither paired with others nor cut."""
    complete = plants[["light", "age", "grown"]].assign(site="field", used=np.arange(ROWS) != 250)
    frame = dd.from_pandas(complete, npartitions=3)
    frame = frame if divisions else frame.reset_index(drop=True)
    some = frame[frame["used"]]
    with dask.config.set(scheduler="synchronous"):
        for name, columns in {
            "y": {"y": frame["grown"]},
            "environments": {"y": some["grown"], "environments": frame["site"]},
            "sample_weight": {"y": some["grown"], "sample_weight": frame["age"]},
        }.items():
            words = f"^{name} must have the rows of X, got 200 rows in partition 1, where X has 199$"
            with pytest.raises(ValueError, match=words):
                HeteroRegressor().fit(some[["light"]], **columns)
        if divisions:
            with pytest.raises(ValueError, match="y must have the index of X, got another one in partition 0, of 200"):
                HeteroRegressor().fit(frame.partitions[0][["light"]], frame.partitions[2]["grown"])


@pytest.mark.parametrize("row", [0, 1500])
@pytest.mark.parametrize("value", [1e160, -1e308])
def test_numbers_too_large_to_be_squared_are_named(value, row):
    """Wherever they are: the first 1,000 rows tell the unit of a column; warnings are errors here."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.standard_normal((2000, 2)), columns=["light", "water"])
    grown, site = frame["light"] + random.standard_normal(2000), pd.Series(np.arange(2000) % 3).astype(str)
    frame.loc[row, "water"] = value
    words = re.escape(f"X must hold numbers whose squares can be added up, got {value:g} in the column 'water'")
    for estimator, response in (
        (HeteroRegressor(), grown),
        (HeteroSplineRegressor(), grown),
        (HeteroClassifier(), grown > 0),
        (HeteroClassifier(invariance="class_means"), grown > 0),
    ):
        with pytest.raises(ValueError, match=words):
            clone(estimator).fit(frame, response, environments=site)
        if estimator.get_params().get("invariance") != "auto":
            with pytest.raises(ValueError, match=words):
                clone(estimator).fit_chunks([(frame, response, site)])
    with pytest.raises(ValueError, match=words):
        fit_table(frame.assign(grown=grown, site=site), "grown", "site")
    with pytest.raises(
        ValueError, match=re.escape(f"y must hold numbers whose squares can be added up, got {value:g}")
    ):
        HeteroRegressor().fit(frame[["light"]], frame["water"])


@pytest.mark.parametrize("names", [[0, 1], ["y", "sample_weight"], [(0, "a"), (0, "b")]])
def test_columns_of_a_dask_frame_may_have_any_names(plants, names):
    inputs = plants[["light", "age"]].set_axis(names, axis=1)
    whole = HeteroRegressor().fit(inputs, plants["grown"])
    frame, grown = cut(inputs, [100]), cut(plants, [100])["grown"]
    with dask.config.set(scheduler="synchronous"):
        found = HeteroRegressor().fit(frame, grown)
        np.testing.assert_allclose(found.predict(frame).compute(), whole.predict(inputs), rtol=RELATIVE)
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=RELATIVE)
    assert found.relations_.index.tolist() == whole.relations_.index.tolist()


def test_weights_of_chunks_and_of_dask_are_those_of_one_table(plants):
    weights = plants["age"].where((plants["age"] > 1) & (plants.index >= 3), 0.0)  # the first chunk does not count
    sites = plants["site"].fillna("field 9")
    columns = {"environments": sites, "sample_weight": weights}
    parts = np.split(np.arange(ROWS), [3, 300])
    frame = cut(plants.assign(site=sites, weight=weights), [3, 300])
    for estimator, response in (
        (HeteroRegressor(), plants["grown"]),
        (HeteroClassifier(invariance="class_means"), plants["tall"]),
    ):
        inputs = plants[["light", "wilted"]]
        whole = clone(estimator).fit(inputs, response, **columns)
        chunks = [[each.iloc[part] for each in (inputs, response, sites, weights)] for part in parts]
        with dask.config.set(scheduler="synchronous"):
            on_dask = clone(estimator).fit(
                frame[["light", "wilted"]],
                frame[response.name],
                environments=frame["site"],
                sample_weight=frame["weight"],
            )
        for found in (clone(estimator).fit_chunks(chunks), on_dask):
            np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-9)
            np.testing.assert_allclose(found.intercept_, whole.intercept_, rtol=1e-9)
            assert found.environments_ == whole.environments_
            assert (found.advice_, found.notes_) == (whole.advice_, whole.notes_)
        small = [(x, y, None, np.full(len(y), 1e-3)) for x, y, *_ in chunks]
        with pytest.warns(UserWarning, match="sample_weight is how many rows each row stands for, and its sum is 0.6"):
            clone(estimator).fit_chunks(small)
        with pytest.raises(ValueError, match="with a weight above zero, got none"):
            clone(estimator).fit_chunks([(x, y, None, np.zeros(len(y))) for x, y, *_ in chunks])
        with pytest.raises(ValueError, match="chunks must all have weights, or none of them"):
            clone(estimator).fit_chunks([chunks[0], chunks[1][:3]])


@pytest.mark.parametrize("model", [HeteroRegressor(), HeteroClassifier(invariance="class_means")], ids=str)
def test_chunks_are_checked_as_one_table_is(model):
    table, y, environments = (
        pa.table({"light": [1.0, 2.0, 4.0, 3.0], "soil": [1.0, 0.0, 1.0, 1.0]}),
        [0, 1, 0, 1],
        "aabb",
    )
    assert model.fit_chunks([(table, y, list(environments))]).feature_names_in_.tolist() == ["light", "soil"]
    frame = table.to_pandas()
    model.fit_chunks([(frame.set_axis([0, 1], axis=1), y, list(environments))])
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(TypeError, match="names are all text, or none of them, got 'light', 1"):
        model.fit_chunks([(frame.set_axis(["light", 1], axis=1), y)])
    with pytest.raises(ValueError, match="Input X contains NaN") as refused:
        model.fit_chunks([(frame.where(frame < 4), y)])
    assert "BaseEstimator" not in str(refused.value)


def test_chunks_of_another_form_are_refused(plants):
    x, y = plants[["light"]], plants["grown"]
    forms = r"\(X, y\) or \(X, y, environments\) or \(X, y, environments, sample_weight\)"
    for chunks, got in (
        ([plants], "DataFrame as chunk 0"),
        (plants, "str as chunk 0"),
        ([(x, y), (x,)], "1 entries as chunk 1"),
        ([(x, y, None, None, y)], "5 entries as chunk 0"),
    ):
        with pytest.raises(ValueError, match=f"chunks must each be {forms}, got {got}"):
            HeteroRegressor().fit_chunks(chunks)
    with pytest.raises(ValueError, match=f"chunks must be an iterable of {forms}, got int"):
        HeteroRegressor().fit_chunks(3)
    with pytest.raises(ValueError, match=r"chunks must be an iterable of .* got int"):
        HeteroSplineRegressor().fit_chunks(3)
    with pytest.raises(ValueError, match=r"each be \(X, y\) or .*sample_weight\), got 5 entries as chunk 0"):
        HeteroSplineRegressor().fit_chunks([(x, y, None, None, y)])


def test_estimators_say_how_often_they_read(plants):
    x, y, classes = plants[["light"]], plants["grown"], plants["tall"]
    frame = cut(plants, [100])
    by_class = HeteroClassifier(invariance="class_means")
    with dask.config.set(scheduler="synchronous"):
        assert HeteroRegressor().fit(frame[["light"]], frame["grown"]).passes_ == 1
        assert clone(by_class).fit(frame[["light"]], frame["tall"]).passes_ == 1
    assert HeteroRegressor().fit_chunks([(x, y)]).passes_ == 1
    assert clone(by_class).fit_chunks([(x, classes)]).passes_ == 1
    bent = (x["light"] - 1e3) ** 2
    assert HeteroSplineRegressor(effects="smooth").fit_chunks([(x, bent)]).passes_ == 2
    assert HeteroSplineRegressor(effects="linear", interactions=False).fit_chunks([(x, y)]).passes_ == 1
