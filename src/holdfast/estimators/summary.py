"""The printed summary of a fitted table: coefficients with intervals, effects over environments, and what to mind."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import t

from holdfast.core.progress import counted
from holdfast.estimators.advice import doubtful_sentences, listed
from holdfast.estimators.description import TableFindings
from holdfast.estimators.printed_summary import WIDTH, PrintedSummary

CONFIDENCE = 0.95
# What a narrow table can do without, in this order.
LEAST_NEEDED = (["[0.025", "0.975]"], ["effect"], ["std err"])
# A coefficient is outside of the range of the effects if it is this many standard errors from its nearer end.
CLEARLY_OUTSIDE = 2.0
# Differences that are more probable than this are no differences.
PLAUSIBLE = 0.05
NAMED = 5  # features named in a note; more are counted
# heading -> column
COLUMNS = {
    "coef": "coefficient",
    "std err": "standard_error",
    "[0.025": "low",
    "0.975]": "high",
    "effect": "effect",
    "between": "between",
    "I²": "i_squared",
    "lowest": "lowest_effect",
    "highest": "highest_effect",
    "verdict": "verdict",
}

VERDICTS = {
    "same": "Its effect is the same in all environments, as far as these rows can tell.",
    "one environment only": "Only one environment measures its effect, so it may not hold elsewhere.",
    "cannot be compared": "No environment measures its effect by itself, so effects cannot be compared.",
    "varies": "With it, effects or levels differ between environments by more than sampling error.",
    "not needed": "Next to the selected features it adds nothing beyond sampling error.",
}
"""Verdict -> what it means. What matters most comes first; features are listed in this order."""


def verdicts(stability: pd.DataFrame) -> list[str]:
    """What is said about each feature in a few words.

    A selected feature whose effect a single environment measures is not known to have the same effect in another, and
    one whose effect no environment measures cannot be compared at all. A curve, without any numbers, is not judged by
    them.

    Args:
        stability: as `describe_effects` in `holdfast.estimators.effects` makes it.

    Example:
        >>> measured = {"effect": 1.0, "between": [0.1, float("nan"), 2.0, 0.0], "varies": [False, False, True, False]}
        >>> verdicts(pd.DataFrame(measured | {"coefficient": 1.0, "selected": [True, True, False, False]}))
        ['same', 'one environment only', 'varies', 'not needed']
    """
    once = stability["between"].isna() & stability["effect"].notna()
    used = stability["selected"] | (stability["coefficient"].fillna(0.0) != 0)
    never = used & stability["effect"].isna() & stability["coefficient"].notna()
    selected = stability["selected"]
    cases = [selected & once, never & ~stability["varies"], selected, stability["varies"]]
    return np.select(cases, ["one environment only", "cannot be compared", "same", "varies"], "not needed").tolist()


@dataclass(frozen=True, repr=False)
class TableSummary:
    """A fit to a table, printed as a `PrintedSummary` (`str`, `print` or HTML) and as a data frame (`table`).

    Attributes:
        stability: as `describe_effects` in `holdfast.estimators.effects` makes it.
        task: regression or classification.
        rows, environments: their numbers.
        explained, explained_by_all: the share of the response that the fit and that all features explain.
        pooling: a, from 0 (the selected features alone) to 1 (all features).
        level: "common": one intercept; "environment": one for each environment.
        response: the name of what is predicted.
        alone: whether an effect is that of a feature by itself, as differences between class means give it.
        of_class: of more than two classes, the class that the row of each feature is about.
        second_class: of two classes, the one whose log-odds are meant.
        curves: columns whose effect is a curve, which has no single coefficient.

    Example:
        >>> from holdfast.estimators.effects import OwnEffects, describe_effects
        >>> own, one = OwnEffects(np.array([[1.9], [2.1]]), np.full((2, 1), 0.2), np.full((2, 1), 30.0)), np.ones(1)
        >>> same = {"selected": one > 0, "varies": one < 0, "names": ["light"], "labels": ["north", "south"]}
        >>> stability = describe_effects(own, 2 * one, 0.1 * one, **same).stability
        >>> summary = TableSummary(stability, "regression", 100, 3, 0.8, 0.8, response="yield")
        >>> print(summary.headline.split(".")[0])
        Regression of yield: 100 rows, 3 environments
        >>> summary.table[["low", "high"]].round(2).loc["light"].tolist(), summary.table["verdict"].tolist()
        ([1.8, 2.2], ['same'])
        >>> summary.notes[1].split(";")[0]
        'Intervals cover new rows from these environments'
    """

    stability: pd.DataFrame
    task: Literal["regression", "classification"]
    rows: int
    environments: int
    explained: float
    explained_by_all: float
    pooling: float = 0.0
    level: Literal["common", "environment"] = "common"
    response: str = "y"
    alone: bool = False
    of_class: tuple = ()
    curves: tuple[str, ...] = ()
    second_class: Any = None

    @classmethod
    def of(cls, findings: TableFindings) -> "TableSummary":
        """The summary of a fit."""
        table = findings.table
        return cls(
            findings.stability,
            table.task,
            round(float(findings.counts.sum())),
            len(table.labels),
            findings.explained_by_fit,
            findings.explained_by_all,
            findings.pooling.weight,
            table.level,
            table.response,
            table.compared != "effect",
            findings.of_class,
            findings.curves,
            table.second_class,
        )

    @property
    def table(self) -> pd.DataFrame:
        """The stability table with 95 % intervals of coefficients and verdicts, features of the same effect first."""
        frame = self.stability.copy()
        fitted = int((frame["coefficient"] != 0).sum()) + (self.environments if self.level == "environment" else 1)
        half = t.isf((1 - CONFIDENCE) / 2, max(self.rows - fitted, 1)) * frame["standard_error"]
        frame.insert(2, "low", frame["coefficient"] - half)
        frame.insert(3, "high", frame["coefficient"] + half)
        # a coefficient that is left out is exactly zero, not zero with an error of zero
        frame.loc[frame["coefficient"] == 0, ["standard_error", "low", "high"]] = np.nan
        frame["verdict"] = verdicts(frame)
        order = frame["verdict"].map(list(VERDICTS).index)
        return frame.iloc[np.argsort(order.to_numpy(), kind="stable")]

    @property
    def notes(self) -> list[str]:
        """What to mind, in sentences."""
        if self.environments == 1:
            return ["There is only one environment: nothing is known about how effects differ elsewhere."]
        return [self.legend, *self._about_coefficients(), *self._outside(), *self._disagreements()]

    @property
    def headline(self) -> str:
        """What was fitted to how much, and what that explains."""
        selected = f"{self.stability['selected'].sum()} of {counted(len(self.stability), 'feature')}"
        return (
            f"{self.task.capitalize()} of {self.response}: {counted(self.rows, 'row')}, "
            f"{counted(self.environments, 'environment')}. Same effect in all environments: {selected}. "
            f"Explained: {self.explained:.1%}, by all features {self.explained_by_all:.1%}. "
            f"Pooling weight: {self.pooling:.2f}."
        )

    @property
    def printed(self) -> PrintedSummary:
        """Headline, cells and notes."""
        table = self.table
        cells = pd.DataFrame({head: [cell_text(name, each) for each in table[name]] for head, name in COLUMNS.items()})
        if self.of_class:  # of more than two, the one that the row is about
            classes = dict(zip(self.stability.index, map(str, self.of_class), strict=True))
            cells.insert(0, "class", [classes[name] for name in table.index])
        return PrintedSummary(self.headline, cells.set_axis(table.index), self.notes, LEAST_NEEDED)

    def text(self, width: int = WIDTH) -> str:
        """The summary in lines of at most this width."""
        return self.printed.text(width)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.printed._repr_html_()

    @property
    def units(self) -> dict[str, str]:
        """Feature -> what its effect is measured in: the response, or the log-odds of a class."""
        names = list(self.stability.index)
        if self.of_class:
            return {name: f"log-odds of {label}" for name, label in zip(names, self.of_class, strict=True)}
        if self.task == "regression":
            return dict.fromkeys(names, self.response)
        second = "" if self.second_class is None else f" = {self.second_class}"
        return dict.fromkeys(names, f"log-odds of {self.response}{second}")

    @property
    def legend(self) -> str:
        """What the effects in the table are, and why a coefficient may differ from them."""
        what = (
            "The table shows its mean over environments, the standard deviation between them beyond sampling error, "
            "its share I² of the variation, and the lowest and highest value over the environments that measure it "
            "well."
        )
        if self.alone:
            against = "of a class against the mean of all classes " if self.of_class else ""
            return (
                f"effect: the log-odds {against}that a feature by itself would have in one environment, from the "
                "difference between the means of the classes. coef belongs to the feature next to the others in the "
                "fit: correlated features share what they say, so it may lie far outside the range of the effects. "
                f"{what}"
            )
        unit = "log-odds" if self.task == "classification" else f"units of {self.response}"
        classes = (
            " Effects compare a class with all other rows, coefficients with the mean of all classes, so these may lie "
            "outside the range of the effects."
        )
        return (
            f"effect: the coefficient in one environment alone, with its own intercept, in {unit}; the selected "
            "features are fitted together, any other feature next to them."
            f"{classes if self.of_class else ''} {what}"
        )

    def _about_coefficients(self) -> Iterator[str]:
        if self.curves:
            yield (
                f"The effect of {listed(self.curves, most=NAMED)} is a curve, which has no single coefficient: "
                "`plot_effects` draws it."
            )
        if self.of_class:
            names = pd.Series(self.stability.index).map(str).groupby([str(label) for label in self.of_class])
            about = "; ".join(f"{label} for {found}" for label, found in names.agg(", ".join).items())
            yield (
                f"Of more than two classes, each row shows the one on which the effects range widest: {about}. "
                "Coefficients of a class are measured from their mean over all classes."
            )
        if not (self.stability["coefficient"] != 0).any():
            return
        if self.alone:
            yield (
                "Intervals cover new rows from these environments, for features that are normal with one covariance "
                "within classes. They treat the selected features as given, although the same rows selected them."
            )
            return
        yield (
            "Intervals cover new rows from these environments; error variances may differ between them. A new "
            "environment differs by `between` in addition. Intervals treat the selected features as given, although "
            "the same rows selected them, so coefficients near zero look larger than they are. In Python, "
            "`holdfast.estimators.split_intervals` selects on one half of the rows and computes intervals of the "
            "features with the same effect from the other."
        )
        if 0 < self.pooling < 1:
            yield (
                f"Coefficients are {1 - self.pooling:.2f} times those of the features with the same effect plus "
                f"{self.pooling:.2f} times those of all features; intervals treat this weight as given."
            )

    def _outside(self) -> Iterator[str]:
        if self.alone or self.of_class:
            return  # the legend says why
        frame, used = self.stability, self.stability["coefficient"]
        margin = CLEARLY_OUTSIDE * np.hypot(frame["standard_error"], frame["effect_error"])
        below, above = used < frame["lowest_effect"] - margin, used > frame["highest_effect"] + margin
        outside = frame[(used != 0) & (below | above)]
        if outside.empty:
            return
        named = [
            f"{row.Index} ({row.coefficient:.3g}; effects from {row.lowest_effect:.3g} to {row.highest_effect:.3g})"
            for row in outside.itertuples()
        ]
        reason = (
            "part of each coefficient comes from the fit of all features, while effects are those next to the features "
            "with the same effect, or "
            if self.pooling > 0
            else ""
        ) + (
            "correlations between features differ between environments, and a fit of several features to all rows need "
            "not lie between the fits to single environments"
            if self.level == "environment"
            else "the fit to all rows mixes the relation within environments with the one between their means "
            "(Simpson's paradox)"
        )
        if self.level == "common" and self.task == "regression":
            reason += '; level="environment" avoids that'
        yield f"Coefficients outside the range of their effects: {listed(named, most=NAMED)}. Why: {reason}."

    def _disagreements(self) -> Iterator[str]:
        """Where the verdict and the test of the single effect say different things, and why."""
        frame = self.stability
        level = frame["varies"] & ~frame["selected"] & (frame["significance"] > PLAUSIBLE)
        if level.any():
            yield (
                "Varying although the effect within environments is the same: "
                f"{listed(frame.index[level], most=NAMED)}. The level of the response, or the effect of another "
                "feature, differs with such a feature."
            )
        # differences between class means, which are compared alone, have no intercept in them
        yield from doubtful_sentences(frame, self.task, "environment" if self.alone else self.level)
        nowhere = frame["effect"].isna() & ~frame.index.isin(self.curves)
        if nowhere.any():
            yield (
                "No environment identifies the effect, for instance because the feature is constant in each or follows "
                f"from the selected ones: {listed(frame.index[nowhere], most=NAMED)}."
            )


def cell_text(column: str, value: Any) -> str:
    """A number of the table as text; "-" where there is none.

    Example:
        >>> cell_text("i_squared", 0.25), cell_text("low", 1.23456), cell_text("low", float("nan"))
        ('25%', '1.23', '-')
    """
    if column == "verdict":
        return str(value)
    return "-" if np.isnan(value) else f"{value:.0%}" if column == "i_squared" else f"{value:.3g}"
