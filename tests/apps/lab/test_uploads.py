"""Uploads: in memory, of one tab each, bounded, and gone when they should be."""

import asyncio
import builtins

import pytest
from starlette.testclient import TestClient

from apps.lab.cheap_views import VIEWS
from holdfast.apps.lab import server as application
from holdfast.apps.lab.uploads import Upload, Uploads, harmless
from holdfast.tables import open_table

TAB, OTHER_TAB = "a" * 32, "b" * 32
MIB = 2**20


@pytest.fixture
def uploads():
    return Uploads(largest_file=MIB, largest_total=2 * MIB)


@pytest.fixture
def client(uploads):
    app = application.create_app(views=VIEWS, uploads=uploads)
    with TestClient(app, base_url="http://127.0.0.1:8440", headers={"x-tab": TAB}) as made:
        yield made


def send(client, content, name="a.csv", tab=TAB):
    return client.post("/api/uploads", content=content, headers={"x-file-name": name, "x-tab": tab})


def test_an_upload_belongs_to_its_tab_and_has_a_harmless_name(client, uploads):
    number = send(client, b"a,b\n1,2\n", "..%2F..%2Fetc%2Fmy%20table.csv").json()["upload"]
    assert uploads.find(TAB, number) == Upload("my table.csv", b"a,b\n1,2\n")
    with pytest.raises(ValueError, match="upload the file again"):
        uploads.find(OTHER_TAB, number)


def test_nothing_is_written_to_a_disk(client, uploads, monkeypatch):
    opened = []
    plain = builtins.open
    monkeypatch.setattr(builtins, "open", lambda file, *rest, **more: opened.append(file) or plain(file, *rest, **more))
    number = send(client, b"light;soil\n1,5;clay\n2,5;sand\n").json()["upload"]
    with uploads.find(TAB, number).address() as address:
        (chunk,) = open_table(address).chunks()
    assert chunk["light"].tolist() == ["1,5", "2,5"]
    assert opened == []
    with pytest.raises(ValueError, match="existing file"):
        open_table(address)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.exe", b"x", "end in"),
        ("a.csv.gz", b"x", "end in"),
        ("a.csv", b"", "empty"),
        ("a.csv", bytes(MIB + 1), "1 M"),
    ],
)
def test_uploads_that_cannot_be_used_are_refused_and_leave_nothing(client, uploads, name, content, word):
    answer = send(client, content, name)
    assert answer.status_code == (413 if len(content) > MIB else 400)
    assert word in answer.json()["error"]
    assert not uploads._files


def test_a_tab_has_one_upload_and_the_oldest_of_all_go_when_there_are_too_many(client, uploads):
    first = send(client, bytes(MIB), tab=TAB).json()["upload"]
    again = send(client, bytes(MIB), tab=TAB).json()["upload"]
    other = send(client, bytes(MIB), tab=OTHER_TAB).json()["upload"]
    with pytest.raises(ValueError, match="again"):
        uploads.find(TAB, first)
    assert uploads.find(TAB, again)  # it is now the one that was used last
    third = send(client, bytes(MIB), tab="c" * 32).json()["upload"]
    assert {owned.number for owned in uploads._files.values()} == {again, third}
    with pytest.raises(ValueError, match="again"):
        uploads.find(OTHER_TAB, other)


def test_a_tab_that_is_closed_takes_its_upload_along(client, uploads):
    number = send(client, b"a").json()["upload"]
    other = send(client, b"b", tab=OTHER_TAB).json()["upload"]
    assert client.delete("/api/uploads").status_code == 204
    assert client.delete("/api/uploads", headers={"origin": "http://evil.example"}).status_code == 403
    with pytest.raises(ValueError, match="again"):
        uploads.find(TAB, number)
    assert uploads.find(OTHER_TAB, other).content == b"b"


def test_an_upload_that_nobody_uses_goes_after_a_while(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("holdfast.apps.lab.uploads.time.monotonic", lambda: now)
    uploads = Uploads(idle=60)
    used, _ = (uploads.add(tab, "a.csv", b"a") for tab in (TAB, OTHER_TAB))
    now += 50
    uploads.find(TAB, used)
    now += 50
    uploads.forget()
    assert list(uploads._files) == [TAB]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plants.CSV", "plants.csv"),
        ("-rf.csv", "rf.csv"),
        ("...csv", "table.csv"),
        ('a"b;$(c)`d`*?[e].parquet', "a_b__(c)_d____e_.parquet".replace("(", "_").replace(")", "_")),
        ("été 1.tsv", "été 1.tsv"),
        ("x" * 500 + ".csv", "x" * 60 + ".csv"),
        ("a\x00\n.csv", "a__.csv"),
    ],
)
def test_names_of_files_mean_nothing_to_a_shell_or_a_pattern(name, expected):
    assert harmless(name) == expected


def test_an_upload_that_stalls_gives_its_place_to_others(uploads):
    app = application.create_app(views=VIEWS, uploads=uploads, arrival=0.01)
    sent = []

    async def receive():
        if not sent:
            sent.append(b"a")
            return {"type": "http.request", "body": b"a,b", "more_body": True}
        await asyncio.sleep(60)

    async def ask():
        answers = []

        async def send(message):
            answers.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"x-tab", TAB.encode()), (b"x-file-name", b"a.csv")]
        scope = {"type": "http", "method": "POST", "path": "/api/uploads", "query_string": b"", "headers": headers}
        await app(scope, receive, send)
        return answers

    answers = asyncio.run(ask())
    assert answers[0]["status"] == 408
    assert b"must arrive" in answers[1]["body"]
