import numpy as np
import pandas as pd
import pytest

from holdfast.core import group_rows
from holdfast.tables import environment_labels


@pytest.mark.parametrize(
    "environments",
    [
        ["b", "a", "b", "c"],
        np.array([20, 10, 20, 30]),
        pd.Series(["b", "a", "b", "c"], index=[7, 7, 8, 9]),
        pd.Series(pd.Categorical(["b", "a", "b", "c"], categories=["z", "a", "b", "c"])),
        pd.Categorical(["b", "a", "b", "c"]),
        pd.to_datetime(["2021", "2020", "2021", "2022"]),
        np.array([[2.5], [1.5], [2.5], [3.5]]),
        ["b", 1, "b", "c"],
    ],
    ids=["strings", "integers", "series", "unused category", "categories", "dates", "one column", "mixed"],
)
def test_labels_of_any_kind_become_the_same_codes(environments):
    grouping = group_rows(environments, 4)
    np.testing.assert_array_equal(grouping.codes, [1, 0, 1, 2])
    assert grouping.count == len(grouping.labels) == 3
    np.testing.assert_array_equal(grouping.sizes, [1, 2, 1])
    assert [rows.tolist() for rows in grouping.rows()] == [[1], [0, 2], [3]]


def test_labels_stay_as_they_were():
    assert group_rows([3, 1, 3], 3).labels == [1, 3]
    assert group_rows(["1", 1], 2).count == 2


def test_no_labels_are_one_environment():
    grouping = group_rows(None, 3)
    np.testing.assert_array_equal(grouping.codes, 0)
    assert grouping.count == 1


@pytest.mark.parametrize(
    ("environments", "words"),
    [
        (["a", "b"], "one label for each of the 3 rows, got 2 labels"),
        (["a", None, "b"], "1 missing labels, the first in row 1"),
        ([1.0, np.nan, np.nan], "2 missing labels, the first in row 1"),
        (np.zeros((3, 2)), r"shape \(3, 2\)"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(environments, words):
    with pytest.raises(ValueError, match=words):
        group_rows(environments, 3)


def test_bins_and_numbers_in_labels_are_in_the_order_of_their_size():
    frame = pd.DataFrame({"age": np.arange(100.0) * 3 - 40, "date": ["2021-02-03"] * 50 + ["2021-11-30"] * 50})
    labels = environment_labels(frame, "date:month,age:bins=4")
    found = group_rows(labels, 100).labels
    assert found == list(dict.fromkeys(labels))
    assert len(found) == 4
    # 5 bins of numbers from -3 to 1600: as text, 1200 comes before 400
    wide = environment_labels(pd.DataFrame({"age": np.geomspace(1, 4000, 60) - 4}), "age:bins=5")
    assert group_rows(wide, 60).labels == list(dict.fromkeys(wide))
