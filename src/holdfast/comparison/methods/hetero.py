"""The estimators of this library, with all their settings chosen automatically."""

from functools import partial

from holdfast.comparison.methods.base import ComparedMethod, FittedMethod, fitted_estimator
from holdfast.datasets.splits import Dataset
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.regressor import HeteroRegressor


def _fit(rotation: bool, data: Dataset, seed: int) -> FittedMethod:
    kind = HeteroRegressor if data.kind == "regression" else HeteroClassifier
    estimator = kind(rotation=rotation, random_state=seed)
    fitted = fitted_estimator(estimator, data.train)
    return fitted._replace(choice=f"pooling={estimator.pooling_:.2f}")


HETERO = (
    ComparedMethod(
        "hetero",
        "Hetero (ours)",
        "automatic choices, no validation rows used",
        ("regression", "classification"),
        partial(_fit, False),
        __name__,
        ours=True,
    ),
    ComparedMethod(
        "hetero_rotation",
        "Hetero with rotation (ours)",
        "automatic choices, coordinates chosen too, no validation rows used",
        ("regression", "classification"),
        partial(_fit, True),
        __name__,
        ours=True,
        # Columns of real tables have a meaning; mixtures of a hundred tables' columns would answer no question.
        groups=("unit tests", "unit tests with more environments", "toy model", "structural models", "real tables"),
    ),
)
