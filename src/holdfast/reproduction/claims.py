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
        allowed: the range that the number lies in if the claim holds.
        recorded: the verdict this project stands by.
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

    @property
    def verdict(self) -> Verdict:
        """Holding if the whole interval is allowed, not holding if none of it is, otherwise undecided.

        A claim that holds does so in the way that was recorded; one whose constants are not met stays outside.
        """
        low, high = self.allowed
        if self.recorded is Verdict.OUTSIDE_CONSTANTS:
            return self.recorded
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
        """Recorded as holding, and undecided."""
        return self.recorded in HOLDING and self.verdict is Verdict.UNDECIDED

    def asdict(self) -> dict[str, Any]:
        """As plain values; an open end of the allowed range is null."""
        return {
            "id": self.id,
            "source": self.source,
            "statement": self.statement,
            "settings": self.settings,
            "measured": {name: _finite(number) for name, number in self.measured._asdict().items()},
            "allowed": [_finite(end) for end in self.allowed],
            "verdict": self.verdict,
            "recorded": self.recorded,
            "broken": self.broken,
            "why": self.why,
        }


def _finite(number: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return number if math.isfinite(number) else None
