"""`holdfast reproduce`."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class ReproduceArguments:
    """Redraw the figures of the paper, test its claims and write report.html.

    What was already computed with the same seeds and version is reused. Exit code 1 if a claim that is recorded as
    holding does not, or an experiment fails.
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
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
    from holdfast.reproduction.runner import EXPERIMENTS, reproduce_all

    if arguments.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:12} {experiment.TITLE}")
        return 0
    return reproduce_all(arguments.names, arguments.out, quick=arguments.quick, seeds=arguments.seeds)
