"""`holdfast lab`."""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# What the optional extra `lab` installs.
NEEDED = ("starlette", "uvicorn", "fsspec")


@dataclass(frozen=True)
class LabArguments:
    """Open the laboratory, a local page where sliders control simulations.

    The page works offline and can only be reached from this computer. Another --host, such as 0.0.0.0, makes it
    reachable from others; then the printed link has a token, and requests without it are refused.

    Examples:

        holdfast lab
        holdfast lab --no-browser --port 8500 --results runs
    """

    port: int | None = None
    """Port to listen on; by default the first free one from 8440 on."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    no_browser: bool = False
    """Only print the address; open no browser."""
    results: Path | None = None
    """Folder of a sweep or a reproduction that the page shows."""

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port < 2**16:
            raise ValueError(f"port must be a whole number from 0 to 65535, got {self.port}")


def execute(arguments: LabArguments) -> int:
    """Serve the page until it is interrupted."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(f"holdfast lab needs {', '.join(missing)}: pip install 'holdfast[lab]'")
    if arguments.results is not None and not arguments.results.is_dir():
        raise ValueError(f"results must be a folder, got {str(arguments.results)!r}")
    from holdfast.apps.lab.server import serve

    # Copied commands name the folder, which "." does not.
    results = None if arguments.results is None else arguments.results.resolve()
    serve(host=arguments.host, port=arguments.port, browser=not arguments.no_browser, results=results)
    # A thread may be compiling, which cannot be interrupted and which Python would wait for. The server has cleaned up.
    sys.stdout.flush()
    os._exit(0)
