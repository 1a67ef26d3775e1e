"""From the command to a page that can be opened: the address, the token, the warm-up, and the loop of the server."""

import contextlib
import errno
import ipaddress
import logging
import secrets
import socket
import threading
import time
import webbrowser
from pathlib import Path

import uvicorn

from holdfast.apps.lab.app import create_app
from holdfast.apps.lab.jobs import Jobs, logger
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
    jobs = Jobs()
    app = create_app(token=token, results=results, jobs=jobs)
    address = page_address(host, listening.getsockname()[1], token)
    logger.addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        ws="none",
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    def announce() -> None:
        while not server.started and not server.should_exit:
            time.sleep(0.01)
        print(f"The page is at {address}  (Ctrl+C ends it)", flush=True)
        if browser:
            webbrowser.open(address)
        jobs.submit(_warm_up)

    threading.Thread(target=announce, daemon=True).start()
    # Interrupted is how this command ends.
    with contextlib.suppress(KeyboardInterrupt), listening:
        server.run([listening])


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
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
    for candidate in candidates:
        try:
            return socket.create_server((host, candidate), family=_family(host), backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ValueError(f"host must be an address of this computer, got {host!r}: {error.strerror}") from error
    tried = f"{candidates[0]}" if len(candidates) == 1 else f"{candidates[0]} to {candidates[-1]}, all"
    raise ValueError(f"port must be free, got {tried} in use")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _warm_up() -> None:
    """Compute the defaults of the views that ask for it, so that the first slider finds compiled programs."""
    nothing = Context(lambda part, data: None, lambda done, total: None, lambda number: Upload("", b""))
    for name, named in VIEWS.items():
        view: View = named.load()
        if view.warm_up:
            try:
                view.compute(view.settings(), nothing)
            except Exception:
                logger.exception("the warm-up of %s failed", name)
