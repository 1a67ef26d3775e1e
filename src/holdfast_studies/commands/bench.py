"""`holdfast bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from holdfast.apps.cli.command import Command, Positional


@dataclass(frozen=True)
class BenchArguments:
    """Measure speed: simulations against the limits of this machine, fits of tables, and the overhead of sweeps.

    Examples:

        holdfast bench --quick
        holdfast bench cost_against_batch_size --out bench.json
    """

    names: Annotated[tuple[str, ...], Positional("NAME")] = ()
    """Benchmarks to run; all of them if none is named."""
    out: Path | None = None
    """Write the numbers to this JSON file."""
    quick: bool = False
    """Smaller sizes, to see that the benchmark works."""


def execute(arguments: BenchArguments) -> int:
    """Run all benchmarks."""
    from holdfast_studies.benchmarks import report

    return report(arguments.names, out=arguments.out, quick=arguments.quick)


COMMAND = Command("Tools", BenchArguments, execute)
