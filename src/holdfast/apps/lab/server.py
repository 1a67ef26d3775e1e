"""From the command to a page that can be opened: the address, the token, the warm-up, and the loop of the server."""

import contextlib
import errno
import ipaddress
import logging
import secrets
import socket
import threading
import webbrowser
from pathlib import Path

import uvicorn

from holdfast.apps.lab.app import create_app
from holdfast.apps.lab.jobs import logger
from holdfast.apps.lab.uploads import Upload
from holdfast.apps.lab.view import Context, View
from holdfast.apps.lab.views import VIEWS

# The first port that is tried if none is named, and how many.
FIRST_PORT, PORTS = 8440, 20
# Connections at once, and seconds that a silent one is left open.
CONNECTIONS, KEEP_ALIVE = 400, 30


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

    def begin() -> None:
        print(f"The page is at {address}  (Ctrl+C ends it)", flush=True)
        threading.Thread(target=_warm_up, daemon=True).start()
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    logger.addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        create_app(token=token, results=results, begin=begin),
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
