"""`holdfast advise`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Arguments:
    """Say what stored measurements tell: signals, strengths, assumptions, and at which step sizes HeteroSGD works."""

    data: tyro.conf.Positional[Path]
    """Measurements: an .npz file or a .zarr folder with X (n, d, d), y (n,) and environment (n,)."""
    step_size: float = 0.05
    """Step size eta at which exponents are computed."""
    steps: int = 200
    """Number of steps T."""
    init_scale: float = 1e-3
    """Scale alpha of the starting point."""
    confidence: float = 0.95
    """Wanted probability that the spurious share ends below the tolerance."""
    tolerance: float = 0.01
    """Largest spurious share that counts as washed out."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""


def execute(arguments: Arguments) -> int:
    """Estimate, diagnose and print."""
    from holdfast import terminal
    from holdfast.stored import read_measurements
    from holdfast.theory.findings import examine

    findings = examine(
        *read_measurements(arguments.data),
        step_size=arguments.step_size,
        steps=arguments.steps,
        init_scale=arguments.init_scale,
        confidence=arguments.confidence,
        tolerance=arguments.tolerance,
    )
    if arguments.format == "json":
        print(json.dumps(findings.asdict(), allow_nan=False))
    else:
        terminal.show_findings(findings)
    return 0
