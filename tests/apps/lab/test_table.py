"""Your table: what the page says is what the library says about the same file, whatever the file is."""

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from holdfast.apps.cli.main import _parse
from holdfast.apps.lab.jobs import Jobs
from holdfast.apps.lab.server import create_app, encoded
from holdfast.apps.lab.tables import EXAMPLES, example_table, look_at
from holdfast.apps.lab.uploads import Upload
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.table import VIEW, TableSettings
from holdfast.core.worker import StoppedError
from holdfast.estimators.files import fit_table, held_out_table
from holdfast.estimators.summary import VERDICTS
from holdfast.tables import ReadingOptions, TableModel, open_table

TAB = "a" * 32


def computed(chosen, file=None):
    """The parts of the result together, as the page has them."""
    parts = {}
    context = Context(parts.__setitem__, lambda done, total: None, lambda number: file)
    return parts | VIEW.compute(replace(chosen, upload="f" * 32 if file else ""), context)


@pytest.fixture(scope="module")
def gardens():
    return computed(TableSettings())


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "gardens.csv"
    example_table("gardens").to_csv(path, index=False)
    return path


def test_the_model_of_the_page_is_that_of_the_file(gardens, on_disk, tmp_path):
    (tmp_path / "model.json").write_text(gardens["fit"]["model"], encoding="utf-8")
    assert TableModel.load(tmp_path / "model.json") == fit_table(on_disk, "height", "garden").model


def test_the_consequences_are_dangerous_and_come_first_and_the_causes_are_not(gardens):
    """The made-up gardens are a structural model, so what is invariant is known."""
    features = {each["name"]: each for each in gardens["fit"]["features"]}
    dangerous = {name for name, each in features.items() if each["verdict"] == "dangerous"}
    assert set(list(features)[:2]) == dangerous == {"fruits", "pests"}
    assert {each["verdict"] for name, each in features.items() if name not in dangerous} <= {"holds", "cannot be told"}
    assert [each["rank"] for each in features.values()] == [1, 2, 3, 4, 5, 6]
    for name, truth in (("light", 3.0), ("water", 4.0), ("nitrogen", 2.0), ("stones", 0.0)):
        each = features[name]  # 95 % intervals of four effects
        assert abs(each["effect"] - truth) < 1.5 * (each["high"] - each["low"]) / 2


def test_what_comes_after_the_target_is_left_out_and_the_code_says_so():
    found = computed(TableSettings(after=("pests", "fruits", "garden"), before=("light", "height")))
    coefficients = {each["name"]: each["coefficient"] for each in found["fit"]["features"]}
    assert coefficients["pests"] == coefficients["fruits"] == 0
    assert any(note.startswith("Left out") and "fruits, pests" in note for note in found["fit"]["notes"])
    arguments = _parse(shlex.split(found["code"]["command"].partition(" && ")[2])[1:])
    assert (arguments.fitting.before, arguments.fitting.after) == (("light",), ("pests", "fruits"))
    assert "before=('light',),\n    after=('pests', 'fruits')," in found["code"]["python"]


def test_the_forest_plot_has_the_effects_and_intervals_of_the_library(gardens, on_disk):
    estimator = fit_table(on_disk, "height", "garden").estimator
    names = [each["name"] for each in gardens["fit"]["features"]]
    np.testing.assert_allclose(gardens["fit"]["effects"]["value"], estimator.effects_[names])
    # One environment by itself, by plain least squares on the rows of the north: light given what is not dangerous.
    rows = example_table("gardens").query("garden == 'north'")
    design = np.column_stack([np.ones(len(rows)), rows[["light", "water", "nitrogen", "stones"]]])
    solution, (squares,), *_ = np.linalg.lstsq(design, rows["height"], rcond=None)
    error = np.sqrt(squares / (len(rows) - 5) * np.linalg.inv(design.T @ design)[1, 1])
    north = gardens["fit"]["environments"].index("north")
    light = names.index("light")
    assert np.isclose(gardens["fit"]["effects"]["value"][north][light], solution[1])
    half = (gardens["fit"]["effects"]["high"][north][light] - gardens["fit"]["effects"]["low"][north][light]) / 2
    assert np.isclose(half, 1.96970 * error, rtol=1e-3)  # Student's 97.5 % quantile with 245 degrees of freedom
    pooled = np.linalg.lstsq(
        np.column_stack([np.ones(1000), example_table("gardens")[names]]),
        example_table("gardens")["height"],
        rcond=None,
    )[0][1:]
    np.testing.assert_allclose([each["pooled_coefficient"] for each in gardens["fit"]["features"]], pooled)


def test_errors_where_it_was_not_fitted_are_those_of_the_library(gardens, on_disk):
    strict = held_out_table(on_disk, "height", "garden", pooling=0.0)
    np.testing.assert_allclose(gardens["held_out"]["errors"]["strict"], strict["hetero"])
    np.testing.assert_allclose(gardens["held_out"]["errors"]["least squares"], strict["pooled"])
    assert gardens["held_out"]["environments"] == strict.index.tolist()


def test_code_and_command_do_the_same_as_the_page(gardens, tmp_path, monkeypatch):
    """The script runs as it stands; the command is read back by the parser of the command line."""
    monkeypatch.chdir(tmp_path)
    exec(gardens["code"]["python"], {})
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == gardens["fit"]["model"]
    make, _, command = gardens["code"]["command"].partition(" && ")
    assert shlex.split(make)[:2] == ["python", "-c"]
    arguments = _parse(shlex.split(command)[1:])
    assert (arguments.data, arguments.target, arguments.environment) == ("gardens.csv", "height", "garden")
    assert arguments.held_out


@pytest.mark.parametrize("exclude", [("a b", "-c"), ("a,b", "c"), ("=1+1", "'x'")])
def test_names_of_any_kind_come_through_the_shell_and_python(exclude):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(60, 4)), columns=[*exclude, "light", 'the "yield"'])
    frame["site"] = np.repeat(["a", "b", "c"], 20)
    file = Upload("plants.csv", frame.to_csv(index=False).encode())
    chosen = TableSettings(target='the "yield"', exclude=exclude, pooling=0)
    code = computed(chosen, file)["code"]
    arguments = _parse(shlex.split(code["command"])[1:])
    assert (arguments.target, arguments.environment) == ('the "yield"', "site")
    read = ReadingOptions(exclude=exclude)
    assert (arguments.reading == read) or (",".join(exclude),) == arguments.reading.exclude
    assert arguments.fitting.pooling == 0.0
    found = {}
    script = code["python"].replace("model, estimator = fit_table(", "found = dict(data=").split("print(")[0]
    exec(script.replace("from holdfast.estimators import fit_table", ""), found)
    assert found["found"] == {
        "data": "plants.csv", "target": 'the "yield"', "environment": "site", "options": read, "pooling": 0.0
    }  # fmt: skip


def test_what_is_chosen_is_used_and_the_rest_is_guessed():
    look = look_at(Upload("t.csv", b"school,y,z\n" + b"".join(b"s%d,%d,%d\n" % (n % 4, n, n % 7) for n in range(80))))
    assert (look.target, look.environment) == ("y", "school")
    found = computed(TableSettings(target="light", environment="water:bins=3", exclude=("stones", "light")))
    assert (found["table"]["target"], found["table"]["environment"]) == ("light", "water:bins=3")
    names = {each["name"] for each in found["fit"]["features"]}
    assert {"light", "water", "stones"}.isdisjoint(names)
    assert "height" in names
    assert len(found["fit"]["environments"]) == 3


def test_examples_are_guessed_right():
    right = {"gardens": ("height", "garden"), "leaves": ("loglen", "location")}
    assert list(right) == list(EXAMPLES)
    for name, expected in right.items():
        look = look_at(Upload(f"{name}.csv", example_table(name).to_csv(index=False).encode()))
        assert (look.target, look.environment) == expected


def test_sentences_are_those_of_the_library(gardens, on_disk):
    model, estimator = fit_table(on_disk, "height", "garden")
    *same, question = gardens["fit"]["advice"]
    assert len(same) == 2
    assert same == list(model.advice[:2])
    assert question.endswith("say that it was recorded before the target.")
    *meanings, legend = gardens["fit"]["notes"][:4]
    assert meanings == [f"{verdict}: {VERDICTS[verdict]}" for verdict in ("dangerous", "cannot be told", "holds")]
    assert "danger: growth of the squared error" in legend
    assert gardens["fit"]["notes"][4:] == list(model.notes)
    assert gardens["summary"].startswith(estimator.summary().headline)
    assert all(each["reason"] == VERDICTS[each["verdict"]] for each in gardens["fit"]["features"])


def test_a_fit_can_be_stopped():
    """It does not ask whether it should stop, but reports its progress."""
    ends = []

    def work(send):
        context = Context(
            lambda part, data: None, lambda *_: send({"event": "progress"}), lambda number: pytest.fail(number)
        )
        try:
            return VIEW.compute(TableSettings(), context)
        except StoppedError:
            ends.append("stopped")
            raise

    async def scenario():
        jobs = Jobs(workers=1, seconds=0.0)
        return [event["event"] async for event in jobs.events("me", work)], jobs._pool.shutdown()

    events, _ = asyncio.run(scenario())
    assert (events[-1], ends) == ("failed", ["stopped"])


def test_classes_and_many_environments():
    random = np.random.default_rng(1)
    x = random.normal(size=(210, 2))
    labels = np.where(x[:, 0] + random.logistic(size=210) > 0, "<b>yes</b>", "=no()")
    frame = pd.DataFrame({"x": x[:, 0], "z": x[:, 1], "answer": labels, "town": np.arange(210) // 10})
    found = computed(TableSettings(target="answer", environment="town"), _parquet(frame))
    assert found["fit"]["task"] == "classification"
    assert "21 environments" in found["held_out"]["sentence"]
    assert "--held-out" in found["held_out"]["sentence"]
    assert b"NaN" not in encoded(found)


def _parquet(frame):
    import io

    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return Upload("towns.parquet", buffer.getvalue())


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), base_url="http://127.0.0.1:8440", headers={"x-tab": TAB}) as made:
        yield made


def outcome(client, content, name="table.csv", **chosen):
    """How an upload and its fit end: a sentence, or the result."""
    answer = client.post("/api/uploads", content=content, headers={"x-file-name": name})
    if answer.status_code != 200:
        return answer.json()["error"]
    answer = client.post("/api/views/table", json={"upload": answer.json()["upload"], **chosen})
    if answer.status_code != 200:
        return answer.json()["error"]
    last = json.loads(answer.text.splitlines()[-1])
    return last["sentence"] if last["event"] == "failed" else last["data"]["summary"]


ROWS = b"".join(b"%d,%d\n" % (n, n * n % 11) for n in range(40))
MANY = b",".join(b"c%d" % n for n in range(201))


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "a.csv", "cannot be read as a table"),
        (bytes(range(256)) * 20, "a.parquet", "cannot be read as a table"),
        (b"PAR1" + b"\x00" * 50 + b"PAR1", "a.parquet", "cannot be read as a table"),
        (b"a\n1\n2\n", "a.csv", "at least two columns"),
        (b"a,b\n", "a.csv", "rows below its header"),
        (b"a,a\n1,2\n", "a.csv", "different names"),
        (MANY + b"\n" + MANY.replace(b"c", b"") + b"\n", "a.csv", "at most 200 columns"),
        (b"a,b\n" + b"1,2\n" * 200_002, "a.csv", "at most 200,000 rows"),
        (b"x" * 300 + b",b\n" + ROWS, "a.csv", "at most 200 characters"),
        (b"a,b,c\n" + b",,\n" * 30, "a.csv", "target must be chosen"),
        (b"a,b\n" + b"1,2\n" * 30, "a.csv", "target must be chosen"),
        (b"a,b\n1,2\n", "a.xlsx", "must end in"),
    ],
)
def test_tables_that_cannot_be_used_get_a_sentence(client, content, name, words):
    assert words in outcome(client, content, name)


def test_one_environment_is_said_to_be_one(client):
    sentence = outcome(client, b"light,height\n" + b"".join(b"%d.5,%d\n" % (n % 13, n % 17) for n in range(60)))
    assert "1 environment." in sentence
    assert "none can be left out" in sentence


def test_a_name_that_begins_like_another_column_is_not_that_column():
    rows = "".join(f"{n % 3},{n % 5},{n * n % 17},{n % 7}\n" for n in range(90))
    file = Upload("sites.csv", f"site,site2,light,height\n{rows}".encode())
    found = computed(TableSettings(target="height", environment="site2", exclude=("site",)), file)
    assert {each["name"] for each in found["fit"]["features"]} == {"light"}


def test_a_column_that_is_not_there_is_named(client):
    assert "environment must be one of the columns" in outcome(client, b"a,b\n" + ROWS, environment="c")
    assert "target must be one of the columns" in outcome(client, b"a,b\n" + ROWS, target="<img src=x>")


def test_an_upload_of_another_tab_is_not_found(client):
    number = client.post("/api/uploads", content=b"a,b\n1,2\n", headers={"x-file-name": "a.csv"}).json()["upload"]
    answer = client.post("/api/views/table", json={"upload": number}, headers={"x-tab": "b" * 32})
    assert "upload the file again" in json.loads(answer.text.splitlines()[-1])["sentence"]


cell = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats(allow_nan=True).map(str),
    st.sampled_from(
        ["", "a", "b", "=1+1", "+cmd|' /C calc'!A0", "@x", "<script>alert(1)</script>", "2020-01-01", "é", '"']
    ),
    st.text(max_size=5),
)
tables = st.lists(st.lists(cell, min_size=1, max_size=4), min_size=1, max_size=25).map(
    lambda rows: "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")
)


@given(
    content=st.binary(min_size=1, max_size=200) | tables | tables.map(lambda table: table * 8),
    name=st.sampled_from(["a.csv", "a.tsv", "a.parquet", "=a.csv"]),
)
@example(content=("=cmd(),<b>\n" + "1,2\n3,4\n" * 20).encode("utf-16"), name="a.csv")
@example(content=b'a,"b\n1,2\n', name="a.csv")
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_uploaded_there_is_an_answer_in_words(client, content, name):
    sentence = outcome(client, content, name)
    assert sentence
    assert "under error" not in sentence, sentence
    assert "Traceback" not in sentence


def test_paths_are_never_read(client, tmp_path):
    """Neither a name of a file nor the name of a column opens anything on the server."""
    secret = tmp_path / "secret.csv"
    secret.write_text("password,b\n1,2\n")
    assert "password" not in outcome(client, b"a,b\n" + ROWS, str(secret), target=str(secret)[:200])
    answer = client.post("/api/views/table", json={"upload": str(secret)})
    assert answer.status_code == 400
    with Upload(str(Path(secret).name), b"a,b\n1,2\n").address() as address:
        assert open_table(address).columns == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compression": "zstd"}, "512 MiB in memory"),
        ({"compression": "zstd", "use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}, "DELTA"),
    ],
)
def test_a_small_file_that_becomes_a_huge_table_is_refused_before_it_is_decoded(options, words):
    """One text of 4 MiB, and a thousand rows that refer to it: 4 GB from a file of some kilobytes."""
    import io

    import pyarrow as pa
    import pyarrow.parquet

    plain = "column_encoding" in options
    rows = 2 if plain else 1000
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 2**22]))
    table = pa.table({"a": texts.dictionary_decode() if plain else texts, "b": np.arange(rows)})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    before = pa.default_memory_pool().max_memory()
    assert len(file.getvalue()) < 2**16
    with pytest.raises(ValueError, match=words):
        look_at(Upload("a.parquet", file.getvalue()))
    assert pa.default_memory_pool().max_memory() < before + 2**26
