"""What others published on coloured MNIST, each number with its table and with how its settings were chosen."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("published.json")


class PublishedSource(NamedTuple):
    """A paper, and how its numbers were looked up.

    Attributes:
        paper: authors, title, year.
        arxiv: number of the preprint.
        table: in the paper.
        restarts: that a number is the mean of; None: the paper does not say.
        verified: where the numbers were read.

    Example:
        >>> published_accuracies()[0].source.arxiv
        '1907.02893'
    """

    paper: str
    arxiv: str
    table: str
    restarts: int | None
    verified: str


class PublishedAccuracy(NamedTuple):
    """A published accuracy on coloured MNIST (agreements 0.8 and 0.9, label noise 0.25, agreement 0.1 at test).

    Attributes:
        method: as the field calls it.
        test: accuracy in the test environment, in percent.
        spread: what stands behind the plus-minus sign, the standard deviation over restarts where the source says it.
        train: accuracy in the training environments, in percent; None: not looked up.
        chosen_on_test: whether the test environment decided on the settings; None: not known.
        rule: how settings were chosen, in words.
        source: where the number comes from.

    Example:
        >>> published_accuracies("Fishr")[0].rule
        "the settings that IRM's authors chose with the test environment"
    """

    method: str
    test: float
    spread: float
    train: float | None
    chosen_on_test: bool | None
    rule: str
    source: PublishedSource


def published_accuracies(method: str | None = None) -> tuple[PublishedAccuracy, ...]:
    """All published accuracies, or those of a method, the paper that proposed coloured MNIST first.

    Args:
        method: a name in the file; None: all.

    Example, what three papers report for IRM, and what was published without a look at the test environment:
        >>> [(each.source.table, each.test) for each in published_accuracies("IRM")][:2]
        [('Table 1', 66.9), ('Table 2', 65.5)]
        >>> {each.method for each in published_accuracies() if each.chosen_on_test is False}
        {'ERM'}
    """
    found = _read()
    names = list(dict.fromkeys(each.method for each in found))
    if method is not None and method not in names:
        raise ValueError(f"method must be among {', '.join(names)}, got {method!r}")
    return tuple(each for each in found if method in (None, each.method))


@cache
def _read() -> tuple[PublishedAccuracy, ...]:
    content = json.loads(FILE.read_text(encoding="utf-8"))
    sources = {name: PublishedSource(**each) for name, each in content["sources"].items()}
    return tuple(
        PublishedAccuracy(**each | {"source": sources[each["source"]], "rule": content["rules"][each["rule"]]})
        for each in content["results"]
    )
