"""Who may ask the server, and what its answers tell browsers to allow."""

import secrets
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.apps.lab.jobs import unexpected

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
COOKIE = "holdfast_lab"
# The browser loads scripts and styles from this server, and nothing from elsewhere. Pictures are made from charts.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",  # the page belongs to the installed version
}


class Guard:
    """Middleware that refuses what a browser of the user would not ask, and sends the security headers.

    A page elsewhere can send requests to a local server. It cannot choose their Origin; and if it makes its own name
    point to this computer, that name is in the Host header.

    Args:
        app: what is guarded.
        token: that has to be known; None: anybody who reaches the loopback address may ask.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no web sockets
        # Starlette answers a malformed Range in plain text. These files are small, so they are always sent whole.
        scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"range"]}
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            answer: ASGIApp = self._refusal(scope) or self._app
            await answer(scope, receive, send_with_headers)
        except Exception:
            sentence = unexpected("The server could not answer")
            if not begun:
                await refusal(sentence, 500)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this request is not answered; None if it is."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self._token is None and _without_port(host) not in LOOPBACK:
            return refusal(f"the Host header must be one of {', '.join(LOOPBACK)}, got {host[:60]!r}", 421)
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin", f"http://{host}")
            if origin != f"http://{host}" or headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return refusal("requests that change something must come from the page itself", 403)
        return self._without_token(scope, headers) if self._token is not None else None

    def _without_token(self, scope: Scope, headers: MutableMapping[str, str]) -> Response | None:
        """A refusal, or the redirection that moves the token of a link into a cookie."""
        if self._is_token(_cookies(headers.get("cookie", "")).get(COOKIE, "")):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and self._is_token(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return answer
        return refusal("the page needs its token: open the whole link that `holdfast lab` printed", 401)

    def _is_token(self, given: str) -> bool:
        return self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())


def refusal(sentence: str, status: int) -> Response:
    """An answer that says why there is no other."""
    body: dict[str, Any] = {"error": sentence}
    return JSONResponse(body, status)


def _cookies(header: str) -> dict[str, str]:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return {name: value for name, _, value in pairs}


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()
