"""The real server as a process of its own, and a real browser, where one is installed."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

# Flags under which Chromium runs without a screen, as root, and asks nobody but the page's own server.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextlib.contextmanager
def server(*options: str) -> Iterator[tuple[str, int]]:
    """A running `holdfast lab`: its address and the number of its process."""
    command = [sys.executable, "-m", "holdfast", "lab", "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split()[4].rstrip("/"), process.pid
    finally:
        process.terminate()
        process.communicate()


def memory(process: int) -> int:
    """Resident bytes of a process."""
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
