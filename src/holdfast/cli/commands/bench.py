"""`holdfast bench`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BenchArguments:
    """Measure speed: the exact law against explicit measurements and against the limits of this machine."""

    out: Path | None = None
    """Write the numbers to this JSON file."""
    quick: bool = False
    """Smaller sizes, to see that the benchmark works."""


def execute(arguments: BenchArguments) -> int:
    """Run all benchmarks."""
    from holdfast.bench import report

    return report(out=arguments.out, quick=arguments.quick)
