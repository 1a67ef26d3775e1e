"""Claims of the papers, each with what was measured and a verdict."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from holdfast.statistics import Estimate


class Verdict(StrEnum):
    """What the measurement says of a claim."""

    HOLDS = "holds"
    HOLDS_WITH_OUR_CHOICE = "holds with our choice"
    DOES_NOT_HOLD = "does not hold"
    OUTSIDE_CONSTANTS = "outside the theorem's constants"


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
        verdict: what that number says.
        recorded: the verdict this project stands by; a claim recorded as holding must hold.
        why: one line.
    """

    id: str
    source: str
    statement: str
    settings: str
    measured: Estimate
    verdict: Verdict
    recorded: Verdict
    why: str

    @property
    def broken(self) -> bool:
        """Recorded as holding, and does not."""
        return self.recorded in HOLDING and self.verdict not in HOLDING

    def asdict(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "measured": self.measured._asdict(), "broken": self.broken}


def judged(holds: bool, recorded: Verdict) -> Verdict:
    """The recorded verdict if the test passes, the opposite if not."""
    if recorded in HOLDING:
        return recorded if holds else Verdict.DOES_NOT_HOLD
    return Verdict.HOLDS if holds else recorded
