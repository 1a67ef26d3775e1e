"""`holdfast reproduce`."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from holdfast.apps.cli.command import Command, Positional
from holdfast.sweeps.engines.local import Engine, EngineOptions
from holdfast_studies.names import LONGEST, TITLES

# A quick look compiles for longer than it computes. The older of XLA's two generators of loops compiles in a third less
# time, and light optimisation saves a fifth of what is left. (None at all would save more, but matrices of 100 x 100
# then take five times as long.) Other versions of jaxlib may not know a flag, and end the process at one that they do
# not know.
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"
FLAGS_KNOWN_TO = "0.10."
# Experiments trace programs and compute short arrays, which hold Python's lock, so they run in processes. Each takes
# about a gigabyte of memory, hence this limit.
MOST_PROCESSES = 4


@dataclass(frozen=True)
class ReproduceArguments:
    """Redraw the figures of the paper, test its claims and write report.html.

    Results of the same seeds and code are reused, so if the command is interrupted, run it again to resume; several
    commands can share one folder. By default each core computes an experiment in a process of its own, up to four at a
    time; a single experiment uses all cores, and so does a GPU run. Experiments that need a missing extra (such as
    torch) are skipped, and named at the end. Exit code 1 if an experiment fails, if a verdict differs from the expected
    one or, with all seeds, if a claim is undecided.

    Examples:

        holdfast reproduce --list
        holdfast reproduce figure_3 --quick --out look
        holdfast reproduce --out results
    """

    engine: EngineOptions
    names: Annotated[tuple[str, ...], Positional("NAME")] = ()
    """Experiments to run; all of them if none is named."""
    out: Path = Path("results")
    """Folder for figures, numbers, claims.json and report.html."""
    quick: bool = False
    """Few seeds: a look at the figures, not a test of the claims; the verdicts do not change the exit code."""
    seeds: int | None = None
    """Seeds of each curve, instead of the number of each experiment."""
    list: bool = False
    """Name the experiments and stop."""


def execute(arguments: ReproduceArguments) -> int:
    """Run the experiments, or name them."""
    from holdfast_studies.names import load

    if arguments.list:
        for name, title in TITLES.items():
            print(f"{name:12} {title}")
        return 0
    names = arguments.names or tuple(TITLES)
    engine = arguments.engine.engine()
    # jax reads the flags when it is first imported; those that the user has set stay as they are.
    if arguments.quick and "jax" not in sys.modules and version("jaxlib").startswith(FLAGS_KNOWN_TO):
        os.environ.setdefault("XLA_FLAGS", FLAGS)
    from holdfast.apps.cli.terminal.progress import INTERRUPTED
    from holdfast_studies.commands.reproduction_output import REPORTER
    from holdfast_studies.images.recorded import recorded_section
    from holdfast_studies.papers.statements import STATEMENTS
    from holdfast_studies.runner import reproduce

    try:
        return reproduce(
            {name: load(name) for name in names},
            arguments.out,
            quick=arguments.quick,
            seeds=arguments.seeds,
            statements=STATEMENTS,
            recorded=() if arguments.names else (recorded_section(),),
            first=LONGEST,
            engine=engine or default_engine(len(names)),
            reporter=REPORTER,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(INTERRUPTED) from None


COMMAND = Command("Results of the papers, and other methods", ReproduceArguments, execute, tuple(TITLES))


def default_engine(count: int) -> Engine | None:
    """One process for each core; None for one core, one experiment or a GPU.

    Python calls have another default: processes import functions, so they cannot compute those of an interactive
    session, and a script that starts processes needs `if __name__ == "__main__":`.

    Args:
        count: of the experiments.
    """
    from holdfast.core.run import available_devices
    from holdfast.core.worker import available_cores
    from holdfast.sweeps.engines.dask import ProcessEngine

    processes = min(count, len(available_cores()), MOST_PROCESSES)
    return ProcessEngine(processes) if processes > 1 and available_devices()[0].platform == "cpu" else None
