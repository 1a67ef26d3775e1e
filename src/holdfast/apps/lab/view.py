"""The views of the page: their list, what one is, what its computation may use, and the code that it offers."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.apps.lab.uploads import Upload
from holdfast.core.names import Named
from holdfast.core.progress import Progress

VIEWS = {
    "oscillation": Named("holdfast.apps.lab.views.oscillation:VIEW", "Oscillation"),
    "window": Named("holdfast.apps.lab.views.window:VIEW", "Window"),
    "jumps": Named("holdfast.apps.lab.views.jumps:VIEW", "Jumps"),
    "table": Named("holdfast.apps.lab.views.table:VIEW", "Your table"),
    "results": Named("holdfast.apps.lab.views.results:VIEW", "Results"),
}
"""Name in addresses -> its `View`, and its title in the menu, in whose order they are listed."""


@dataclass(frozen=True)
class Context:
    """What a computation may use besides its settings.

    Attributes:
        send: (name, data), sends a part of the result to the page before the rest is ready.
        progress: called with (done, total); ends a computation that should stop.
        uploaded: number of an upload of the same tab -> the file, in memory, or a ValueError.
        results: the folder that `holdfast lab --results` names.
    """

    send: Callable[[str, Any], None]
    progress: Progress
    uploaded: Callable[[str], Upload]
    results: Path | None = None


class View(NamedTuple):
    """A view of the page; `static/views/NAME.js` draws what it computes.

    Attributes:
        settings: a frozen dataclass whose fields are made by `holdfast.apps.lab.inputs`; it may check combinations.
        compute: (settings, context) -> the data of the charts, by name. Arrays become lists and NaN null. The part
            `code` is the same computation for copying: a script (`python`) and a line for the shell (`command`). Long
            work that reports no progress asks `holdfast.core.worker` whether it should stop; the loop over steps does.
    """

    settings: type
    compute: Callable[[Any, Context], dict[str, Any]]


def as_call(name: str, arguments: Mapping[str, Any], *positional: str) -> str:
    """A Python call, one argument in each line; positional arguments are code already.

    Example:
        >>> from holdfast.apps.cli.command import given
        >>> from holdfast.sensing.settings import Settings
        >>> print(as_call("hf.Settings", given(Settings(dimension=20, order="cyclic"))))
        hf.Settings(
            dimension=20,
            order='cyclic',
        )
    """
    lines = [*positional, *(f"{argument}={value!r}" for argument, value in arguments.items())]
    return "\n    ".join([f"{name}(", *(f"{line}," for line in lines)]) + "\n)" if lines else f"{name}()"


def as_command(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """A line for the shell. An option and its value are one word, because a value may begin with a dash.

    Example:
        >>> as_command(["simulate"], {"dimension": 20, "init_scale": 1e-05})
        'holdfast simulate --dimension=20 --init-scale=1e-05'
    """
    return shlex.join(["holdfast", *words, *(f"--{name.replace('_', '-')}={value}" for name, value in options.items())])
