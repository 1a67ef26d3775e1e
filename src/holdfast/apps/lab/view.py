"""What a view is, and what its computation may use."""

import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.apps.lab.uploads import Upload
from holdfast.core.progress import Progress


@dataclass(frozen=True)
class Context:
    """What a computation may use besides its settings.

    Attributes:
        send: (name, data), sends a part of the result to the page before the rest is ready.
        progress: called with (done, total).
        uploaded: number of an upload of the same tab -> the file, in memory, or a ValueError.
        results: the folder that `holdfast lab --results` names.
    """

    send: Callable[[str, Any], None]
    progress: Progress
    uploaded: Callable[[str], Upload]
    results: Path | None = None


class Snippets(NamedTuple):
    """The same computation elsewhere, for people to copy.

    Attributes:
        python: a script.
        command: a line for the shell; empty if there is none.
    """

    python: str
    command: str


@dataclass(frozen=True)
class View:
    """A view of the page; `static/views/NAME.js` draws what it computes.

    Attributes:
        settings: a frozen dataclass whose fields are made by `holdfast.apps.lab.inputs`; it may check combinations.
        compute: (settings, context) -> the data of the charts, by name. Arrays become lists and NaN null. It asks
            `holdfast.core.worker` whether it should stop; the loop over steps does so already.
        snippets: settings -> the same computation in Python and as a command.
        warm_up: compute the defaults when the page is started, so that programs are compiled before they are needed.
        automatic: compute whenever a setting changes; if not, the page has a button.
    """

    settings: type
    compute: Callable[[Any, Context], dict[str, Any]]
    snippets: Callable[[Any], Snippets]
    warm_up: bool = False
    automatic: bool = True


def side_by_side(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of functions that run in threads of their own, with the limits of the worker that calls.

    Example:
        >>> side_by_side([lambda: 1, lambda: 2])
        [1, 2]
    """
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(contextvars.copy_context().run, function) for function in functions]
        return [future.result() for future in futures]
