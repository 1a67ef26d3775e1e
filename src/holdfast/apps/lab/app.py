"""The server of the page: static files, the list of views, computations as streams, uploads."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from holdfast.apps.lab.guard import Guard, refusal
from holdfast.apps.lab.inputs import read, schema
from holdfast.apps.lab.jobs import BusyError, Jobs, logger
from holdfast.apps.lab.messages import encoded
from holdfast.apps.lab.uploads import Uploads
from holdfast.apps.lab.view import Context, View
from holdfast.apps.lab.views import VIEWS
from holdfast.core.names import Named

STATIC = Path(__file__).parent / "static"
# Bytes of the settings of a view.
LARGEST_SETTINGS = 64 * 2**10
# Seconds in which the body of a request must have arrived; whoever stalls gives the place to others.
ARRIVAL = 60.0
# The header that names a tab.
TAB = re.compile(r"[0-9a-f]{32}")
# Seconds between two looks for uploads that nobody uses any more.
LOOKED_EVERY = 60.0


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
        token: that every request has to know; None: anybody who reaches it.
        results: the folder that the view of results shows.
        jobs: the pool of computations.
        uploads: what people have sent.
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
        forgetting = asyncio.create_task(_forget_now_and_then(state.uploads))
        try:
            yield
        finally:
            forgetting.cancel()
            state.jobs.close()
            state.uploads.close()

    routes = [
        Route("/", partial(_file, "index.html")),
        Route("/favicon.ico", partial(_file, "icon.svg")),
        Route("/api/views", state.list_views),
        Route("/api/views/{name}", state.compute, methods=["POST"]),
        Route("/api/uploads", state.upload, methods=["POST"]),
        Route("/api/uploads", state.leave, methods=["DELETE"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    handlers: Any = {
        HTTPException: _http_error,
        ValueError: _value_error,
        BusyError: _busy,
        TimeoutError: _too_slow,
        ClientDisconnect: _gone,
    }
    return Guard(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), token)


class _State:
    """What the requests share."""

    def __init__(
        self, views: Mapping[str, Named], results: Path | None, jobs: Jobs, uploads: Uploads, arrival: float
    ) -> None:
        self._views, self.results, self.jobs, self.uploads, self._arrival = views, results, jobs, uploads, arrival

    async def list_views(self, request: Request) -> Response:
        """The views, and the inputs of each."""
        listed = [
            {"name": name, "title": named.words, "inputs": schema(view.settings), "automatic": view.automatic}
            for name, named in self._views.items()
            for view in [named.load()]
        ]
        return Response(encoded({"views": listed}), media_type="application/json")

    async def compute(self, request: Request) -> Response:
        """A stream of events: the code for copying, progress and parts, and then the whole result."""
        name, tab = request.path_params["name"], _tab(request)
        if name not in self._views:
            raise HTTPException(404, f"the view must be one of {', '.join(self._views)}, got {name[:60]!r}")
        view: View = self._views[name].load()
        async with asyncio.timeout(self._arrival):
            settings = read(view.settings, await _json(request))
        context = Context(
            send=lambda part, data: None,
            progress=lambda done, total: None,
            uploaded=partial(self.uploads.find, tab),
            results=self.results,
        )

        def work(send: Any) -> Any:
            return view.compute(
                settings,
                replace(
                    context,
                    send=lambda part, data: send({"event": "part", "data": {part: data}}),
                    progress=lambda done, total: send({"event": "progress", "done": done, "total": total}),
                ),
            )

        snippets = view.snippets(settings)
        events = self.jobs.events((tab, name), work)

        async def lines() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(events):
                yield encoded({"event": "accepted", **snippets._asdict()})
                async for event in events:
                    yield encoded(event)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def upload(self, request: Request) -> Response:
        """Take a file of this tab."""
        name = unquote(request.headers.get("x-file-name", ""), errors="replace")
        async with asyncio.timeout(self._arrival):
            number = await self.uploads.add(_tab(request), name, request.stream())
        return Response(encoded({"upload": number}), media_type="application/json")

    async def leave(self, request: Request) -> Response:
        """Forget the file of a tab that is being closed."""
        self.uploads.drop(_tab(request))
        return Response(status_code=204)


async def _forget_now_and_then(uploads: Uploads) -> None:
    while True:
        await asyncio.sleep(LOOKED_EVERY)
        uploads.forget()


def _tab(request: Request) -> str:
    """The random number that a tab of a browser has given itself; nobody else knows it."""
    tab = request.headers.get("x-tab", "")
    if not TAB.fullmatch(tab):
        raise ValueError("the header X-Tab must be 32 hexadecimal digits, which the page draws at random")
    return tab


async def _json(request: Request) -> Any:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_SETTINGS:
            raise HTTPException(413, f"settings must be at most {LARGEST_SETTINGS} bytes, got more")
    try:
        return json.loads(body, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        raise ValueError("settings must be JSON, got something else") from None


async def _file(name: str, request: Request) -> Response:
    return FileResponse(STATIC / name)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return refusal(error.detail, error.status_code)


async def _value_error(request: Request, error: ValueError) -> Response:
    return refusal(str(error), 400)


async def _busy(request: Request, error: BusyError) -> Response:
    return refusal("too many people are asking at once: please try again in a moment", 503)


async def _too_slow(request: Request, error: TimeoutError) -> Response:
    return refusal("the request must arrive in time, got only a part of it", 408)


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    logger.debug("a browser left before it had sent everything")
    return refusal("the request ended early", 400)
