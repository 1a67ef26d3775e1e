"""The server: who gets an answer, and that it is theirs, whole and without secrets."""

import asyncio
import json
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from apps.lab.cheap_views import VIEWS
from holdfast.apps.lab import server as application
from holdfast.apps.lab.guard import POLICY
from holdfast.apps.lab.jobs import BusyError, Jobs
from holdfast.apps.lab.server import is_loopback, page_address
from holdfast.apps.lab.uploads import Uploads

TAB, OTHER_TAB = "a" * 32, "b" * 32


@pytest.fixture
def uploads():
    return Uploads(largest_file=2**20, largest_total=2**21)


@pytest.fixture
def client(uploads):
    jobs = Jobs(longest_queue=2, seconds=0.5)
    app = application.create_app(views=VIEWS, jobs=jobs, uploads=uploads)
    with TestClient(app, base_url="http://127.0.0.1:8440", headers={"x-tab": TAB}) as made:
        yield made


def compute(client, sent, name="slow", **headers):
    answer = client.post(f"/api/views/{name}", json=sent, headers=headers)
    return answer, [json.loads(line) for line in answer.text.splitlines()] if answer.is_success else []


def test_a_result_comes_in_parts(client):
    answer, events = compute(client, {"words": "hello"})
    assert answer.status_code == 200
    assert [event["event"] for event in events] == ["accepted", "part", "done"]
    assert events[1]["data"] == {"begun": "hello"}
    assert events[2]["data"] == {"waited": 0.0, "words": "hello"}


def test_a_bug_is_a_number_in_the_browser_and_a_traceback_in_the_terminal(client, caplog):
    _, events = compute(client, {"words": "bug"})
    sentence = events[-1]["sentence"]
    assert events[-1]["event"] == "failed"
    assert "secret" not in sentence
    number = sentence.split()[-1]
    (record,) = caplog.records
    assert number in record.getMessage()
    assert "a secret of the server" in str(record.exc_info[1])


def test_what_the_library_refuses_is_said_in_its_words(client):
    _, events = compute(client, {"words": "sentence"})
    assert events[-1] == {"event": "failed", "sentence": "words must be something else"}
    answer, _ = compute(client, {"words": "refused"})
    assert (answer.status_code, answer.json()) == (400, {"error": "words must not be refused together"})


def test_a_computation_ends_at_its_time_limit(client):
    _, events = compute(client, {"seconds": 50.0})
    assert events[-1]["event"] == "failed"
    assert "0.5 seconds" in events[-1]["sentence"]


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/views", "/nowhere", "/static/../app.py"])
def test_every_answer_has_the_security_headers(client, path):
    headers = client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    scripts = next(part for part in POLICY.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"


def test_nothing_is_loaded_from_elsewhere():
    """Addresses in the page are paths; the only others are names of the XML format of pictures."""
    for path in application.STATIC.rglob("*.*"):
        words = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in words, path
        assert "https://" not in words, path
        assert "style=" not in words, path


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8440", "", "[::1].evil", "localhost.evil:80"])
def test_a_name_that_was_made_to_point_here_gets_no_answer(client, host):
    assert client.get("/api/views", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8440"])
def test_names_of_the_loopback_are_answered(client, host):
    assert client.get("/api/views", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8440"},
        {"origin": "http://127.0.0.1:8441"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_pages_cannot_start_anything(client, headers):
    assert compute(client, {}, **headers)[0].status_code == 403


def test_the_page_itself_can(client):
    headers = {"origin": "http://127.0.0.1:8440", "sec-fetch-site": "same-origin"}
    assert compute(client, {}, **headers)[0].status_code == 200


def test_elsewhere_the_token_of_the_link_is_needed_once_and_then_the_cookie():
    app = application.create_app(views=VIEWS, token="secret")
    with TestClient(app, base_url="http://computer:8440", follow_redirects=False) as client:
        for path in ("/", "/api/views", "/static/app.js", "/?token=wrong", "/api/views?token=secret"):
            assert client.get(path).status_code == 401, path
        assert client.get("/", headers={"cookie": 'holdfast_lab="; a=\x01'}).status_code == 401
        answer = client.get("/?token=secret")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/api/views").status_code == 200
        assert client.post("/api/views/slow", json={}, headers={"origin": "http://evil"}).status_code == 403


def test_addresses_with_and_without_a_token():
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "192.168.0.3", "computer")] == [
        *(True, True, True),
        *(False, False, False),
    ]
    assert page_address("::1", 80, None) == "http://[::1]:80/"
    assert page_address("192.168.0.3", 80, "t") == "http://192.168.0.3:80/?token=t"


def test_settings_may_not_be_long(client):
    assert client.post("/api/views/slow", content=b" " * 70_000).status_code == 413


@pytest.mark.parametrize("requested", ["", "lines=1", "bytes=5-2", "bytes=99999999-", "bytes=0-9"])
@pytest.mark.parametrize("path", ["/", "/static/style.css"])
def test_files_are_answered_whole_whatever_range_is_asked_for(client, path, requested):
    answer = client.get(path, headers={"range": requested})
    assert answer.status_code == 200
    assert answer.content == client.get(path).content


text = st.text(max_size=30)
junk = (
    st.binary(max_size=60)
    | text.map(str.encode)
    | st.just(b'{"step_size":' + b"9" * 5000 + b"}")
    | st.just(b"[" * 50_000)
)
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
header = st.sampled_from(
    ["host", "origin", "cookie", "x-tab", "x-file-name", "content-type", "sec-fetch-site", "range"]
)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS"]),
    path=st.sampled_from(["/", "/api/views", "/api/views/slow", "/api/views/oscillation", "/api/uploads", "/static/"])
    | printable.map("/static/{}".format)
    | printable.map("/{}".format),
    headers=st.dictionaries(header, printable, max_size=3),
    body=junk,
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_sent_the_server_answers_in_a_sentence(client, method, path, headers, body):
    path = path.replace("#", "").replace("?", "").replace("[", "").replace("]", "")
    answer = client.request(method, f"http://127.0.0.1:8440{path}", headers=headers, content=body)
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
    if answer.status_code >= 400 and method != "HEAD":
        assert answer.json()["error"]
    assert client.get("/api/views").status_code == 200


async def _collect(events, found):
    async for event in events:
        found.append(event["event"])


def _waiting(begun=None):
    def work(send):
        if begun is not None:
            begun.set()
        return VIEWS["slow"].view.compute(VIEWS["slow"].view.settings(seconds=20.0), _Silent)

    return work


class _Silent:
    send = staticmethod(lambda part, data: None)


def test_the_newest_request_of_a_tab_stops_the_older_and_nobody_elses():
    async def scenario():
        jobs, found = Jobs(workers=3), {"first": [], "second": [], "other": []}
        begun = threading.Event()
        first = asyncio.create_task(_collect(jobs.events("me", _waiting(begun)), found["first"]))
        other = asyncio.create_task(_collect(jobs.events("you", _waiting()), found["other"]))
        await asyncio.to_thread(begun.wait, 10)
        second = asyncio.create_task(_collect(jobs.events("me", lambda send: 1), found["second"]))
        await asyncio.wait_for(asyncio.gather(first, second), 10)
        assert found == {"first": ["stopped"], "second": ["done"], "other": []}
        other.cancel()
        jobs.close()

    asyncio.run(scenario())


def test_whoever_stops_listening_stops_the_computation_and_the_queue_is_bounded():
    async def scenario():
        jobs = Jobs(workers=1, longest_queue=1)
        ended = threading.Event()

        def work(send):
            try:
                return _waiting()(send)
            finally:
                ended.set()

        listening = asyncio.create_task(_collect(jobs.events("a", work), []))
        waiting = asyncio.create_task(_collect(jobs.events("b", lambda send: 1), answered := []))
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError):
            jobs.events("c", lambda send: 1)
        listening.cancel()
        assert await asyncio.to_thread(ended.wait, 10)
        await asyncio.wait_for(waiting, 10)
        assert answered[-1] == "done"
        end = time.monotonic() + 10
        while jobs._unfinished and time.monotonic() < end:
            await asyncio.sleep(0.01)
        assert not jobs._unfinished
        jobs.close()

    asyncio.run(scenario())
