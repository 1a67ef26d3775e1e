"""`holdfast reproduce`."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import tyro

from holdfast.execution.engines.base import Engine
from holdfast.execution.engines.options import EngineOptions

# A quick look compiles for longer than it computes. The older of XLA's two generators of loops compiles in a third less
# time, and light optimisation saves a fifth of what is left. (None at all would save more, but matrices of 100 x 100
# then take five times as long.) Other versions of jaxlib may not know a flag, and end the process at one that they do
# not know.
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"
FLAGS_KNOWN_TO = "0.10."
# Several experiments are computed in processes, one on each core: threads would wait for Python's lock, which tracing
# and short arrays hold. Each process takes about a gigabyte, so there are not more than this.
MOST_PROCESSES = 4


@dataclass(frozen=True)
class ReproduceArguments:
    """Redraw the figures of the paper, test its claims and write report.html.

    What was already computed with the same seeds and code is reused, so the same command goes on where it was stopped,
    and several with the same folder share the work. By default each core computes an experiment in a process of its
    own, up to four at a time; a single experiment, or a GPU, has all cores. Those whose extra (such as torch) is not
    installed are left out, and named at the end. Exit code 1 if an experiment fails, or if a claim is decided otherwise
    than expected or, with all seeds, is undecided.

    Examples:

        holdfast reproduce --list
        holdfast reproduce figure_3 --quick --out look
        holdfast reproduce --out results
    """

    engine: tyro.conf.OmitArgPrefixes[EngineOptions]
    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]")]] = ()
    """Experiments to run; all of them if none is named."""
    out: Path = Path("results")
    """Folder for figures, numbers, claims.json and report.html."""
    quick: bool = False
    """Few seeds: a look at the figures, not a test of the claims; the verdicts do not change the exit code."""
    seeds: int | None = None
    """Seeds of each curve, instead of the number each experiment asks for."""
    list: bool = False
    """Name the experiments and stop."""


def execute(arguments: ReproduceArguments) -> int:
    """Run the experiments, or name them."""
    from holdfast.experiments import TITLES, load

    if arguments.list:
        for name, title in TITLES.items():
            print(f"{name:12} {title}")
        return 0
    names = arguments.names or tuple(TITLES)
    engine = arguments.engine.engine()
    # jax reads the flags when it is first imported; those that the user has set stay as they are.
    if arguments.quick and "jax" not in sys.modules and version("jaxlib").startswith(FLAGS_KNOWN_TO):
        os.environ.setdefault("XLA_FLAGS", FLAGS)
    from holdfast.cli.terminal.reproduction import REPORTER
    from holdfast.comparison.images.recorded_report import recorded_section
    from holdfast.experiments.names import LONGEST
    from holdfast.experiments.statements import STATEMENTS
    from holdfast.reproduction.runner import reproduce

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
        words = "interrupted; what is computed is saved, and the same command goes on from there"
        raise KeyboardInterrupt(words) from None


def default_engine(experiments: int) -> Engine | None:
    """A process on each core for several experiments, unless they compute on an accelerator, which they would share."""
    from holdfast.core.run import available_devices
    from holdfast.core.worker import available_cores
    from holdfast.execution.engines.processes import ProcessEngine

    count = min(experiments, len(available_cores()), MOST_PROCESSES)
    return ProcessEngine(count) if count > 1 and available_devices()[0].platform == "cpu" else None
