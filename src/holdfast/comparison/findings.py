"""What a comparison says of each test, in sentences that follow from its numbers."""

from holdfast.comparison.methods import METHODS
from holdfast.comparison.public_tests import GROUPS, PUBLIC_TESTS
from holdfast.comparison.runner import Comparison
from holdfast.comparison.table import interval, number


def findings(comparison: Comparison, test: str) -> list[str]:
    """Who leads a test, and by how much our best method is behind if it is none of ours.

    All numbers are over the seeds that the compared methods share.
    """
    measure = GROUPS[PUBLIC_TESTS[test].group][0]
    leaders = comparison.leaders(test, measure)
    if not leaders:
        return []
    known = {name: float(values.mean()) for name, values in comparison.compared(test, measure).items()}
    best = leaders[0]
    others = [METHODS[name].title for name in leaders[1:]]
    among = f", not to be told from {'; '.join(others)}" if others else ""
    sentences = [f"{test}: {METHODS[best].title} leads with {number(known[best])}{among}."]
    ours = [name for name in known if METHODS[name].ours]
    if ours and not any(METHODS[name].ours for name in leaders):
        nearest = min(ours, key=lambda name: known[name])
        behind = comparison.behind(test, nearest, best, measure)
        sentences.append(f"{test}: {METHODS[nearest].title} is behind by {number(behind.value)} ({interval(behind)}).")
    return sentences
