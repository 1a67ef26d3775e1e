"""Who may ask the server, and what its answers tell browsers to allow."""

import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        token: that a request must know; None: every request to the loopback address is answered.
    """

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; there are no web sockets."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        # Starlette answers a malformed Range in plain text. These files are small, so they are always sent whole.
        scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"range"]}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer: ASGIApp = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Why this request is not answered; None if it is."""
        host = request.headers.get("host", "")
        if self._token is None and _without_port(host) not in LOOPBACK:
            return refusal(f"the Host header must be one of {', '.join(LOOPBACK)}, got {host[:60]!r}", 421)
        if request.method not in ("GET", "HEAD"):
            origin = request.headers.get("origin", f"http://{host}")
            if origin != f"http://{host}" or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return refusal("requests that change something must come from the page itself", 403)
        return None if self._token is None else self._without_token(request)

    def _without_token(self, request: Request) -> Response | None:
        """A refusal, or the redirection that moves the token of a link into a cookie."""
        if self._is_token(request.cookies.get(COOKIE, "")):
            return None
        given = request.query_params.get("token", "")
        if request.scope["path"] == "/" and self._is_token(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return answer
        return refusal("the page needs its token: open the whole link that `holdfast lab` printed", 401)

    def _is_token(self, given: str) -> bool:
        return self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())


def refusal(sentence: str, status: int) -> Response:
    """An answer that says why there is no other."""
    return JSONResponse({"error": sentence}, status)


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()
