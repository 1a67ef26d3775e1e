import numpy as np
import pandas as pd
import pytest

from holdfast.tables import MOST_CATEGORIES, Column, check_loss, complete_rows, encode, read_chunks, survey


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


def test_columns_are_told_apart(frame, tmp_path):
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
    kept = sum(len(features) for features, _, _ in complete_rows(path, found, "yield", "site"))
    assert kept == 400 - 15 - 1
    assert check_loss(found, kept) == [
        "16 of 400 rows were left out because values are missing: height (10), colour (10), site (1)."
    ]


def test_a_table_that_is_mostly_missing_is_refused(frame, tmp_path):
    frame.loc[:299, "height"] = np.nan
    found = survey(_write(frame, tmp_path / "plants.csv"), "yield", "site")
    with pytest.raises(
        ValueError, match=r"at least 50% of its rows complete, got 100 of 400; missing are height \(300\)"
    ):
        check_loss(found, 100)


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
