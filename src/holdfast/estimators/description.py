"""What a table is, in which coordinates, and what is known once it is fitted: advice and summary are made of that.

Washing out acts on coordinates, so it depends on them. If the table holds a mixture x = Q^T (invariant, spurious), the
coordinates have to be found first, from the features alone. Two systems are tried:

- `principal`: the principal components of all rows;
- `joint`: coordinates in which the features are as uncorrelated as possible in *every* environment. After whitening,
  the covariances of the environments are brought as close to diagonal form as one rotation can. If what moves between
  environments moves on its own, it has coordinates of its own.

The system whose invariant coordinates predict best is used; see `holdfast.estimators.linear`.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from holdfast.core.linear_algebra import joint_diagonalisation
from holdfast.core.moments import Scaling, StandardizedMoments
from holdfast.estimators.effects import EffectTables
from holdfast.estimators.pooling import LinearModel, Pooling

# Components with a smaller share of the variance are rounding errors, not features.
SMALLEST_VARIANCE = 1e-10


class Coordinates(NamedTuple):
    """A coordinate system of the standardised features.

    Attributes:
        name: features, principal or joint.
        directions: (features, coordinates), z^T directions are the coordinates.
    """

    name: str
    directions: np.ndarray


def coordinate_systems(second: np.ndarray, counts: np.ndarray, rotation: bool) -> list[Coordinates]:
    """The systems to try: the features themselves and, if they may be rotated, the two others.

    Args:
        second: (environments, features, features), second moments.
        counts: (environments,), rows.
        rotation: whether the features may be a rotation of what is invariant and what is not.
    """
    systems = [Coordinates("features", np.eye(second.shape[1]))]
    if rotation:
        weights = counts / counts.sum()
        systems.append(Coordinates("principal", principal_directions(second, weights)))
        systems.append(Coordinates("joint", joint_directions(second, weights)))
    return systems


def principal_directions(second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(features, components): whitened principal components, those without variance left out.

    Args:
        second: (environments, features, features), second moments.
        weights: (environments,), shares of the rows.
    """
    values, vectors = np.linalg.eigh(np.tensordot(weights, second, 1))
    present = values > SMALLEST_VARIANCE * max(values.max(), 1e-300)
    return vectors[:, present] / np.sqrt(values[present])


def joint_directions(second: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(features, components): the rotation of the whitened components that makes all environments nearly uncorrelated.

    Example, two environments whose covariances share the axes (1, 1) and (1, -1):
        >>> axes = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
        >>> second = np.stack([axes.T @ np.diag(variances) @ axes for variances in ([1.0, 3.0], [2.0, 1.0])])
        >>> directions = joint_directions(second, np.array([0.5, 0.5]))
        >>> bool(np.allclose(np.abs(directions[0]), np.abs(directions[1])))
        True
    """
    white = principal_directions(second, weights)
    return white @ joint_diagonalisation(white.T @ second @ white)


def rotated(moments: StandardizedMoments, directions: np.ndarray) -> StandardizedMoments:
    """The moments of the coordinates z^T directions."""
    components = directions.shape[1]
    return moments._replace(
        second=directions.T @ moments.second @ directions,
        cross=moments.cross @ directions,
        means=np.column_stack([moments.means[:, :-1] @ directions, moments.means[:, -1]]),
        constant=np.zeros(components, bool),
    )


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
        varies: (features,), which effects the search found to vary.
        declared: (features,), which are known to come before the response, or after it.
        dropped: (features,), which were left out because they come after the response and may change.
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
    varies: np.ndarray
    declared: np.ndarray
    dropped: np.ndarray
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
    def relations(self) -> pd.DataFrame:
        """The table of features, as in `HeteroRegressor`."""
        return self.tables.relations

    @property
    def selected(self) -> np.ndarray:
        """(features,), which of them are invariant."""
        return self.relations["selected"].to_numpy()

    @property
    def comparable(self) -> bool:
        """Whether several environments measure anything; a curve has no numbers of its own."""
        return bool((self.relations["significance"].notna() | self.relations["coefficient"].isna()).any())
