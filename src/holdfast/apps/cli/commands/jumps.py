"""`holdfast jumps`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.apps.cli.command import answer
from holdfast.completion.settings import CompletionSettings


@dataclass(frozen=True)
class JumpsArguments:
    """Complete a matrix with a deep linear network, and say when its rank jumps.

    The defaults are the 2 x 2 example with numbers at which SGD jumps from rank 2 to rank 1.

    Examples:

        holdfast jumps --seeds 64 --offshoots 4
        holdfast jumps --algorithm gradient-descent --steps 5000 --format json
    """

    settings: CompletionSettings
    out: Path | None = None
    """Write the fitted matrices of all runs to NAME.zarr, from which the same command resumes if it was interrupted."""
    overwrite: bool = False
    """Replace results of other settings."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute(arguments: JumpsArguments) -> int:
    """Run, find the jumps and print them."""
    from holdfast.apps.cli.terminal.completion import show_completion
    from holdfast.apps.cli.terminal.progress import progress, saving_bar
    from holdfast.completion.summary import summarise
    from holdfast.completion.training import simulate_completion

    if arguments.out is None:
        with progress("completing") as report:
            done = simulate_completion(arguments.settings, progress=report)
    else:
        from holdfast.core.writing import check_output
        from holdfast.sweeps.simulations import saved_completion

        check_output(arguments.out, [".zarr"], overwrite=True)
        with saving_bar(arguments.out) as saving:
            done = saved_completion(arguments.settings, arguments.out, overwrite=arguments.overwrite, report=saving)
    summary = summarise(done)
    answer(arguments.format, summary.asdict(), lambda: show_completion(summary))
    return 0
