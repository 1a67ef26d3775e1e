"""Which statements of the papers the claims test, and which are left untested, with the reason."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast_studies.claims import Claim, Verdict

# What separates the statements in the source of a claim.
SEPARATOR = "; "


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
