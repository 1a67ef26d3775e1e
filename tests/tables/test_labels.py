import numpy as np
import pandas as pd
import pytest

import holdfast as hf


def test_columns_are_joined():
    frame = pd.DataFrame({"region": ["south", "south", None], "urban": [True, False, True]})
    assert hf.environment_labels(frame, "region,urban").tolist() == ["south, True", "south, False", None]


def test_names_with_commas_and_colons_are_found_first():
    frame = pd.DataFrame({"a,b": ["x"], "date:year": ["y"], "a": ["z"]})
    assert hf.environment_labels(frame, "a,b").tolist() == ["x"]
    assert hf.environment_labels(frame, "a,date:year").tolist() == ["z, y"]


@pytest.mark.parametrize("bins", [2, 4, 7])
def test_bins_have_equally_many_rows(bins):
    frame = pd.DataFrame({"age": np.random.default_rng(0).permutation(bins * 50)})
    labels = hf.environment_labels(frame, f"age:bins={bins}")
    assert labels.value_counts().tolist() == [50] * bins
    # bins are intervals: no two of them overlap
    ends = frame.groupby(labels)["age"].agg(["min", "max"]).sort_values("min")
    assert (ends["max"].to_numpy()[:-1] < ends["min"].to_numpy()[1:]).all()


@pytest.mark.parametrize(
    ("period", "labels"),
    [
        ("year", ["2020", "2021", "2021"]),
        ("quarter", ["2020-Q4", "2021-Q1", "2021-Q3"]),
        ("month", ["2020-12", "2021-01", "2021-07"]),
        ("week", ["2020-W53", "2020-W53", "2021-W26"]),  # ISO: 2021 begins on a Friday
        ("day", ["2020-12-31", "2021-01-01", "2021-07-01"]),
    ],
)
@pytest.mark.parametrize("kind", ["text", "dates", "zone"])
def test_periods_of_dates(period, labels, kind):
    texts = ["2020-12-31", "2021-01-01 10:00", "2021-07-01T23:59:59", None]
    dates = pd.Series(texts, dtype=object) if kind == "text" else pd.to_datetime(pd.Series(texts), format="ISO8601")
    dates = dates.dt.tz_localize("UTC") if kind == "zone" else dates
    found = hf.environment_labels(pd.DataFrame({"date": dates}), f"date:{period}")
    assert found.tolist() == [*labels, None]


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        ("country", "environment must be one of the columns age, name, got 'country'"),
        ("age:bins=1", "environment must ask for 2 to 100 bins, got 'age:bins=1'"),
        ("age:bins=many", "environment must ask for 2 to 100 bins"),
        ("age:decade", "a period among year, quarter, month, week, day, got 'age:decade'"),
        ("age,age", "environment must name each column once"),
        ("age:year", "environment must be made of dates such as 2020-01-31 for the periods of 'age', got '3'"),
        ("name:bins=2", "environment must be made of numbers that differ for bins, got 'name' with no numbers"),
        ("", "environment must be one of the columns"),
    ],
)
def test_what_cannot_be_made_is_refused(specification, words):
    with pytest.raises(ValueError, match=words):
        hf.environment_labels(pd.DataFrame({"age": [3, 4], "name": ["a", "b"]}), specification)
