"""`holdfast jumps`."""

import json
from dataclasses import dataclass
from typing import Literal

import tyro

from holdfast.completion.settings import CompletionSettings


@dataclass(frozen=True)
class Arguments:
    """Complete a matrix with a deep linear network, and say when its rank jumps.

    The defaults are the 2 x 2 example with numbers at which SGD jumps from rank 2 to rank 1.
    """

    settings: tyro.conf.OmitArgPrefixes[CompletionSettings]
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""


def execute(arguments: Arguments) -> int:
    """Run, find the jumps and print them."""
    from holdfast.cli import terminal
    from holdfast.cli.terminal.completion import show_completion
    from holdfast.completion.summary import summarise
    from holdfast.completion.training import simulate_completion

    with terminal.progress("completing") as progress:
        summary = summarise(simulate_completion(arguments.settings, progress=progress))
    if arguments.format == "json":
        print(json.dumps(summary.asdict(), allow_nan=False))
    else:
        show_completion(summary)
    return 0
