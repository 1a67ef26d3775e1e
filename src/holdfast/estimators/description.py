"""What is known about a table once it is fitted: the one form of results, of which advice and summary are made."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.moments import Scaling
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.pooling import LinearModel, Pooling
from holdfast.estimators.search.coordinates import Coordinates


class TableDescription(NamedTuple):
    """A table apart from its loss: names, labels and units.

    Attributes:
        names: of the features.
        labels: of the environments.
        scaling: means and standard deviations of the features.
        task: regression or classification.
        response: its name.
        response_location, response_scale: mean and standard deviation of the response; 0 and 1 for classes.
        level: "common": one intercept; "environment": one for each environment.
        second_class: of two classes, the one whose log-odds are fitted.
        compared: what is compared between environments.
    """

    names: Sequence[str]
    labels: Sequence[Any]
    scaling: Scaling
    task: Literal["regression", "classification"]
    response: str = "y"
    response_location: float = 0.0
    response_scale: float = 1.0
    level: Literal["common", "environment"] = "common"
    second_class: Any = None
    compared: Literal["effect", "class difference"] = "effect"


def class_table(
    names: Sequence[str], labels: Sequence[Any], scaling: Scaling, classes: Sequence[Any] | np.ndarray, response: str
) -> TableDescription:
    """The description of a table whose response is a class."""
    second = classes[1] if len(classes) == 2 else None
    return TableDescription(names, labels, scaling, "classification", response, second_class=second)


class TableFindings(NamedTuple):
    """A linear fit to a table with environments, and all that is known about it: what is said about it follows.

    Attributes:
        table: names, labels and units.
        strict: the fit of what is invariant alone, to features in standard units.
        pooled: the fit of all features.
        coordinates: the features, or directions that were found.
        tables: effects, and what they have in common.
        pooling: how much of the prediction comes from all features.
        chosen: whether that weight was chosen from the data.
        counts: (environments,), rows.
        explained: share of the response that the selected features explain.
        explained_by_all: that all features explain.
        explained_by_fit: that the prediction explains, which is between them.
        groups: for each feature, the label of those that are judged together; empty if each is judged by itself.
        levels: (environments,), mean errors, in standard deviations of the response.
        equality: probability of a variation as large as that of the selected features, if they do not vary.
        pooled_equality: that of all features.
        of_class: of more than two classes, the class that the row of each feature is about.
        curves: columns whose effect is a curve.
        first, last: sentences before and after the others.
    """

    table: TableDescription
    strict: LinearModel
    pooled: LinearModel
    coordinates: Coordinates
    tables: EffectTables
    pooling: Pooling
    chosen: bool
    counts: np.ndarray
    explained: float
    explained_by_all: float
    explained_by_fit: float
    groups: Sequence[Any] = ()
    levels: Sequence[float] | np.ndarray = ()
    equality: float = 1.0
    pooled_equality: float = 1.0
    of_class: tuple = ()
    curves: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    def in_units(self, model: LinearModel) -> LinearModel:
        """A model of features in standard units, in the units of the table."""
        coefficients, shift = self.table.scaling.undo(model.coefficients * self.table.response_scale)
        return LinearModel(coefficients, model.intercept + shift + self.table.response_location)

    @property
    def stability(self) -> pd.DataFrame:
        """The table of features, as in `HeteroRegressor`."""
        return self.tables.stability

    @property
    def selected(self) -> np.ndarray:
        """(features,), which of them are invariant."""
        return self.stability["selected"].to_numpy()

    @property
    def varies(self) -> np.ndarray:
        """(features,), which of them vary."""
        return self.stability["varies"].to_numpy()

    @property
    def comparable(self) -> bool:
        """Whether several environments measure anything; a curve has no numbers of its own."""
        return bool((self.stability["significance"].notna() | self.stability["coefficient"].isna()).any())
