"""Which statements of the papers the claims test, and which are left untested, with the reason."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.reproduction.claims import Claim

# What separates the statements in the source of a claim.
SEPARATOR = "; "


class Statement(NamedTuple):
    """Something that a source states.

    Attributes:
        says: in our words.
        untested: why no claim tests it; empty if claims do.

    Example:
        >>> Statement("The error falls like m^(-1/2).").untested
        ''
    """

    says: str
    untested: str = ""


class Covered(NamedTuple):
    """A statement with the claims that test it.

    Attributes:
        name: of the statement, as in the sources of claims.
        says: in our words.
        claims: those whose source names it.
        untested: why there are none.
    """

    name: str
    says: str
    claims: tuple[Claim, ...]
    untested: str


def coverage(statements: Mapping[str, Statement], claims: Iterable[Claim]) -> list[Covered]:
    """Each statement with its claims, in the order of the statements; sources that are not listed are left out.

    Example:
        >>> coverage({"lemma 16": Statement("Covering numbers.", untested="textbook")}, [])[0].untested
        'textbook'
    """
    found: dict[str, list[Claim]] = {name: [] for name in statements}
    for claim in claims:
        for name in claim.source.split(SEPARATOR):
            if name in found:
                found[name].append(claim)
    return [Covered(name, each.says, tuple(found[name]), each.untested) for name, each in statements.items()]
