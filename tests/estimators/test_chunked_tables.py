"""Tables in chunks, in files and on Dask: the fit does not depend on where a table is cut, nor on who reads it."""

from functools import partial, reduce

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.chunked import RELATIVE, ROWS, agree, cut, plants_table
from holdfast.core.class_moments import class_statistics
from holdfast.core.moments import standardized
from holdfast.estimators import HeteroClassifier, HeteroRegressor, fit_table
from holdfast.estimators.rows import RowSums, sum_rows
from holdfast.tables import ReadingOptions
from holdfast.tables.frames import TableFrames
from holdfast.tables.missing import complete_survey
from holdfast.tables.survey import survey


@pytest.fixture(scope="module")
def plants():
    return plants_table()


CASES = {
    "regression by site": ("grown", "site", {}),
    "regression by bins and years": ("grown", "age:bins=3,day:year", {}),
    "strict, with a rotation": ("grown", "site", {"rotation": True, "pooling": 0}),
    "classes by site": ("tall", "site", {"invariance": "class_means"}),
}


@pytest.fixture(scope="module")
def in_one_piece(plants):
    def columns(target):
        return plants.drop(columns=[{"grown": "tall", "tall": "grown"}[target]])

    found = {}
    for name, (target, environment, options) in CASES.items():
        frame = columns(target)
        found[name] = (frame, fit_table(frame, target, environment, chunk_rows=10**6, **options))
    return found


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=2, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, ROWS), max_size=5), chunk_rows=st.integers(40, 700))
def test_partitions_do_not_matter(in_one_piece, case, cuts, chunk_rows):
    target, environment, options = CASES[case]
    frame, expected = in_one_piece[case]
    with dask.config.set(scheduler="synchronous"):
        found = fit_table(cut(frame, cuts), target, environment, chunk_rows=chunk_rows, **options)
    agree(found.model, expected.model)
    assert found.estimator.passes_ == expected.estimator.passes_


def test_samples_beyond_the_limit_do_not_depend_on_partitions(plants, monkeypatch):
    """Medians and quantiles of 100 of the 600 rows: the same ones, however the table is cut."""
    monkeypatch.setattr("holdfast.tables.missing.MOST_SAMPLED", 100)
    frame = plants[["water", "age", "grown"]]
    found = []
    with dask.config.set(scheduler="synchronous"):
        for cuts in ([], [0, 7, 300], [599]):
            table = survey(TableFrames(cut(frame, cuts)), "grown", "age:bins=3", chunk_rows=250)
            table = complete_survey(table)
            found.append([*table.environment.edges["age"], table.columns[0].fill])
    exact = [*frame["age"].quantile([1 / 3, 2 / 3]), frame["water"].median()]
    np.testing.assert_array_equal(found, [found[0]] * 3)
    assert found[0] != exact
    np.testing.assert_allclose(found[0], exact, rtol=0.5)  # three standard errors or more, of 80 to 100 rows


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_files_and_chunks_do_not_matter(in_one_piece, tmp_path, suffix):
    frame, expected = in_one_piece["regression by bins and years"]
    for number, part in enumerate(np.split(np.arange(ROWS), [100, 350])):
        path = tmp_path / f"{number}{suffix}"
        piece = frame.iloc[part].reset_index(drop=True)
        if suffix == ".csv":
            piece.to_csv(path, index=False, float_format="%.17g")
        elif suffix == ".parquet":
            piece.to_parquet(path, row_group_size=70)
        else:
            piece.to_feather(path)
    found = fit_table(tmp_path / f"*{suffix}", "grown", "age:bins=3,day:year", chunk_rows=90)
    agree(found.model, expected.model)


def test_the_number_of_passes(in_one_piece, plants):
    """Columns, and the fit; besides, one for bins and medians together, and one for curves."""
    assert in_one_piece["regression by bins and years"][1].estimator.passes_ == 3
    assert in_one_piece["regression by site"][1].estimator.passes_ == 3
    complete = plants[["light", "site", "day", "age", "grown"]].dropna()
    for environment, passes, with_schema in (("site", 2, 1), ("day:year", 2, 1), ("day:year,age:bins=3", 3, 2)):
        used = complete[["light", "grown", *(name for name in ("site", "day", "age") if name in environment)]]
        found = fit_table(used, "grown", environment)
        assert found.estimator.passes_ == passes
        again = fit_table(used, "grown", environment, schema=found.model)
        assert again.estimator.passes_ == with_schema
        agree(again.model, found.model)
    frame, _ = in_one_piece["regression by bins and years"]
    assert fit_table(frame, "grown", "age:bins=3,day:year", effects="smooth").estimator.passes_ == 4


@pytest.mark.parametrize("schema", [True, False])
@pytest.mark.parametrize("day", ["soon", 2019, 2019.5, float("inf"), None])
def test_periods_of_a_column_without_dates_are_refused(plants, day, schema):
    complete = plants[["light", "day", "grown"]]
    model = fit_table(complete, "grown", "day:year").model if schema else None
    other = complete.assign(day=pd.Series([day] * ROWS, dtype=object if isinstance(day, str | None) else float))
    words = (
        "data must have (complete )?rows"
        if day is None
        else f"dates such as 2020-01-31 for the periods of 'day', got '{day}'"
    )
    with pytest.raises(ValueError, match=words):
        fit_table(other, "grown", "day:year", schema=model)


def test_a_schema_has_categories_and_imputed_values(in_one_piece, tmp_path):
    """Of other rows of the same table: without a category, and with another share of missing values."""
    frame, whole = in_one_piece["regression by site"]
    some = frame[frame["soil"] != "silt"].iloc[:200]
    whole.model.save(tmp_path / "model.json")
    found = fit_table(some, "grown", "site", schema=tmp_path / "model.json").model
    assert found.columns == whole.model.columns
    with pytest.raises(ValueError, match="categories must be left out with a schema"):
        fit_table(some, "grown", "site", ReadingOptions(categories=("soil",)), schema=found)
    with pytest.raises(ValueError, match="target must be 'grown' with this schema, got 'light'"):
        fit_table(some, "light", "site", schema=found)
    with pytest.raises(ValueError, match="the column 'soil' that the model was fitted with"):
        fit_table(some.drop(columns="soil"), "grown", "site", schema=found)
    with pytest.raises(ValueError, match="task must be regression as in the schema, got 'classification'"):
        fit_table(some, "grown", "site", schema=found, task="classification")
    with pytest.raises(ValueError, match="no features of the schema, got 'age'"):
        fit_table(some, "grown", "age", schema=found)


@pytest.mark.parametrize("target", ["grown", "tall"])  # by moments, and all rows at once
def test_rows_that_a_schema_cannot_use_are_named_by_column_and_reason(plants, target):
    complete = plants.drop(columns={"grown", "tall"} - {target}).dropna()
    model = fit_table(complete, target, "site").model
    other = complete.reset_index(drop=True).astype({"light": object})
    other.loc[0:9, "soil"] = "peat"
    other.loc[5:24, "light"] = "dark"
    other.loc[30:32, "site"] = None
    other.loc[40, target] = None
    found = fit_table(other, target, "site", schema=model, chunk_rows=50).model
    rows = len(other)
    assert found.rows == rows - 29
    assert found.notes[:2] == (
        f"light has values such as 'dark' in 20 of {rows} rows, which count as missing.",
        f"29 of {rows} rows were left out: light is missing in 20; site is missing in 3; {target} is missing in 1; "
        "soil has categories that the model does not know in 10, such as 'peat'.",
    )
    with pytest.raises(ValueError, match=r"complete rows, got \d+ rows of the data frame and none of") as no:
        fit_table(other.assign(soil="peat"), target, "site", schema=model)
    assert "--" not in str(no.value)
    with pytest.raises(ValueError, match="column 'light' must hold numbers, as in the fit, got values such as 'dark'"):
        fit_table(other.assign(light=["dark"] * (rows - 2) + [1.0, 2.0]), target, "site", schema=model)


@pytest.mark.parametrize("names", [True, False])
def test_estimators_take_dask_frames_and_chunks(plants, names):
    x, y, sites = plants[["light", "age"]].to_numpy(), plants["grown"], plants["site"].fillna("field 9")
    classes = plants["tall"]
    whole = HeteroRegressor().fit(plants[["light", "age"]] if names else x, y, environments=sites)
    by_class = HeteroClassifier(invariance="class_means").fit(x, classes, environments=sites)
    parts = np.split(np.arange(ROWS), [0, 7, 300])  # the first one is empty
    inputs = plants[["light", "age"]] if names else pd.DataFrame(x)
    chunks = [(inputs.iloc[part] if names else x[part], y.iloc[part], sites.iloc[part]) for part in parts]
    model = HeteroRegressor().fit_chunks(chunks)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=RELATIVE)
    assert model.environments_ == whole.environments_ == ["field 1", "field 9", "field 10"]
    assert model.relations_.index.tolist() == whole.relations_.index.tolist()
    classified = HeteroClassifier(invariance="class_means").fit_chunks(
        [(x[part], classes.iloc[part], sites.iloc[part]) for part in parts]
    )
    assert classified.environments_ == by_class.environments_
    assert classified.classes_.tolist() == by_class.classes_.tolist()
    assert classified.advice_ == by_class.advice_
    np.testing.assert_allclose(classified.coef_, by_class.coef_, rtol=RELATIVE)
    if names:
        frame = cut(plants.assign(site=sites), [7, 7, 300])
        with dask.config.set(scheduler="synchronous"):
            model = HeteroRegressor().fit(frame[["light", "age"]], frame["grown"], environments=frame["site"])
            classified = HeteroClassifier(invariance="class_means").fit(
                frame[["light", "age"]], frame["tall"], environments=frame["site"]
            )
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=RELATIVE)
        np.testing.assert_allclose(classified.coef_, by_class.coef_, rtol=RELATIVE)
        assert model.findings_.table.response == "grown"
        assert model.feature_names_in_.tolist() == ["light", "age"]


def test_predictions_of_a_dask_frame_are_lazy(plants):
    complete = plants[["light", "age", "grown", "tall"]]
    inputs, frame = complete[["light", "age"]], cut(complete, [0, 200])
    with dask.config.set(scheduler="synchronous"):
        numbers = HeteroRegressor().fit(inputs, complete["grown"])
        found = numbers.predict(frame[["light", "age"]])
        assert isinstance(found, dd.Series)
        pd.testing.assert_series_equal(found.compute(), pd.Series(numbers.predict(inputs), inputs.index))
        labels = HeteroClassifier(invariance="class_means").fit(inputs, complete["tall"])
        assert labels.predict(frame[["light", "age"]]).compute().tolist() == labels.predict(inputs).tolist()
        shares = labels.predict_proba(frame[["light", "age"]])
        assert list(shares.columns) == ["high", "low", "middle"]
        np.testing.assert_array_equal(shares.compute(), labels.predict_proba(inputs))
        with pytest.raises(ValueError, match="feature names should match"):
            numbers.predict(frame[["light"]])


def test_text_in_a_dask_frame_is_named_with_what_takes_it(plants):
    frame = cut(plants, [100])
    with pytest.raises(ValueError, match=r"could not convert the column 'soil' of text.*OneHotEncoder.*fit_table"):
        HeteroRegressor().fit(frame[["light", "soil"]], frame["grown"])
    with pytest.raises(ValueError, match=r"could not convert the columns 'soil', 'tall' of text"):
        HeteroRegressor().fit(plants[["light", "soil", "tall"]], plants["grown"])


def test_categories_have_their_own_order_in_chunks(plants):
    sites = pd.Series(pd.Categorical(plants["site"].fillna("field 9"), ["field 9", "field 10", "field 1"]))
    whole = HeteroRegressor().fit(plants[["light"]], plants["grown"], environments=sites)
    parts = np.split(np.arange(ROWS), [3, 300])
    chunks = [(plants[["light"]].iloc[part], plants["grown"].iloc[part], sites.iloc[part]) for part in parts]
    assert (
        HeteroRegressor().fit_chunks(chunks).environments_ == whole.environments_ == ["field 9", "field 10", "field 1"]
    )


def test_classes_that_seem_to_be_separated_are_looked_at_again():
    """The sample has no wrong row, so another pass decides: there is one among 10,000."""
    x = np.linspace(-1, 1, 10_000)
    x += np.sign(x)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no"), "site": np.arange(10_000) % 2})
    options = {"invariance": "class_means", "chunk_rows": 3000}
    separated = fit_table(frame, "y", "site", **options)
    assert separated.estimator.passes_ == 3
    assert "classify every row of this table correctly" in separated.model.notes[-1]
    wrong = {number: fit_table(flipped(frame, number), "y", "site", **options) for number in (0, 17, 9_999)}
    assert all("classify every row" not in " ".join(found.model.notes) for found in wrong.values())
    assert max(found.estimator.passes_ for found in wrong.values()) == 3


def flipped(frame, row):
    """The same table with the other class in one row."""
    other = frame.copy()
    other.loc[row, "y"] = {"yes": "no", "no": "yes"}[other.loc[row, "y"]]
    return other


@settings(max_examples=6, deadline=None, derandomize=True)
@given(first=st.integers(1, 58), second=st.integers(1, 58), distance=st.sampled_from([0.0, 1e3, 1e8]))
def test_sums_are_associative(first, second, distance):
    """Chunks that lie far apart lose no digits, in whichever order they are merged."""
    random = np.random.default_rng(1)
    x = random.standard_normal((60, 2)) + np.linspace(0, distance, 60)[:, None]
    y, sites = x.sum(1) + random.standard_normal(60), random.integers(3, size=60)
    parts = np.split(np.arange(60), sorted({first, second}))
    for collect, values, described in (
        (sum_rows, y, standardized),
        (partial(sum_rows, classes=True), sites % 2, class_statistics),
    ):
        sums = [collect(x[part], values[part], sites[part], part) for part in parts]
        forwards, backwards = reduce(RowSums.merge, sums), reduce(lambda one, other: other.merge(one), sums[::-1])
        whole = collect(x, values, sites)
        for found in (forwards, backwards):
            assert found.ordered().sums.labels == whole.ordered().sums.labels == (0, 1, 2)
            np.testing.assert_array_equal(found.sample.arrays[0], x)
            for one, other in zip(described(found.ordered().sums), described(whole.ordered().sums), strict=True):
                # what these describe is of size 1, but for counts, locations and scales
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_what_dask_cannot_do_is_said(plants, tmp_path):
    frame, empty = cut(plants, [100]), cut(plants.iloc[:0], [0])
    with pytest.raises(ValueError, match="invariance must be 'class_means' to fit a table that Dask reads"):
        fit_table(frame, "tall", "site")
    with pytest.raises(ValueError, match="invariance must be 'class_means' to fit a Dask data frame, got 'auto'"):
        HeteroClassifier().fit(frame[["light"]], frame["tall"])
    with pytest.raises(ValueError, match="y must be a column of Dask with the 2 partitions of X, got Series"):
        HeteroRegressor().fit(frame[["light"]], plants["grown"])
    with pytest.raises(ValueError, match="sample_weight must be a column of Dask with the 2 partitions of X"):
        HeteroRegressor().fit(frame[["light"]], frame["grown"], sample_weight=plants["age"])
    with pytest.raises(ValueError, match="environments must have the 2 partitions of X, got 3"):
        HeteroRegressor().fit(frame[["light"]], frame["grown"], environments=cut(plants, [1, 2])["site"])
    with pytest.raises(ValueError, match="X must have at least one row"):
        HeteroRegressor().fit(empty[["light"]], empty["grown"])
    with pytest.raises(ValueError, match="chunks must have the features 'light', got 'age'"):
        HeteroRegressor().fit_chunks([(plants[[name]], plants["grown"]) for name in ("light", "age")])
