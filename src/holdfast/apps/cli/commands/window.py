"""`holdfast window`."""

from dataclasses import dataclass
from typing import Literal

from holdfast.apps.cli.command import answer
from holdfast.sensing.settings import LAWS, LawName, Settings

RUN = ("step_size", "steps", "init_scale")


@dataclass(frozen=True)
class WindowArguments:
    """Say at which step sizes heterogeneity washes the spurious signal out, and what to expect at one of them.

    Examples:

        holdfast window --heterogeneity 6 --bias 1
        holdfast window --heterogeneity 6 --bias 1 --batch-size 400
        holdfast window --heterogeneity 3 --bias 1 --format json
        holdfast window --strengths -6 -1 3 8
    """

    heterogeneity: float | None = None
    """Spread M of the spurious strengths around the bias; needed unless strengths are given."""
    bias: float | None = None
    """Mean s of the spurious strengths; needed unless strengths are given."""
    strengths: tuple[float, ...] = ()
    """Spurious strength xi of each of several equally likely environments, instead of heterogeneity and bias."""
    step_size: float = 0.05
    """Step size eta at which the exponent is computed."""
    steps: int = 200
    """Number of steps T."""
    init_scale: float = 1e-3
    """Scale alpha of the starting point."""
    environments: LawName = "two-point"
    """Law of the strengths around the bias, one of `holdfast.sensing.settings.LAWS`."""
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
    """What to print: readable tables, or JSON."""

    def __post_init__(self) -> None:
        for name, value in (("heterogeneity", self.heterogeneity), ("bias", self.bias)):
            if (value is None) is (not self.strengths):
                wanted = "be left out where strengths are" if self.strengths else "be given where no strengths are"
                raise ValueError(f"{name} must {wanted}, got {'none' if value is None else value}")
        # The same numbers are allowed as in a simulation.
        shared = {name: getattr(self, name) for name in (*RUN, "dimension", "noise_variance")}
        Settings(heterogeneity=self.heterogeneity or 0.0, bias=self.bias or 0.0, **shared)


def execute(arguments: WindowArguments) -> int:
    """Diagnose and print."""
    import numpy as np

    from holdfast.apps.cli.terminal.answers import show_diagnosis
    from holdfast.sensing.environments import Environments, table
    from holdfast.theory.diagnosis import diagnose, plain
    from holdfast.theory.window import threshold_heterogeneity

    bias, heterogeneity, threshold = arguments.bias, arguments.heterogeneity, None
    if bias is None or heterogeneity is None:
        environments: Environments = table(np.array(arguments.strengths))
    else:
        law = LAWS[arguments.environments].load()
        environments = law(bias, heterogeneity)
        threshold = threshold_heterogeneity(law, bias, arguments.step_size)
    names = (*RUN, "confidence", "tolerance", "dimension", "batch_size", "noise_variance")
    diagnosis = diagnose(environments, **{name: getattr(arguments, name) for name in names})
    more = {} if threshold is None else {"threshold_heterogeneity": plain(threshold)}
    answer(arguments.format, diagnosis.asdict() | more, lambda: show_diagnosis(diagnosis, threshold))
    return 0
