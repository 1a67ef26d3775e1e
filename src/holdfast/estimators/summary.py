"""The printed summary of a fitted table: effects with intervals, both directions, danger, and what to mind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from holdfast.core.progress import counted
from holdfast.estimators.advice import listed
from holdfast.estimators.description import TableFindings
from holdfast.estimators.printed_summary import WIDTH, PrintedSummary
from holdfast.estimators.relations import DANGEROUS, FAR, HARMLESS

# What a narrow table can do without, in this order.
LEAST_NEEDED = (["I²"], ["reverse", "±"], ["between"], ["coef"])
# heading -> column
COLUMNS = {
    "coef": "coefficient",
    "effect": "effect",
    "[0.025": "low",
    "0.975]": "high",
    "between": "between",
    "I²": "i_squared",
    "reverse": "reverse",
    "±": "reverse_between",
    "danger": "danger",
    "verdict": "verdict",
}
LEGEND = {
    "coef": "coef: the coefficient of the prediction",
    "effect": "effect: its mean over environments given {company}, with a 95 % interval for the mean of all such "
    "environments",
    "between": "between: its standard deviation between environments, without sampling error",
    "I²": "I²: the share of its variation that sampling error does not explain",
    "reverse": "reverse: the slope of the feature on the response given the others, ± its standard deviation between "
    "environments",
    "danger": f"danger: growth of the squared error of a fit of all features if the relation moves by {FAR:g} standard "
    "deviations between environments",
}
ALONE = {
    "effect": "effect: the log-odds that a feature by itself would have in one environment, from the difference "
    "between the means of the classes: its mean over environments with its 95 % interval",
    "danger": f"danger: the share of this difference that a move by {FAR:g} of its standard deviations would take",
}
VERDICTS = {
    "dangerous": f"Its relation differs between environments, and a move by {FAR:g} standard deviations costs more "
    f"than {DANGEROUS:.0%} of the error.",
    "varies": "Its effect differs between environments by more than sampling error.",
    "cannot be told": "These rows neither show that it differs nor that it does not.",
    "holds": f"With 95 % confidence, a move by {FAR:g} standard deviations costs less than {HARMLESS:.0%} of the "
    "error.",
}
"""Verdict -> what it means, the worst first."""


@dataclass(frozen=True, repr=False)
class TableSummary:
    """A fit to a table, as text in a fixed width (`str` or `print`), as HTML and as a data frame (`table`).

    Attributes:
        findings: about the table.
        advice: at most three sentences.
        notes: what to mind besides.

    Example:
        >>> from holdfast.estimators import HeteroRegressor
        >>> random = np.random.default_rng(0)
        >>> x, environments = random.standard_normal((16_000, 1)), np.arange(16_000) % 8
        >>> y = x[:, 0] + random.standard_normal(16_000)
        >>> summary = HeteroRegressor().fit(x, y, environments=environments).summary()
        >>> print(summary.headline.split(".")[0])
        Regression of y: 16,000 rows, 8 environments
        >>> summary.table["verdict"].to_dict()
        {'x0': 'holds'}
    """

    findings: TableFindings
    advice: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def table(self) -> pd.DataFrame:
        """The relations, the most dangerous feature first."""
        return self.findings.relations.sort_values("rank", kind="stable")

    @property
    def headline(self) -> str:
        """What was fitted to how much, and what that explains."""
        found = self.findings
        count = found.relations["verdict"].value_counts()
        others = "other " if found.dropped.any() else ""
        verdicts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if verdict in count)
        return (
            f"{found.table.task.capitalize()} of {found.table.response}: {counted(round(found.counts.sum()), 'row')}, "
            f"{counted(len(found.counts), 'environment')}. {counted(len(found.relations), 'feature')}: {verdicts}. "
            f"Explained: {found.explained_by_fit:.1%}, by all {others}features {found.explained_by_all:.1%}."
        )

    @property
    def units(self) -> dict[str, str]:
        """Feature -> what its effect is measured in: the response, or the log-odds of a class."""
        found, names = self.findings, list(self.findings.relations.index)
        response, second = found.table.response, found.table.second_class
        if found.of_class:
            return {name: f"log-odds of {label}" for name, label in zip(names, found.of_class, strict=True)}
        if found.table.task == "regression":
            return dict.fromkeys(names, response)
        return dict.fromkeys(names, f"log-odds of {response}" + ("" if second is None else f" = {second}"))

    @property
    def printed(self) -> PrintedSummary:
        """As it is printed."""
        found, table = self.findings, self.table
        alone = found.table.compared != "effect"
        cells = pd.DataFrame({head: [cell_text(name, each) for each in table[name]] for head, name in COLUMNS.items()})
        cells.index = table.index
        if alone:
            cells = cells.drop(columns=["reverse", "±"])
        if found.of_class:  # of more than two, the one that the row is about
            cells.insert(0, "class", pd.Series(list(map(str, found.of_class)), found.relations.index)[table.index])
        others = listed(found.relations.index, ~found.relations["given"].to_numpy(bool))
        company = f"the other features but {others}" if others else "the other features"
        legend = {head: words.format(company=company) for head, words in (LEGEND | (ALONE if alone else {})).items()}
        curve = "is a curve: it has no coefficient, its effect is a multiple of the curve, and `plot_effects` draws it."
        notes = [*([f"The effect of {listed(found.curves)} {curve}"] if found.curves else []), *self.notes]
        return PrintedSummary(self.headline, cells, notes, self.advice, legend, LEAST_NEEDED)

    def text(self, width: int = WIDTH) -> str:
        """The summary in lines of at most this width: a narrow table leaves out the columns that are needed least."""
        return self.printed.text(width)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.printed._repr_html_()


def cell_text(column: str, value: Any) -> str:
    """A number of the table as text; "-" where there is none.

    Example:
        >>> cell_text("i_squared", 0.25), cell_text("low", 1.23456), cell_text("low", float("nan"))
        ('25%', '1.23', '-')
    """
    if column == "verdict":
        return str(value)
    return "-" if np.isnan(value) else f"{value:.0%}" if column in ("i_squared", "danger") else f"{value:.3g}"
