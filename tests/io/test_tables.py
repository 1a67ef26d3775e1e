import numpy as np
import pandas as pd
import pytest

from holdfast.io.tables import MOST_CATEGORIES, Column, check_loss, complete_rows, encode, read_chunks, survey


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    rows = 400
    return pd.DataFrame(
        {
            "height": random.standard_normal(rows),
            "colour": random.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2]),
            "grown": random.choice([True, False], rows),
            "site": random.choice(["north", "south"], rows),
            "yield": random.standard_normal(rows),
        }
    )


def _write(frame, path):
    writers = {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".feather": frame.to_feather}
    writers[path.suffix](path, **({"index": False} if path.suffix == ".csv" else {}))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_all_formats_give_the_same_rows_in_chunks(frame, tmp_path, suffix):
    path = _write(frame, tmp_path / f"plants{suffix}")
    chunks = list(read_chunks(path, rows=150))
    assert max(map(len, chunks)) <= 150
    pd.testing.assert_frame_equal(pd.concat(chunks, ignore_index=True), frame, check_dtype=False)


def test_columns_are_distinguished(frame, tmp_path):
    frame["code"] = [f"plant {number}" for number in range(len(frame))]
    frame["day"] = pd.date_range("2020-01-01", periods=len(frame))
    frame["nothing"] = None
    found = survey(_write(frame, tmp_path / "plants.parquet"), "yield", "site", exclude=["grown"])
    assert [column.name for column in found.columns] == ["height", "colour"]
    assert found.columns[1].categories == ["red", "blue", "green"]  # compared with the most frequent
    assert found.columns[1].features == ["colour=blue", "colour=green"]
    assert found.target_numeric
    assert found.rows == 400
    words = " ".join(found.notes)
    assert f"code has {len(frame)} different values" in words
    assert "day holds dates" in words
    assert "nothing is empty" in words
    assert len(frame) > MOST_CATEGORIES


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("chunk_rows", [1000, 150])
def test_row_numbers_are_left_out(frame, tmp_path, suffix, chunk_rows):
    frame["number"] = 3 * np.arange(len(frame)) + 2**60  # more digits than a float has
    frame["almost"] = np.where(np.arange(len(frame)) == 399, 0, np.arange(len(frame)))  # falls once, at the end
    frame["sorted"] = np.arange(len(frame)) // 2
    frame["decimals"] = np.arange(len(frame)) + 0.0
    found = survey(_write(frame, tmp_path / f"plants{suffix}"), "yield", "site", chunk_rows=chunk_rows)
    assert [column.name for column in found.columns] == ["height", "colour", "grown", "almost", "sorted", "decimals"]
    (note,) = found.notes
    assert note.startswith("number rises from row to row in whole numbers and was left out as a row number")


def test_encoding_is_the_same_for_new_tables():
    columns = [Column("height"), Column("colour", ["red", "blue", "green"])]
    new = pd.DataFrame({"colour": ["green", "red", "violet", None], "height": ["1.5", "2", "x", "4"]})
    coded = encode(new, columns)
    np.testing.assert_array_equal(coded["height"], [1.5, 2, np.nan, 4])
    np.testing.assert_array_equal(coded["colour=green"], [1, 0, np.nan, np.nan])
    with pytest.raises(ValueError, match="must have the column 'height'"):
        encode(new[["colour"]], columns)


def test_rows_with_missing_values_are_left_out_and_counted(frame, tmp_path):
    frame.loc[:9, "height"] = np.nan
    frame.loc[5:14, "colour"] = None
    frame.loc[20, "site"] = None
    path = _write(frame, tmp_path / "plants.csv")
    found = survey(path, "yield", "site")
    complete = sum(len(features) for features, _, _ in complete_rows(path, found, "yield", "site"))
    assert complete == 400 - 15 - 1
    assert check_loss(found, complete) == [
        "16 of 400 rows were left out because values are missing: height (10), colour (10), site (1)."
    ]


def test_a_table_that_is_mostly_missing_is_refused(frame, tmp_path):
    frame.loc[:299, "height"] = np.nan
    found = survey(_write(frame, tmp_path / "plants.csv"), "yield", "site")
    with pytest.raises(
        ValueError, match=r"at least 50% of its rows complete, got 100 of 400; missing are height \(300\)"
    ):
        check_loss(found, 100)


def _chunks(path, found, chunk_rows=100):
    """All complete rows, put together."""
    parts = list(complete_rows(path, found, "yield", "site", chunk_rows=chunk_rows))
    return [pd.concat(column) for column in zip(*parts, strict=True)]


@pytest.mark.parametrize("chunk_rows", [100, 400])
def test_what_is_text_anywhere_is_text_everywhere(frame, tmp_path, chunk_rows):
    """In chunks of 100 rows the first holds nothing but digits, in sites and in grades."""
    random = np.random.default_rng(1)
    digits = np.arange(400) < 100
    frame["site"] = np.where(digits, random.choice(["0", "1"], 400), random.choice(["0", "1", "north"], 400))
    frame["grade"] = np.where(digits, random.choice(["1", "02"], 400), random.choice(["1", "02", "other"], 400))
    path = _write(frame, tmp_path / "plants.csv")
    found = survey(path, "yield", "site", chunk_rows=chunk_rows)
    features, _, labels = _chunks(path, found, chunk_rows)
    assert len(features) == 400
    assert check_loss(found, len(features)) == []
    assert set(labels) == {"0", "1", "north"}
    grade = next(column for column in found.columns if column.name == "grade")
    assert set(grade.categories) == {"1", "02", "other"}
    for value, feature in zip(grade.categories[1:], grade.features, strict=True):
        np.testing.assert_array_equal(features[feature], frame["grade"] == value)
    noted = any("grade holds text as well as numbers" in note for note in found.notes)
    assert noted == (chunk_rows == 100)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_numbered_environments_have_one_kind_of_label(frame, tmp_path, suffix):
    """A missing number makes pandas read a chunk as 1.0 and 2.0."""
    frame["site"] = np.where(frame["site"] == "north", 1, 2)
    frame["site"] = frame["site"].astype("Int64").mask(frame.index == 7)
    path = _write(frame, tmp_path / f"plants{suffix}")
    found = survey(path, "yield", "site", chunk_rows=100)
    features, _, labels = _chunks(path, found)
    assert len(features) == 399
    assert set(labels) == {"1", "2"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_yes_and_no_with_missing_values_are_categories(frame, tmp_path, suffix):
    frame["grown"] = frame["grown"].astype(object).mask(frame.index == 7, None)
    path = _write(frame, tmp_path / f"plants{suffix}")
    found = survey(path, "yield", "site", chunk_rows=100)
    grown = next(column for column in found.columns if column.name == "grown")
    assert sorted(grown.categories) == ["False", "True"]
    assert len(_chunks(path, found)[0]) == 399


def test_a_chunk_without_any_target_does_not_make_it_text(frame, tmp_path):
    frame.loc[100:199, "yield"] = np.nan
    path = _write(frame, tmp_path / "plants.csv")
    found = survey(path, "yield", "site", chunk_rows=100)
    assert found.target_numeric
    features, targets, _ = _chunks(path, found)
    assert len(features) == 300
    assert targets.dtype == float
    assert check_loss(found, 300) == ["100 of 400 rows were left out because values are missing: yield (100)."]


def test_missing_values_of_columns_that_are_not_used_are_no_reason(frame, tmp_path):
    frame["remark"] = [None] * 390 + ["fine"] * 10
    frame.loc[:9, "height"] = np.nan
    found = survey(_write(frame, tmp_path / "plants.csv"), "yield", "site", exclude=["remark"])
    assert found.missing == {"height": 10}


def test_rows_are_never_left_out_without_a_reason(frame, tmp_path):
    found = survey(_write(frame, tmp_path / "plants.csv"), "yield", "site")
    (sentence,) = check_loss(found, 399)
    assert sentence.endswith("missing: their categories are unknown.")


@pytest.mark.parametrize(
    ("name", "words"),
    [("plants.xls", "ends in .csv, .parquet, .feather"), ("none.csv", "must be an existing file")],
)
def test_other_files_are_refused(tmp_path, name, words):
    with pytest.raises(ValueError, match=words):
        next(read_chunks(tmp_path / name))


def test_names_that_are_no_columns_are_refused(frame, tmp_path):
    path = _write(frame, tmp_path / "plants.csv")
    with pytest.raises(ValueError, match=r"target must be one of the columns height, .*got 'weight'"):
        survey(path, "weight", "site")
    with pytest.raises(ValueError, match="environment must be another column than target"):
        survey(path, "yield", "yield")
