"""What the columns of a table are found to be."""

import numpy as np
import pandas as pd
import pytest

from holdfast.tables import Column, ReadingOptions, open_table
from holdfast.tables.columns import MOST_CATEGORIES, encode, features_of, groups_of
from holdfast.tables.encoding import CellFaults
from holdfast.tables.labels import environment_labels
from holdfast.tables.missing import CountedRows, about_dropped, complete_survey
from holdfast.tables.survey import survey


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    rows = 400
    return pd.DataFrame(
        {
            "height": random.standard_normal(rows),
            "colour": random.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2]),
            "grown": random.choice([True, False], rows, p=[0.6, 0.4]),
            "site": random.choice(["north", "south"], rows),
            "yield": random.standard_normal(rows),
        }
    )


def _survey(frame, path, environment="site", chunk_rows=100, **options):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        {".parquet": frame.to_parquet, ".feather": frame.to_feather}[path.suffix](path)
    return survey(open_table(path), "yield", environment, ReadingOptions(**options), chunk_rows=chunk_rows)


def _counted(found):
    """All rows, the complete ones, and why the others cannot be used."""
    total = CountedRows(0, 0, CellFaults())
    for chunk in found.table.chunks(found.chunk_rows, found.text, found.used):
        rows, faults = found.encoding.examined(chunk)
        total = CountedRows(total.read + len(chunk), total.complete + len(rows.values), total.faults.merge(faults))
    return total


def _complete(found):
    """The rows without missing values, chunk by chunk."""
    chunks = found.table.chunks(found.chunk_rows, found.text, found.used)
    return [rows for rows in map(found.encoding.complete, chunks) if len(rows.values)]


def _together(found):
    """All complete rows: features, targets, labels."""
    return [pd.concat(part) for part in zip(*(rows[:3] for rows in _complete(found)), strict=True)]


def test_columns_are_distinguished(frame, tmp_path):
    frame["code"] = [f"plant {number}" for number in range(len(frame))]
    frame["day"] = pd.date_range("2020-01-01", periods=len(frame))
    frame["nothing"] = None
    frame["same"] = "always"
    found = _survey(frame, tmp_path / "plants.parquet", exclude=("grown",))
    assert [column.name for column in found.columns] == ["height", "colour", "day"]
    assert found.columns[1].categories == ("red", "blue", "green")  # compared with the most frequent
    assert found.columns[1].features == ["colour=blue", "colour=green"]
    assert found.target_numeric
    assert found.rows == 400
    words = " ".join(found.notes)
    assert f"code has {len(frame)} different values" in words
    assert "day holds dates and counts in days" in words
    assert "nothing is empty" in words
    assert "same is 'always' in every row" in words
    assert len(frame) > MOST_CATEGORIES


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("chunk_rows", [1000, 150])
def test_row_numbers_are_left_out(frame, tmp_path, suffix, chunk_rows):
    frame["number"] = 3 * np.arange(len(frame)) + 2**60  # more digits than a float has
    frame["almost"] = np.where(np.arange(len(frame)) == 399, 0, np.arange(len(frame)))  # falls once, at the end
    frame["sorted"] = np.arange(len(frame)) // 2
    frame["decimals"] = np.arange(len(frame)) + 0.0
    path = tmp_path / f"plants{suffix}"
    found = _survey(frame, path, chunk_rows=chunk_rows)
    assert [column.name for column in found.columns] == ["height", "colour", "grown", "almost", "sorted", "decimals"]
    (note,) = found.notes
    assert note.startswith("number rises from row to row in whole numbers and was left out as a row number; --numeric")
    assert "number" in features_of(_survey(frame, path, numeric=("number",)).columns)


def test_text_in_one_of_a_hundred_numbers_is_missing(frame, tmp_path):
    frame["width"] = frame["height"].astype(str)
    frame.loc[[3, 50, 70, 399], "width"] = "over 9"
    found = _survey(frame, tmp_path / "plants.csv")
    assert "width" in features_of(found.columns)
    assert "width has text in 4 of 400 rows, which counts as missing: 'over 9' (4)." in found.notes
    assert found.missing == {"width": 4}
    frame.loc[380, "width"] = "over 9"
    found = _survey(frame, tmp_path / "plants.csv")
    assert "width" not in features_of(found.columns)
    assert any(note.startswith("width has 396 different values, text as well as numbers,") for note in found.notes)
    found = _survey(frame, tmp_path / "plants.csv", numeric=("width",))
    assert "width" in features_of(found.columns)


def test_stray_text_does_not_hide_that_a_target_has_two_values(frame, tmp_path):
    frame["yield"] = np.where(frame.index == 0, "?", np.where(frame["height"] > 0, "1", "0"))
    found = _survey(frame, tmp_path / "plants.csv")
    assert found.target_numeric
    assert found.target_values == (0, 1)
    assert found.missing == {"yield": 1}
    assert "yield has text in 1 of 400 rows, which counts as missing: '?' (1)." in found.notes


def test_thousands_separators_and_infinities(frame, tmp_path):
    frame["people"] = [f"{number:,}" for number in range(990, 990 + 400)]
    frame["ratio"] = np.where(frame.index == 5, np.inf, frame["height"])
    found = _survey(frame, tmp_path / "plants.csv")
    features, _, _ = _together(found)
    assert features["people"].tolist() == [990 + number for number in range(400) if number != 5]
    assert "people was read with thousands separators or currency signs, as in 1,000 = 1000." in found.notes
    assert "ratio has 1 infinite values, which count as missing." in found.notes


def test_dates_in_text_count_in_days(frame, tmp_path):
    frame["day"] = pd.date_range("2020-01-01", periods=400).strftime("%Y-%m-%d")
    features, _, _ = _together(_survey(frame, tmp_path / "plants.csv"))
    np.testing.assert_array_equal(np.diff(features["day"]), 1)
    assert features["day"].iloc[0] == 18262


def test_named_categories_and_ids(frame, tmp_path):
    frame["grade"] = np.random.default_rng(1).integers(1, 4, 400)
    frame["key"] = [f"{number:04}" for number in range(400)]
    found = _survey(frame, tmp_path / "plants.csv", categories=("grade",), id="key")
    assert found.columns[-1].name == "grade"
    assert sorted(found.columns[-1].categories) == ["1", "2", "3"]
    assert found.notes == ()
    with pytest.raises(ValueError, match="numeric must name columns of numbers, got 'colour', which holds none"):
        _survey(frame, tmp_path / "plants.csv", numeric=("colour",))


def test_encoding_is_the_same_for_new_tables():
    columns = [Column("height"), Column("colour", "category", ("red", "blue", "green"))]
    new = pd.DataFrame({"colour": ["green", "red", "violet", None], "height": ["1.5", "2", "x", "4"]})
    coded = encode(new, columns)
    np.testing.assert_array_equal(coded["height"], [1.5, 2, np.nan, 4])
    np.testing.assert_array_equal(coded["colour=green"], [1, 0, np.nan, np.nan])


def test_features_of_two_columns_with_one_name_are_refused(frame, tmp_path):
    with pytest.raises(ValueError, match="features must have different names, got 'colour=blue' from two columns"):
        _survey(frame.assign(**{"colour=blue": 1.5}), tmp_path / "plants.csv")
    frame.loc[:100, "height"] = np.nan
    found = _survey(frame.assign(**{"height is missing": 1.5}), tmp_path / "plants.csv")
    with pytest.raises(ValueError, match="got 'height is missing' from two columns"):
        complete_survey(found)


def test_rows_with_missing_values_are_left_out_and_counted(frame, tmp_path):
    frame.loc[:9, "height"] = np.nan
    frame.loc[5:14, "colour"] = None
    frame.loc[20, "site"] = None
    found = complete_survey(_survey(frame, tmp_path / "plants.csv"))
    complete = len(_together(found)[0])
    assert complete == 400 - 15 - 1  # 15 of 399 rows are less than 5 %
    assert about_dropped(found, _counted(found)) == [
        "16 of 400 rows were left out: colour is missing in 10; height is missing in 10; site is missing in 1."
    ]
    frame.loc[15:19, "height"] = np.nan  # 20 of 399 rows are more
    found = complete_survey(_survey(frame, tmp_path / "plants.csv"))
    assert len(_together(found)[0]) == 399
    by_name = {column.name: column for column in found.columns}
    labelled = frame[frame["site"].notna()]
    assert by_name["height"].fill == pytest.approx(labelled["height"].median())
    assert by_name["colour"].fill == "red"
    assert by_name["grown"].fill is None
    assert groups_of(found.columns) == ["height", "height", "colour", "colour", "colour", "grown"]


def test_a_table_without_complete_rows_is_refused(frame, tmp_path):
    frame["height"] = np.where(frame.index % 2 == 0, frame["height"], np.nan)
    frame["width"] = np.where(frame.index % 2 == 1, 1.5, np.nan)
    found = _survey(frame, tmp_path / "plants.csv", missing="drop")
    assert _complete(found) == []
    with pytest.raises(
        ValueError, match=r"none of them: height is missing in 200; width is .*in 200; --missing impute"
    ):
        about_dropped(found, _counted(found))


@pytest.mark.parametrize("chunk_rows", [100, 400])
def test_what_is_text_anywhere_is_text_everywhere(frame, tmp_path, chunk_rows):
    """In chunks of 100 rows the first holds nothing but digits, in sites and in grades."""
    random = np.random.default_rng(1)
    digits = np.arange(400) < 100
    frame["site"] = np.where(digits, random.choice(["0", "1"], 400), random.choice(["0", "1", "north"], 400))
    frame["grade"] = np.where(digits, random.choice(["1", "02"], 400), random.choice(["1", "02", "other"], 400))
    found = _survey(frame, tmp_path / "plants.csv", chunk_rows=chunk_rows)
    features, _, labels = _together(found)
    assert len(features) == 400
    assert about_dropped(found, _counted(found)) == []
    assert set(labels) == {"0", "1", "north"}
    grade = next(column for column in found.columns if column.name == "grade")
    assert set(grade.categories) == {"1", "02", "other"}
    for value, feature in zip(grade.categories[1:], grade.features, strict=True):
        np.testing.assert_array_equal(features[feature], frame["grade"] == value)
    assert any("grade holds text as well as numbers" in note for note in found.notes)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_numbered_environments_have_one_kind_of_label(frame, tmp_path, suffix):
    """A missing number makes pandas read a chunk as 1.0 and 2.0."""
    frame["site"] = np.where(frame["site"] == "north", 1, 2)
    frame["site"] = frame["site"].astype("Int64").mask(frame.index == 7)
    features, _, labels = _together(_survey(frame, tmp_path / f"plants{suffix}"))
    assert len(features) == 399
    assert set(labels) == {"1", "2"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("missing", [True, False])
def test_truth_values_are_categories_with_and_without_missing_values(frame, tmp_path, suffix, missing):
    if missing:
        frame["grown"] = frame["grown"].astype(object).mask(frame.index == 7, None)
    found = _survey(frame, tmp_path / f"plants{suffix}")
    grown = next(column for column in found.columns if column.name == "grown")
    assert grown.categories == ("True", "False")
    assert len(_together(found)[0]) == 400 - missing


def test_a_chunk_without_any_target_does_not_make_it_text(frame, tmp_path):
    frame.loc[100:199, "yield"] = np.nan
    found = _survey(frame, tmp_path / "plants.csv")
    assert found.target_numeric
    features, targets, _ = _together(found)
    assert len(features) == 300
    assert targets.dtype == float
    assert about_dropped(found, _counted(found)) == ["100 of 400 rows were left out: yield is missing in 100."]


def test_missing_values_of_columns_that_are_not_used_are_no_reason(frame, tmp_path):
    frame["remark"] = [None] * 390 + ["fine"] * 10
    frame.loc[:9, "height"] = np.nan
    assert _survey(frame, tmp_path / "plants.csv", exclude=("remark",)).missing == {"height": 10}


def test_bins_have_equally_many_rows_and_are_no_features(frame, tmp_path):
    found = complete_survey(_survey(frame, tmp_path / "plants.csv", environment="site,height:bins=4"))
    _, _, labels = _together(found)
    assert "height" not in features_of(found.columns)
    assert labels.nunique() == 8
    assert labels.str.split(", ").str[1].value_counts().tolist() == [100] * 4


def test_without_environments_the_notes_say_what_cannot_be_said(frame, tmp_path):
    found = _survey(frame, tmp_path / "plants.csv", environment=None)
    assert "not which effects hold elsewhere" in found.notes[-1]
    assert "such as colour or grown or site" in found.notes[-1]


def test_names_that_are_no_columns_are_refused(frame, tmp_path):
    frame.to_csv(tmp_path / "plants.csv", index=False)
    table = open_table(tmp_path / "plants.csv")
    with pytest.raises(ValueError, match=r"target must be one of the columns height, .*got 'weight'"):
        survey(table, "weight", "site")
    with pytest.raises(ValueError, match="environment must be another column than target"):
        survey(table, "yield", "yield")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_numbers_are_one_environment_and_one_category_however_they_are_written(frame, tmp_path, suffix):
    """As in a column of numbers; 01 and numbers beside text are what is written."""
    numbers = pd.Series(np.random.default_rng(1).choice(["1", "1.0", "2", "2.00", "-3.0", "4.5", "01"], 400))
    grades = numbers.mask(np.arange(400) == 7)
    plain = numbers.replace({"1.0": "1", "2.00": "2", "-3.0": "-3"})
    path = tmp_path / f"plants{suffix}"
    found = complete_survey(
        _survey(frame.assign(site=numbers, grade=grades), path, categories=("grade",), missing="impute")
    )
    features, _, labels = _together(found)
    grade = next(column for column in found.columns if column.name == "grade")
    assert set(grade.categories) == set(plain)
    assert labels.tolist() == plain.tolist()
    for value, feature in zip(grade.categories[1:], grade.features[:-1], strict=True):
        np.testing.assert_array_equal(features[feature][grades.notna()], plain[grades.notna()] == value)
    mixed = _together(_survey(frame.assign(site=grades.fillna("north")), path))[2]
    assert mixed.tolist() == grades.fillna("north").tolist()
    assert environment_labels(frame.assign(site=numbers), "site").tolist() == plain.tolist()


def test_a_model_with_both_ways_of_writing_a_number_keeps_them():
    column = Column("grade", "category", ("1", "1.0", "2"))
    encoded = encode(pd.DataFrame({"grade": ["1", "1.0", "2.0"]}), [column])
    assert encoded.to_numpy().tolist() == [[0, 0], [1, 0], [0, 1]]


def test_marks_of_missing_values_do_not_hide_numbers(frame, tmp_path):
    """Common marks in any case, up to half of a column; other texts without a digit if they are repeated."""
    frame["strong"], frame["size"] = frame["height"].round(3).astype(object), frame["height"].round(3).astype(object)
    frame.loc[:11, "strong"] = "k.A."
    frame.loc[12:111, "strong"] = "Unknown"
    frame.loc[112:120, "strong"] = "refused"
    frame.loc[:11, "size"] = "over 9"
    found = _survey(frame, tmp_path / "plants.csv")
    assert {column.name: column.kind for column in found.columns}["strong"] == "number"
    note = "strong has text in 121 of 400 rows, which counts as missing: 'Unknown' (100), 'k.A.' (12), 'refused' (9)."
    assert note in found.notes
    assert "size" not in {column.name for column in found.columns}
    frame.loc[112:160, "strong"] = "refused"  # more than a tenth is no mark
    assert "strong" not in {column.name for column in _survey(frame, tmp_path / "more.csv").columns}


@pytest.mark.parametrize(
    ("form", "separator"), [("{:,.2f} €", ","), ("${:,.2f}", ","), ("1 {:06.2f}", ";"), ("EUR {:.2f}", ",")]
)
def test_currencies_and_thousands_are_numbers(frame, tmp_path, form, separator):
    numbers = np.arange(100, 500) + 0.25
    frame["price"] = [form.format(number) for number in numbers]
    if separator == ";":
        frame["price"] = frame["price"].str.replace(".", ",")
    path = tmp_path / "plants.csv"
    frame[["price", "site", "yield"]].assign(**{"yield": 1}).to_csv(path, index=False, sep=separator)
    found = survey(open_table(path), "yield", "site")
    assert _together(found)[0]["price"].tolist() == (numbers + 1000 * (separator == ";")).tolist()
    assert any(note.startswith("price was read with thousands separators or currency signs") for note in found.notes)


def test_different_currencies_are_not_converted(frame, tmp_path):
    frame["price"] = ["5 €", "$5"] * 200
    notes = _survey(frame, tmp_path / "plants.csv").notes
    assert (
        "price was read with thousands separators or currency signs, as in $5 = 5, 5 € = 5. "
        "Different currencies are not converted." in notes
    )


@pytest.mark.parametrize("chunk_rows", [100, 400])
def test_blanks_and_case_make_no_category(frame, tmp_path, chunk_rows):
    frame["colour"] = ["Rot ", "rot", "rot", "blau"] * 100
    found = _survey(frame, tmp_path / "plants.csv", chunk_rows=chunk_rows)
    (colour,) = [column for column in found.columns if column.name == "colour"]
    assert colour.categories == ("rot", "blau")
    assert "colour has spellings of one category, 'Rot ' (100), 'rot' (200); --categories colour keeps them apart." in (
        found.notes
    )
    assert encode(pd.DataFrame({"colour": ["ROT", " Blau"]}), [colour]).to_numpy().tolist() == [[0.0], [1.0]]
    apart = _survey(frame, tmp_path / "plants.csv", categories=("colour",))
    (colour,) = [column for column in apart.columns if column.name == "colour"]
    assert set(colour.categories) == {"rot", "Rot ", "blau"}
    assert encode(pd.DataFrame({"colour": ["rot", "Rot "]}), [colour]).to_numpy().sum(1).tolist() in ([0, 1], [1, 0])
