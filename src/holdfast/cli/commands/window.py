"""`holdfast window`."""

import json
from dataclasses import dataclass
from typing import Literal

from holdfast.sensing.names import LAWS, LawName
from holdfast.sensing.settings import Settings


@dataclass(frozen=True)
class WindowArguments:
    """Say at which step sizes heterogeneity washes the spurious signal out, and what to expect at one of them.

    Examples:

        holdfast window --heterogeneity 6 --bias 1
        holdfast window --heterogeneity 6 --bias 1 --batch-size 400
        holdfast window --heterogeneity 3 --bias 1 --format json
    """

    heterogeneity: float
    """Spread M of the spurious strengths around the bias."""
    bias: float
    """Mean s of the spurious strengths."""
    step_size: float = 0.05
    """Step size eta at which the exponent is computed."""
    steps: int = 200
    """Number of steps T."""
    init_scale: float = 1e-3
    """Scale alpha of the starting point."""
    environments: LawName = "two-point"
    """Law of the strengths, one of `holdfast.sensing.names.LAWS`."""
    dimension: int = 100
    """Size d of the matrices, which bounds the starting point that is advised."""
    confidence: float = 0.95
    """Wanted probability that the spurious share ends below the tolerance."""
    tolerance: float = 0.01
    """Largest spurious share that counts as washed out."""
    batch_size: int | None = None
    """Measurements m of one environment in each step; without sampling error if not given."""
    noise_variance: float = 0.0
    """Variance of the label noise; needs a batch size."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""

    def __post_init__(self) -> None:
        # The same numbers are allowed as in a simulation.
        Settings(
            heterogeneity=self.heterogeneity,
            bias=self.bias,
            step_size=self.step_size,
            steps=self.steps,
            init_scale=self.init_scale,
            dimension=self.dimension,
            noise_variance=self.noise_variance,
        )


def execute(arguments: WindowArguments) -> int:
    """Diagnose and print."""
    from holdfast.cli import terminal
    from holdfast.theory.diagnosis import diagnose, plain
    from holdfast.theory.window import threshold_heterogeneity

    law = LAWS[arguments.environments].load()
    diagnosis = diagnose(
        law(arguments.bias, arguments.heterogeneity),
        step_size=arguments.step_size,
        steps=arguments.steps,
        init_scale=arguments.init_scale,
        confidence=arguments.confidence,
        tolerance=arguments.tolerance,
        dimension=arguments.dimension,
        batch_size=arguments.batch_size,
        noise_variance=arguments.noise_variance,
    )
    threshold = threshold_heterogeneity(law, arguments.bias, arguments.step_size)
    if arguments.format == "json":
        print(json.dumps({**diagnosis.asdict(), "threshold_heterogeneity": plain(threshold)}, allow_nan=False))
    else:
        terminal.show_diagnosis(diagnosis, {"heterogeneity needed at this step size": threshold})
    return 0
