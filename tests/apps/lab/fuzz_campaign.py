"""Requests and uploads that no page would send, to the real server.

`python -m apps.lab.fuzz_campaign 10000` sends 10,000 of them and prints the kinds of answers. A traceback, an
error of the server (500), a computation that ends in a bug, and a server that does not answer any more are failures.
"""

import json
import random
import secrets
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from urllib.parse import quote

import httpx2

from apps.lab.serving import server
from fuzzing import generator
from holdfast.apps.lab.inputs import inputs
from holdfast.apps.lab.view import VIEWS

VALUES = (
    *(None, True, False, 0, 1, -1, 0.5, 1e-300, 1e308, -0.0, 10**30, 16, 20, 200),
    *("", "cyclic", "full", "<script>", "../../etc/passwd", "\x00", "é" * 50, [], {}, [1], {"a": 1}),
)
PATHS = ("/", "/api/views", "/api/uploads", "/static/app.js", "/static/../app.py", "/static/%2e%2e/app.py", "/nothing")
HOSTS = ("evil.example", "127.0.0.1@evil", "", "[::1", "localhost:99999999")
HEADERS = {
    "x-tab": ("", "a" * 31, "G" * 32, "../" * 10, "a" * 5000),
    "origin": ("null", "http://evil.example", "http://127.0.0.1:1", "x" * 2000),
    "cookie": ("holdfast_lab=x", ";;;==", 'a="'),
    "content-type": ("multipart/form-data; boundary=", "text/plain", "application/json; charset=utf-7"),
    "host": HOSTS,
}
NAMES = ("a.csv", "a.CSV", "a.parquet", "a.csv.gz", "../a.csv", "a.exe", "", "\x00.csv", "a" * 300 + ".tsv", "é.csv")
# Answers in which the server refuses, or does what was asked.
ALLOWED = {200, 204, 206, 303, 304, 400, 403, 404, 405, 413, 421}
# What no client library would send; the connection is closed after it.
RAW = (
    b"\x00\xff\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /api/uploads HTTP/1.1\r\nhost: x\r\n",
    *(
        b"POST /api/views/oscillation HTTP/1.1\r\nhost: localhost\r\ncontent-length: %b\r\n\r\n{}" % length
        for length in (b"-1", b"abc", b"99999999999", b"50")
    ),
)


def requests(count: int, seed: int) -> Iterator[dict]:
    """Arguments of requests; about one in ten has settings that are nearly right."""
    chance = random.Random(seed)
    for _ in range(count):
        headers: dict[str, str] = {"x-tab": secrets.token_hex(16)}
        for name, values in HEADERS.items():
            if chance.random() < 0.08:
                headers[name] = chance.choice(values)
        kind = chance.random()
        if kind < 0.45:
            view = chance.choice(list(VIEWS))
            body = json.dumps(settings(view, chance)).encode()
            yield {"method": "POST", "path": f"/api/views/{view}", "headers": headers, "body": damaged(body, chance)}
        elif kind < 0.75:
            name, file = uploaded(chance)
            headers["x-file-name"] = quote(name)
            yield {"method": "POST", "path": "/api/uploads", "headers": headers, "body": file}
        else:
            method = chance.choice(("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"))
            path = chance.choice(PATHS) if chance.random() < 0.6 else "/" + quote(chance.randbytes(12))
            yield {"method": method, "path": path, "headers": headers, "body": chance.randbytes(chance.choice((0, 99)))}


def uploaded(chance: random.Random) -> tuple[str, bytes]:
    """A file: bytes without any meaning, or a table in a strange dialect, perhaps damaged."""
    if chance.random() < 0.5:
        return chance.choice(NAMES), chance.randbytes(chance.choice((0, 9, 9999)))
    decimal = chance.choice((".", ","))
    with tempfile.TemporaryDirectory() as folder:
        table = generator.fuzzed_table(chance, decimal)
        path, _ = generator.write(chance, table, Path(folder), decimal)
        return path.name, path.read_bytes()


def fitted(number: str, chance: random.Random) -> dict:
    """Settings for an upload that the server has taken."""
    names = [chance.choice(generator.NAMES) for _ in range(3)]
    sent = {"upload": number, "target": names[0], "environment": names[1], "exclude": [names[2]]}
    sent |= {"task": chance.choice(("auto", "regression")), "pooling": chance.choice(("auto", 0, 1))}
    return {name: value for name, value in sent.items() if name == "upload" or chance.random() < 0.4}


def settings(view: str, chance: random.Random) -> object:
    """Settings in which a few values are wrong, or everything is."""
    if chance.random() < 0.1:
        return chance.choice(VALUES)
    known = VIEWS[view].load().settings
    names = [each.name for each in fields(known)]
    sent = {chance.choice([*names, "unknown"]): chance.choice(VALUES) for _ in range(chance.choice((0, 1, 1, 2, 5)))}
    # Sizes that compile another program are asked for now and then only: compiling is not what is tested here.
    costly = {"dimension", "invariant_rank", "spurious_rank", "seeds", "environments", "order", "batching", "steps"}
    allowed = inputs(known)
    for name in costly & set(sent):
        try:
            allowed[name].checked(name, sent[name])
        except ValueError:
            continue
        del sent[name]
    if "steps" in allowed:
        sent.setdefault("steps", 50)
    if view == "table" and chance.random() < 0.9:
        sent.setdefault("upload", "0" * 32)  # the fit of the example is the same every time
    return sent


def damaged(body: bytes, chance: random.Random) -> bytes:
    """The bytes, sometimes cut, repeated or with another byte."""
    if chance.random() < 0.7 or not body:
        return body
    where = chance.randrange(len(body))
    return chance.choice((body[:where], body * 3, body[:where] + chance.randbytes(1) + body[where + 1 :], b"[" * 9999))


def judged(answer: httpx2.Response) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    text = answer.text
    if answer.status_code not in ALLOWED:
        return f"status {answer.status_code}: {text[:200]}"
    if "Traceback" in text or 'File "' in text:
        return f"a traceback: {text[:200]}"
    if answer.headers.get("content-type", "").startswith("application/x-ndjson"):
        last = json.loads(text.splitlines()[-1])
        if last["event"] not in ("done", "failed") or "under error" in last.get("sentence", ""):
            return f"a computation ended with {str(last)[:200]}"
    return None


def campaign(count: int, seed: int = 0) -> tuple[Counter, list[str]]:
    """Send them all, one after the other; returns the kinds of answers, and what was wrong."""
    kinds: Counter = Counter()
    wrong = []
    with server() as (address, _), httpx2.Client(base_url=address, timeout=60) as client:
        host, port = address.removeprefix("http://").rsplit(":", 1)
        for number, each in enumerate(requests(count, seed)):
            if number % 50 == 0:
                with socket.create_connection((host, int(port)), timeout=10) as raw:
                    raw.sendall(RAW[number // 50 % len(RAW)])
            answer = client.request(each["method"], each["path"], headers=each["headers"], content=each["body"])
            kinds[answer.status_code] += 1
            problem = judged(answer)
            if each["path"] == "/api/uploads" and answer.status_code == 200:
                sent = fitted(answer.json()["upload"], random.Random(number))
                fit = client.post("/api/views/table", json=sent, headers={"x-tab": each["headers"]["x-tab"]})
                kinds[f"fit: {json.loads(fit.text.splitlines()[-1])['event']}"] += 1
                problem = problem or judged(fit)
            if problem is not None:
                wrong.append(f"{each['method']} {each['path']} {each['body'][:80]!r}: {problem}")
        alive = client.post("/api/views/oscillation", json={}, headers={"x-tab": "0" * 32})
        if judged(alive) is not None or '"done"' not in alive.text:
            wrong.append("the server does not answer any more")
    return kinds, wrong


def main() -> None:
    """Print the kinds of answers; exit code 1 if any is wrong."""
    kinds, wrong = campaign(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    print(f"{sum(kinds.values())} requests: {dict(kinds)}")
    print(*wrong[:20], sep="\n")
    print(f"{len(wrong)} were answered wrongly")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
