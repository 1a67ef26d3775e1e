"""Files of every format and dialect give the same table."""

import datetime
import decimal
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.tables import ReadingOptions, open_table
from holdfast.tables.arrow import plain_column
from holdfast.tables.survey import survey
from holdfast.tables.values import as_numbers


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    rows = 400
    return pd.DataFrame(
        {
            "height": random.standard_normal(rows),
            "colour": random.choice(["red", "grün", "blue"], rows, p=[0.5, 0.3, 0.2]),
            "site": random.choice(["north", "south"], rows),
            "yield": random.standard_normal(rows),
        }
    )


def _write(frame, path, **options):
    writers = {".parquet": frame.to_parquet, ".feather": frame.to_feather}
    if path.suffix.lower() in writers:
        writers[path.suffix.lower()](path)
    else:
        frame.to_csv(path, index=False, **options)
    return path


def _cells(files, **chunking):
    """The cells of all chunks: numbers where all that a column holds are numbers, text otherwise."""
    frame = pd.concat([chunk.astype(object) for chunk in files.chunks(**chunking)], ignore_index=True)
    found = {}
    for name, cells in frame.items():
        numbers = as_numbers(cells, files.decimal)
        whole = not np.isnan(numbers[cells.notna()]).any()
        found[name] = numbers if whole else cells.where(cells.notna(), None)
    return pd.DataFrame(found)


def _features(found):
    """Of the complete rows of the first chunk of a surveyed table."""
    return found.encoding.complete(next(found.table.chunks(text=found.text, columns=found.used))).cells


def _read(path, options=None, **chunking):
    return _cells(open_table(path, options), **chunking)


@pytest.mark.parametrize("name", ["plants.csv", "PLANTS.CSV", "plants.csv.gz", "plants.parquet", "plants.feather"])
def test_all_formats_give_the_same_rows_in_chunks(frame, tmp_path, name):
    files = open_table(_write(frame, tmp_path / name))
    assert max(map(len, files.chunks(rows=150))) <= 150
    pd.testing.assert_frame_equal(_cells(files, rows=150), frame, check_dtype=False)
    assert files.notes == ()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal_sign", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_separator_decimal_and_encoding_are_found(frame, tmp_path, separator, decimal_sign, encoding):
    path = _write(frame, tmp_path / "plants.csv", sep=separator, decimal=decimal_sign, encoding=encoding)
    files = open_table(path)
    pd.testing.assert_frame_equal(_cells(files), frame, check_dtype=False)
    assert any("between its columns" in note for note in files.notes) == (separator != ",")
    assert any("decimal commas" in note for note in files.notes) == (decimal_sign == ",")
    assert any("encoding" in note for note in files.notes) == (encoding in ("latin-1", "utf-16"))
    options = ReadingOptions(separator=separator, decimal=decimal_sign if separator != decimal_sign else None)
    assert open_table(path, options).files[0].dialect.separator == separator


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("columns", [5_000, 9_000])  # the first line ends within 64 KiB in UTF-8, or after them
def test_lines_may_be_long(tmp_path, columns, encoding):
    frame = pd.DataFrame(np.arange(2.0 * columns).reshape(2, columns) + 0.5).add_prefix("column ")
    frame.to_csv(tmp_path / "wide.csv", index=False, sep=";", decimal=",", encoding=encoding)
    files = open_table(tmp_path / "wide.csv")
    pd.testing.assert_frame_equal(_cells(files), frame)
    lines = (tmp_path / "wide.csv").read_text(encoding).splitlines()
    for count in (1, 2):
        (tmp_path / "short.csv").write_text("\n".join(lines[:count]), encoding)  # without an end of the last line
        short = open_table(tmp_path / "short.csv")
        assert (sum(map(len, short.chunks())), len(short.columns)) == (count - 1, columns)


def test_a_first_line_without_an_end_is_refused_as_such(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.tables.text.LONGEST_LINE", 1 << 10)
    for cell in ("light", "light,"):
        (tmp_path / "line.csv").write_text(cell * (1 << 15))
        with pytest.raises(ValueError, match=r"line\.csv cannot be read as a table: its first line is too long"):
            open_table(tmp_path / "line.csv")


def test_signs_that_windows_has_are_read_as_such(tmp_path):
    for text, encoding in (("cost €,soil", "cp1252"), ("Größe,soil", "latin-1")):
        (tmp_path / "plants.csv").write_bytes(f"{text}\n1,clay\n".encode(encoding))
        files = open_table(tmp_path / "plants.csv")
        assert files.columns == text.split(",")
        assert files.notes == (f"plants.csv was read with the encoding {encoding}; --encoding names another.",)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    (tmp_path / "plants.csv").write_bytes("\ufefflight,soil\n1,clay\n".encode())
    assert open_table(tmp_path / "plants.csv", ReadingOptions(encoding="utf-8")).columns == ["light", "soil"]
    with pytest.raises(ValueError, match=r"encoding must be utf-8-sig for plants\.csv, whose first bytes say so"):
        open_table(tmp_path / "plants.csv", ReadingOptions(encoding="latin-1"))


def test_a_comma_in_every_line_does_not_hide_the_separator(tmp_path):
    (tmp_path / "plants.csv").write_text("soil\ta,b\nclay\t-0,3979\nsand\t0,4952\n")
    assert open_table(tmp_path / "plants.csv").columns == ["soil", "a,b"]


def test_what_the_user_says_comes_first(tmp_path):
    """1,234 is a thousand by default, and a decimal if the user says so."""
    path = tmp_path / "plants.csv"
    path.write_text("light;yield\n1,234;1\n2,345;2\n3,456;3\n")
    found = survey(open_table(path), "yield")
    assert found.columns[0].kind == "number"
    assert "light was read with thousands separators or currency signs, as in 1,234 = 1234." in found.notes
    assert _features(found)["light"].tolist() == [1234, 2345, 3456]
    decimals = survey(open_table(path, ReadingOptions(decimal=",")), "yield")
    assert _features(decimals)["light"].tolist() == [1.234, 2.345, 3.456]


@pytest.mark.parametrize("encoding", ["zip", "rot13", "nonsense", "", "utf-8\0"])
def test_an_encoding_that_is_none_of_text_is_refused(encoding):
    with pytest.raises(ValueError, match="encoding must be known to Python, such as utf-8, latin-1 or utf-16, got"):
        ReadingOptions(encoding=encoding)


def test_tabs_are_the_rule_in_tsv_files(frame, tmp_path):
    path = _write(frame, tmp_path / "plants.tsv", sep="\t")
    assert open_table(path).notes == ()
    pd.testing.assert_frame_equal(_read(path), frame, check_dtype=False)


def test_several_files_and_patterns_are_one_table(frame, tmp_path):
    _write(frame[:150], tmp_path / "1.csv")
    _write(frame[150:300], tmp_path / "2.parquet")
    _write(frame[300:][list(frame.columns[::-1])], tmp_path / "3.csv", sep=";")  # other order, other separator
    together = _read([tmp_path / "1.csv", tmp_path / "2.parquet", tmp_path / "3.csv"])
    pd.testing.assert_frame_equal(together, frame, check_dtype=False)
    assert len(_read(str(tmp_path / "*.csv"))) == 250
    _write(frame.rename(columns={"height": "width"}), tmp_path / "4.csv")
    with pytest.raises(ValueError, match=r"got 4.csv, which lacks 'height' and adds 'width' compared with 1.csv"):
        _read(tmp_path / "*.csv")
    assert len(_read(tmp_path / "*.csv", columns=["colour"])) == 250 + len(frame)  # what is not read may differ


@pytest.mark.parametrize("name", ["plants.csv", "plants.csv.gz", "plants.parquet", "plants.feather"])
def test_standard_input_is_read_more_than_once(frame, tmp_path, name, monkeypatch):
    content = _write(frame, tmp_path / name).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    files = open_table("-")
    for _ in range(2):
        pd.testing.assert_frame_equal(_cells(files), frame, check_dtype=False)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_duplicate_names_are_refused(tmp_path, suffix):
    path = tmp_path / f"plants{suffix}"
    if suffix == ".csv":
        path.write_text("light, soil,light\n1,2,3\n")
    else:
        pq.write_table(pa.table([[1], [2]], names=["light", "light"]), path)
    with pytest.raises(ValueError, match="columns must have different names, got 'light' more than once"):
        open_table(path)


def test_types_of_parquet_are_numbers_dates_or_text(tmp_path):
    day = datetime.datetime(2020, 1, 2, 12)
    content = pa.table(
        {
            "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], pa.decimal128(10, 2)),
            "small": pa.array([1, 2, None], pa.uint8()),
            "when": pa.array([day, None, day], pa.timestamp("ns", tz="Europe/Berlin")),
            "day": pa.array([day.date()] * 3, pa.date32()),
            "waited": pa.array([datetime.timedelta(hours=36)] * 3, pa.duration("us")),
            "soil": pa.array(["clay", "sand", None]).dictionary_encode(),
            "yield": [1.0, 2.0, 3.0],
            "tags": [["a"], [], ["b", "c"]],
        }
    )
    path = tmp_path / "plants.parquet"
    pq.write_table(content, path)
    with pytest.raises(ValueError, match=r"got 'tags' of plants.parquet, which holds lists; --exclude leaves it out"):
        survey(open_table(path), "yield")
    found = survey(open_table(path), "yield", options=ReadingOptions(exclude=("tags",)))
    kinds = {column.name: column.kind for column in found.columns}
    expected = {"price": "number", "small": "number", "when": "date", "day": "date", "waited": "number"}
    assert kinds == {**expected, "soil": "category"}
    features = _features(found).iloc[0]
    assert features[["price", "small", "waited"]].tolist() == [1.5, 1.0, 1.5]
    assert features["when"] == pytest.approx((day - datetime.datetime(1970, 1, 1)).total_seconds() / 86400)
    assert features["day"] == 18263


def test_an_index_of_pandas_is_a_column(frame, tmp_path):
    frame.set_index("site").to_parquet(tmp_path / "plants.parquet")
    assert "site" in open_table(tmp_path / "plants.parquet").columns


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("plants.xls", b"", "must be a file that ends in .csv, .csv.gz"),
        ("none.csv", None, "must be an existing file"),
        ("empty.csv", b"", "cannot be read as a table: it is empty"),
        ("long.csv", b"a,b\n1,2\n3,4,5\n", "cannot be read as a table: line 3 has 3 values, more than the 2 columns"),
        ("long.csv", b"a,b\n1,2,3\n3,4,5\n", "cannot be read as a table: it has rows with more values than columns"),
        ("plants.csv.gz", b"a,b\n1,2\n", "cannot be read as a table"),
        ("cut.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 9999, mtime=0)[:-20], "cannot be read as a table"),
        ("plants.parquet", b"PAR1", "cannot be read as a table"),
        ("plants.feather", b"", "cannot be read as a table"),
        ("quote.csv", b'a,b\n1,"2\n', "cannot be read as a table"),
        ("zero.csv", b"a,b\n1,\x00\n" * 3, "holds zero bytes"),
        ("late.csv", b"a,b\n" + b"1,2\n" * 20000 + b"\xff,3\n", "--encoding names another, such as latin-1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_file(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as error:
        _read(tmp_path / name)
    assert name.split(".")[0] in str(error.value)
    assert "\n" not in str(error.value)


def test_separators_at_the_end_of_lines_are_no_column(tmp_path):
    (tmp_path / "plants.csv").write_text("light,soil\n1,clay,\n2,sand,\n")
    assert _read(tmp_path / "plants.csv").to_dict("list") == {"light": [1, 2], "soil": ["clay", "sand"]}


def test_codes_without_a_text_are_refused():
    """A damaged file may have them."""
    column = pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["clay"]), safe=False)
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        plain_column(column)
