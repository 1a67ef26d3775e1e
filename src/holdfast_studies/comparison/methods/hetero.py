"""The estimators of this library, with all their settings chosen automatically."""

from functools import partial
from typing import Any

from holdfast.datasets.splits import Dataset, Kind
from holdfast.estimators.classifier import HeteroClassifier
from holdfast.estimators.regressor import HeteroRegressor
from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, fitted_estimator


def _fit(settings: dict[str, Any], data: Dataset, seed: int) -> FittedMethod:
    kind = HeteroRegressor if data.kind == "regression" else HeteroClassifier
    estimator = kind(**settings)
    fitted = fitted_estimator(estimator, data.train)
    return fitted._replace(choice=f"pooling={estimator.pooling_:.2f}")


def _method(name: str, title: str, about: str, groups: tuple[str, ...] | None, **settings: Any) -> ComparedMethod:
    kinds: tuple[Kind, ...] = ("regression", "classification")
    about = f"{about}; no validation rows used"
    return ComparedMethod(name, title, about, kinds, partial(_fit, settings), __name__, ours=True, groups=groups)


# Columns of real tables have a meaning, which mixtures of them would lose.
_ROTATED = ("unit tests", "unit tests with more environments", "toy model", "structural models", "real tables")

_STRICT = "pooling=0: only features whose effects are equal everywhere"
HETERO = (
    _method("hetero", "Hetero (ours)", "the default: all choices automatic", None),
    _method("hetero_strict", "Hetero, strict (ours)", _STRICT, None, pooling=0.0),
    _method(
        "hetero_rotation",
        "Hetero with rotation (ours)",
        "all choices automatic, coordinates too",
        _ROTATED,
        rotation=True,
    ),
)
