"""Why a feature is selected or not, in words."""

from typing import Any

# Probabilities below the first are written as such; those above the second are no sign of a difference, and those
# below the third are one.
SMALLEST, PLAUSIBLE, SURELY_DIFFERENT = 0.001, 0.05, 0.01


def reason(row: Any, pooling: float) -> str:
    """One sentence about a feature of a fitted table.

    Args:
        row: of `TableSummary.table`, by the names of its columns.
        pooling: the weight of the pooled fit.

    Example:
        >>> row = {"verdict": "same", "significance": 0.4, "coefficient": 2.0}
        >>> reason(row, pooling=0.0)
        'Selected: its effect is the same in all environments, as far as these rows can tell (p = 0.4).'
    """
    words = _REASONS[row["verdict"]](row)
    if row["verdict"] in _LEFT_OUT and pooling > 0 and row["coefficient"] != 0:
        words += f" Its coefficient comes from the pooled fit alone, which has a weight of {pooling:.0%}."
    return words


def probability(value: float) -> str:
    """As people write it.

    Example:
        >>> probability(0.0000123), probability(0.25)
        ('p < 0.001', 'p = 0.25')
    """
    return f"p < {SMALLEST:g}" if value < SMALLEST else f"p = {value:.2g}"


def _same(row: Any) -> str:
    if row["significance"] < SURELY_DIFFERENT:
        return (
            "Selected by the test of all selected features together, with one intercept, although its effect within "
            f"environments differs by more than sampling error ({probability(row['significance'])}): look at its "
            "effects before you rely on it."
        )
    return (
        "Selected: its effect is the same in all environments, as far as these rows can tell "
        f"({probability(row['significance'])})."
    )


def _varies(row: Any) -> str:
    if row["significance"] > PLAUSIBLE:
        return (
            f"Left out: its own effect hardly differs ({probability(row['significance'])}), but with it the level of "
            "the response, or the effect of another feature, differs between environments."
        )
    return (
        f"Left out: its effect goes from {row['lowest_effect']:.3g} to {row['highest_effect']:.3g} between "
        f"environments, more than sampling error explains ({probability(row['significance'])})."
    )


_REASONS = {
    "same": _same,
    "varies": _varies,
    "one environment only": lambda row: (
        "Selected, but only one environment measures its effect: nobody knows whether it holds elsewhere."
    ),
    "cannot be compared": lambda row: "No environment measures its effect by itself, so effects cannot be compared.",
    "not needed": lambda row: "Left out: next to the selected features it adds nothing beyond sampling error.",
}
_LEFT_OUT = ("varies", "not needed")
