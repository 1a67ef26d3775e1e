"""The server of the page, from the command to an address that can be opened: static files, views, uploads."""

import asyncio
import contextlib
import errno
import ipaddress
import json
import logging
import math
import re
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from holdfast.apps.lab.guard import Guard, refusal
from holdfast.apps.lab.inputs import read, schema
from holdfast.apps.lab.jobs import BusyError, Jobs, logger, unexpected
from holdfast.apps.lab.uploads import AT_ONCE, Upload, Uploads
from holdfast.apps.lab.view import VIEWS, Context, View
from holdfast.core.names import Named

STATIC = Path(__file__).parent / "static"
# Bytes of the settings of a view.
LARGEST_SETTINGS = 64 * 2**10
# Seconds in which the body of a request must have arrived; one that stalls makes room for others.
ARRIVAL = 60.0
# The header that names a tab.
TAB = re.compile(r"[0-9a-f]{32}")
# Seconds between two searches for uploads that are no longer used.
LOOKED_EVERY = 60.0
# Digits of the numbers in charts: more are not seen, and half of the bytes are digits.
DIGITS = 6
# The first port that is tried if none is named, and how many.
FIRST_PORT, PORTS = 8440, 20
# Connections at once, and seconds that a silent one is left open.
CONNECTIONS, KEEP_ALIVE = 400, 30


def create_app(
    *,
    views: Mapping[str, Named] = VIEWS,
    token: str | None = None,
    results: Path | None = None,
    jobs: Jobs | None = None,
    uploads: Uploads | None = None,
    arrival: float = ARRIVAL,
) -> ASGIApp:
    """The server, as an ASGI application.

    Args:
        views: name -> `View`, in the order of the menu.
        token: that every request must know; None: no token is needed.
        results: the folder that the view of results shows.
        jobs: the pool of computations.
        uploads: the store of uploaded files.
        arrival: seconds in which the body of a request must have arrived.

    Example:
        >>> from starlette.testclient import TestClient
        >>> client = TestClient(create_app(), base_url="http://localhost")
        >>> client.get("/api/views").json()["views"][0]["title"]
        'Oscillation'
    """
    state = _State(views, results, jobs or Jobs(), uploads or Uploads(), arrival)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        forgetting = asyncio.create_task(_forget_regularly(state.uploads))
        try:
            yield
        finally:
            forgetting.cancel()
            state.jobs.close()

    routes = [
        Route("/", lambda request: FileResponse(STATIC / "index.html")),
        Route("/api/views", state.list_views),
        Route("/api/views/{name}", state.compute, methods=["POST"]),
        Route("/api/uploads", state.upload, methods=["POST"]),
        Route("/api/uploads", state.leave, methods=["DELETE"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    handlers: Any = dict.fromkeys((HTTPException, *_REFUSED, Exception), _refused)
    return Guard(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), token)


class _State:
    """What the requests share."""

    def __init__(
        self, views: Mapping[str, Named], results: Path | None, jobs: Jobs, uploads: Uploads, arrival: float
    ) -> None:
        self._views, self.results, self.jobs, self.uploads, self._arrival = views, results, jobs, uploads, arrival
        self._arriving = asyncio.Semaphore(AT_ONCE)

    async def list_views(self, request: Request) -> Response:
        """The views, and the inputs of each."""
        listed = [
            {"name": name, "title": named.words, "inputs": schema(named.load().settings)}
            for name, named in self._views.items()
        ]
        return Response(encoded({"views": listed}), media_type="application/json")

    async def compute(self, request: Request) -> Response:
        """A stream of events: progress and parts, and then the whole result."""
        name, tab = request.path_params["name"], _tab(request)
        if name not in self._views:
            raise HTTPException(404, f"the view must be one of {', '.join(self._views)}, got {name[:60]!r}")
        view: View = self._views[name].load()
        settings = read(view.settings, _parsed(await self._body(request, "settings", LARGEST_SETTINGS)))

        def work(send: Any) -> Any:
            context = Context(
                send=lambda part, data: send({"event": "part", "data": {part: data}}),
                progress=lambda done, total: send({"event": "progress", "done": done, "total": total}),
                uploaded=partial(self.uploads.find, tab),
                results=self.results,
            )
            return view.compute(settings, context)

        events = self.jobs.events((tab, name), work)

        async def lines() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(events):
                yield encoded({"event": "accepted"})
                async for event in events:
                    yield encoded(event)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def upload(self, request: Request) -> Response:
        """Take a file of this tab."""
        tab, name = _tab(request), unquote(request.headers.get("x-file-name", ""), errors="replace")
        async with self._arriving:
            content = await self._body(request, "the file", self.uploads.largest_file)
            number = self.uploads.add(tab, name, content)
        return Response(encoded({"upload": number}), media_type="application/json")

    async def leave(self, request: Request) -> Response:
        """Forget the file of a tab that is being closed."""
        self.uploads.drop(_tab(request))
        return Response(status_code=204)

    async def _body(self, request: Request, what: str, largest: int) -> bytes:
        """What a request sends, unless it is too much or takes too long."""
        body = bytearray()
        async with asyncio.timeout(self._arrival):
            async for piece in request.stream():
                body += piece
                if len(body) > largest:
                    size = f"{largest >> 20} MiB" if largest >> 20 else f"{largest >> 10} KiB"
                    raise HTTPException(413, f"{what} must be at most {size}, got more")
        return bytes(body)


async def _forget_regularly(uploads: Uploads) -> None:
    while True:
        await asyncio.sleep(LOOKED_EVERY)
        uploads.forget()


def _tab(request: Request) -> str:
    """The random number that a tab of a browser has given itself; no other tab knows it."""
    tab = request.headers.get("x-tab", "")
    if not TAB.fullmatch(tab):
        raise ValueError("the header X-Tab must be 32 hexadecimal digits, which the page draws at random")
    return tab


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        raise ValueError("settings must be JSON, got something else") from None


# What a request may end in -> the status and the sentence of the answer; without a sentence that of the error.
_REFUSED: dict[type[Exception], tuple[int, str]] = {
    ValueError: (400, ""),
    BusyError: (503, "too many computations are waiting: please try again in a moment"),
    TimeoutError: (408, "the request must arrive in time, got only a part of it"),
    ClientDisconnect: (400, "the request ended early"),
}


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return refusal(error.detail, error.status_code)
    for kind, (status, sentence) in _REFUSED.items():
        if isinstance(error, kind):
            return refusal(sentence or str(error), status)
    return refusal(unexpected("The server could not answer"), 500)


def encoded(message: Any) -> bytes:
    r"""A message as one line of JSON: arrays become lists of numbers with six digits, NaN and infinities null.

    Example:
        >>> encoded({"spurious": np.array([0.1234567, np.nan])})
        b'{"spurious":[0.123457,null]}\n'
    """
    return msgspec.json.encode(message, enc_hook=_plain) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _rounded(value.tolist())
    raise TypeError(f"a message must hold numbers, texts, lists and arrays, got {type(value).__name__}")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value


def serve(
    *, host: str = "127.0.0.1", port: int | None = None, browser: bool = True, results: Path | None = None
) -> None:
    """Serve the page until interrupted.

    Args:
        host: address to listen on; any but the loopback needs a token, which is drawn and printed.
        port: None: the first free one from `FIRST_PORT` on; 0: any.
        browser: open the page.
        results: the folder that the view of results shows.
    """
    listening = _listen(host, port)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    address = page_address(host, listening.getsockname()[1], token)
    logger.addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        create_app(token=token, results=results),
        log_level="critical",
        access_log=False,
        ws="none",
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=1,
    )
    # Interrupted is how this command ends.
    with contextlib.suppress(KeyboardInterrupt), listening:
        print(f"The page is at {address}  (Ctrl+C ends it)", flush=True)
        threading.Thread(target=_warm_up, daemon=True).start()
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        uvicorn.Server(config).run([listening])


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def page_address(host: str, port: int, token: str | None) -> str:
    """The address to open; one that listens everywhere is reached by the name of the computer.

    Example:
        >>> page_address("127.0.0.1", 8440, None)
        'http://127.0.0.1:8440/'
    """
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket on the port that was asked for, or on the first free one."""
    candidates = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in candidates:
        try:
            return socket.create_server((host, candidate), family=family, backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ValueError(f"host must be an address of this computer, got {host!r}: {error.strerror}") from error
    tried = f"{candidates[0]}" if len(candidates) == 1 else f"{candidates[0]} to {candidates[-1]}, all"
    raise ValueError(f"port must be free, got {tried} in use")


def _warm_up() -> None:
    """Compute what the page opens with, so that the first slider finds compiled programs."""
    view: View = next(iter(VIEWS.values())).load()
    with contextlib.suppress(Exception):  # the page itself will say what is wrong
        nothing = Context(lambda part, data: None, lambda done, total: None, lambda number: Upload("", b""))
        view.compute(view.settings(), nothing)
