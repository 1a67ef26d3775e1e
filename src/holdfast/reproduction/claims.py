"""Claims of the papers, each with what was measured and a verdict that follows from it."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.core.statistics import Estimate


class Verdict(StrEnum):
    """What the measurement says of a claim.

    Example:
        >>> Verdict("holds") in HOLDING
        True
    """

    HOLDS = "holds"
    HOLDS_WITH_OUR_CHOICE = "holds with our choice"
    DOES_NOT_HOLD = "does not hold"
    OUTSIDE_CONSTANTS = "outside the theorem's constants"
    UNDECIDED = "undecided with so few seeds"
    NOT_MEASURED = "not measured"


HOLDING = (Verdict.HOLDS, Verdict.HOLDS_WITH_OUR_CHOICE)


@dataclass(frozen=True)
class Claim:
    """A claim, tested.

    Attributes:
        id: short and stable.
        source: figure, theorem or equation.
        statement: in our words.
        settings: under which it was tested.
        measured: the number that decides, with its interval.
        allowed: the range that the number lies in if the claim holds, from low to high; an open end is infinite.
        recorded: the verdict its author stands by. Recorded as holding, a claim that does not hold fails a full run.
        why: one line.

    Example, the whole interval is allowed:
        >>> claim = Claim(
        ...     id="washed-out",
        ...     source="figure 3",
        ...     statement="The spurious signal is washed out.",
        ...     settings="M = 6",
        ...     measured=Estimate(0.01, low=0.005, high=0.03),
        ...     allowed=(-math.inf, 0.05),
        ...     recorded=Verdict.HOLDS,
        ...     why="the exponent is negative",
        ... )
        >>> claim.verdict.value, claim.broken
        ('holds', False)
    """

    id: str
    source: str
    statement: str
    settings: str
    measured: Estimate
    allowed: tuple[float, float]
    recorded: Verdict
    why: str

    def __post_init__(self) -> None:
        low, high = self.allowed
        if not low <= high:
            raise ValueError(f"allowed must be a range from low to high, got ({low}, {high}) in the claim {self.id!r}")

    @property
    def verdict(self) -> Verdict:
        """Holding if the whole interval is allowed, not holding if none of it is, otherwise undecided.

        A claim that holds does so in the way that was recorded; one whose constants are not met stays outside. A value
        that is NaN was not measured.
        """
        low, high = self.allowed
        if self.recorded is Verdict.OUTSIDE_CONSTANTS:
            return self.recorded
        if math.isnan(self.measured.value):
            return Verdict.NOT_MEASURED
        if low <= self.measured.low and self.measured.high <= high:
            return self.recorded if self.recorded in HOLDING else Verdict.HOLDS
        if self.measured.high < low or self.measured.low > high:
            return Verdict.DOES_NOT_HOLD
        return Verdict.UNDECIDED

    @property
    def broken(self) -> bool:
        """Recorded as holding, and does not."""
        return self.recorded in HOLDING and self.verdict is Verdict.DOES_NOT_HOLD

    @property
    def undecided(self) -> bool:
        """Recorded as holding, and undecided or not measured."""
        return self.recorded in HOLDING and self.verdict in (Verdict.UNDECIDED, Verdict.NOT_MEASURED)

    def asdict(self) -> dict[str, Any]:
        """As plain values; an open end of the allowed range is null."""
        return vars(self) | {
            "measured": {name: _finite(number) for name, number in self.measured._asdict().items()},
            "allowed": [_finite(end) for end in self.allowed],
            "verdict": self.verdict,
            "broken": self.broken,
        }


def _finite(number: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return number if math.isfinite(number) else None
