"""Claims of the papers with what was measured, the verdict that follows, and which statements they test."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.core.statistics import Estimate

# What separates the statements in the source of a claim.
SEPARATOR = "; "


class Position(StrEnum):
    """Where the interval of the measured number lies: inside the allowed range, outside it, or across one of its ends.

    Example:
        >>> Position("inside") in DECIDED
        True
    """

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


DECIDED = (Position.INSIDE, Position.OUTSIDE)


class Verdict(StrEnum):
    """What the measurement says of a claim: the position of its number, under the conditions that the settings meet.

    Example:
        >>> Verdict("holds").name
        'HOLDS'
    """

    HOLDS = "holds"
    HOLDS_WITH_OUR_CHOICE = "holds with our choice"
    SEEN = "seen, outside the theorem's constants"
    DOES_NOT_HOLD = "does not hold"
    DOES_NOT_HOLD_WITH_OUR_CHOICE = "does not hold with our choice"
    NOT_SEEN = "not seen, outside the theorem's constants"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


# The verdict of each decided position: as stated, with our choice of open values, outside the statement's conditions.
DECISIONS = {
    Position.INSIDE: (Verdict.HOLDS, Verdict.HOLDS_WITH_OUR_CHOICE, Verdict.SEEN),
    Position.OUTSIDE: (Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD_WITH_OUR_CHOICE, Verdict.NOT_SEEN),
}
# What colours a verdict, on the page and in the terminal, which always write the word as well.
TONES = {
    **dict(zip(DECISIONS[Position.INSIDE], ("good", "good", "aside"), strict=True)),
    **dict(zip(DECISIONS[Position.OUTSIDE], ("bad", "bad", "aside"), strict=True)),
    Verdict.UNDECIDED: "open",
    Verdict.NOT_MEASURED: "open",
}


@dataclass(frozen=True)
class Conditions:
    """The conditions of a statement that the settings miss, and the values that it leaves open.

    Attributes:
        missed: conditions of the statement that the settings do not meet, in words with their numbers.
        chosen: values that the source leaves open and we set.

    Example:
        >>> Conditions(missed=("alpha is not below d^-2",)).met
        False
    """

    missed: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the settings meet all conditions of the statement."""
        return not self.missed


AS_STATED = Conditions()
"""Every condition is met, and nothing was left open."""
OUR_SETTINGS = Conditions(chosen=("all settings",))
"""The source names no settings."""


@dataclass(frozen=True)
class Claim:
    """A claim, tested.

    Attributes:
        id: short and stable.
        source: the statements that it tests, separated by "; ": "Theorem 2; eq. 10".
        statement: in our words.
        settings: under which it was tested.
        measured: the number that decides, with its interval.
        allowed: the range that the number lies in if the claim holds, from low to high; an open end is infinite.
        conditions: those of the statement that the settings miss, and what we chose.
        why: one line.
        expected: the position its author stands by. A full run fails if another one is measured.

    Example, the whole interval is allowed:
        >>> claim = Claim(
        ...     id="washed-out",
        ...     source="figure 3",
        ...     statement="The spurious signal is washed out.",
        ...     settings="M = 6",
        ...     measured=Estimate(0.01, low=0.005, high=0.03),
        ...     allowed=(-math.inf, 0.05),
        ...     conditions=Conditions(chosen=("M",)),
        ...     why="the exponent is negative",
        ... )
        >>> claim.position.value, claim.verdict.value, claim.broken
        ('inside', 'holds with our choice', False)
    """

    id: str
    source: str
    statement: str
    settings: str
    measured: Estimate
    allowed: tuple[float, float]
    conditions: Conditions
    why: str
    expected: Position = Position.INSIDE

    def __post_init__(self) -> None:
        low, high = self.allowed
        if not low <= high:
            raise ValueError(f"allowed must be a range from low to high, got ({low}, {high}) in the claim {self.id!r}")
        if math.isinf(low) and math.isinf(high):
            raise ValueError(f"allowed must leave something out, got all numbers in the claim {self.id!r}")

    @property
    def position(self) -> Position:
        """Where the interval of the number lies; a value that is NaN was not measured."""
        low, high = self.allowed
        if math.isnan(self.measured.value):
            return Position.NOT_MEASURED
        if low <= self.measured.low and self.measured.high <= high:
            return Position.INSIDE
        if self.measured.high < low or self.measured.low > high:
            return Position.OUTSIDE
        return Position.UNDECIDED

    @property
    def verdict(self) -> Verdict:
        """The position in words, under the conditions of the statement."""
        if self.position not in DECIDED:
            return Verdict(self.position.value)
        as_stated, our_choice, outside = DECISIONS[self.position]
        if not self.conditions.met:
            return outside
        return our_choice if self.conditions.chosen else as_stated

    @property
    def broken(self) -> bool:
        """Decided, but not as expected."""
        return self.position in DECIDED and self.expected in DECIDED and self.position is not self.expected

    @property
    def undecided(self) -> bool:
        """Expected to be decided, but not decided."""
        return self.position not in DECIDED and self.expected in DECIDED

    def asdict(self) -> dict[str, Any]:
        """As plain values; an open end of the allowed range is null."""
        return vars(self) | {
            "measured": {name: _finite(number) for name, number in self.measured._asdict().items()},
            "allowed": [_finite(end) for end in self.allowed],
            "conditions": vars(self.conditions) | {"met": self.conditions.met},
            "position": self.position,
            "verdict": self.verdict,
            "broken": self.broken,
        }


def _finite(number: float) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return number if math.isfinite(number) else None


class Statement(NamedTuple):
    """Something that a source states.

    Attributes:
        says: in our words.
        untested: why no claim tests it; empty if claims do.
        origin: where it is stated, such as a paper; the report counts verdicts by it.

    Example:
        >>> Statement("The error falls like m^(-1/2).").untested
        ''
    """

    says: str
    untested: str = ""
    origin: str = ""


class Covered(NamedTuple):
    """A statement with the claims that test it.

    Attributes:
        name: of the statement, as in the sources of claims.
        statement: what it says.
        claims: those whose source names it.
    """

    name: str
    statement: Statement
    claims: tuple[Claim, ...]


def coverage(statements: Mapping[str, Statement], claims: Iterable[Claim]) -> list[Covered]:
    """Each statement with the claims that test it, in order; sources of claims that are not listed do not count.

    Example:
        >>> coverage({"lemma 16": Statement("Covering numbers.", untested="textbook")}, [])[0].statement.untested
        'textbook'
    """
    found: dict[str, list[Claim]] = {name: [] for name in statements}
    for claim in claims:
        for name in claim.source.split(SEPARATOR):
            if name in found:
                found[name].append(claim)
    return [Covered(name, statement, tuple(found[name])) for name, statement in statements.items()]


def counts_by_origin(covered: Iterable[Covered]) -> dict[str, Counter[Verdict]]:
    """How many claims have each verdict, by the origin of the first statement that they name.

    Example:
        >>> counts_by_origin(coverage({"lemma 16": Statement("Covering numbers.", origin="a paper")}, []))
        {'a paper': Counter()}
    """
    counts: dict[str, Counter[Verdict]] = {}
    for each in covered:
        first = (claim for claim in each.claims if claim.source.split(SEPARATOR)[0] == each.name)
        counts.setdefault(each.statement.origin, Counter()).update(claim.verdict for claim in first)
    return counts
