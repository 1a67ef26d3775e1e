"""The columns whose relation to the response holds in all environments, for any model that comes after."""

from dataclasses import dataclass
from numbers import Number
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from holdfast.core.progress import watched
from holdfast.estimators.array_rows import array_rows, without_environments
from holdfast.estimators.contract import check_settings
from holdfast.estimators.spline import CurveSettings, fit_expanded

# With a larger weight on the pooled fit, the invariant columns are not trusted to predict without the others.
MOSTLY_POOLED = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class HeteroSelector(CurveSettings, SelectorMixin, BaseEstimator):
    """Selects the columns whose relation to the response is the same in all environments.

    It is the first step of a pipeline whose last step is any model, such as boosted trees, which would otherwise use
    whatever predicts, consequences of the response included. The relation may be smooth and columns may interact, as
    in `HeteroSplineRegressor`; a relation that splines and products do not describe is taken for one that varies.

    Where the invariant columns explain too little of what all columns explain in environments that are held out, so
    that `pooling_` is above one half, and where no column is invariant, all columns are passed on; `advice_` says so,
    and `invariant_` still says which columns are invariant. `pooling=0` passes invariant columns only, if any.

    Args:
        task: "regression"; "classification", of two classes; "auto": classification if y holds two different values or
            labels that are not numbers.
        effects: "auto": curves for columns that need one; "smooth": for all columns; "linear": for none.
        interactions: "auto": products of pairs that need one; True: of all pairs; False: of none.
        knots: of each curve, or "auto".
        pooling, search, significance, tolerance, before, after: as in `HeteroRegressor`.
        level: as in `HeteroRegressor`; for classes there is a common level only.
        verbose: as in `HeteroRegressor`.

    Attributes:
        invariant_: (columns,), whose relation to the response holds.
        support_: (columns,), those that are passed on.
        relations_, advice_, pooling_, environments_: as in `HeteroSplineRegressor`.
        task_: regression or classification.
        environment_column_: the column of X that named the environments; None if labels did, or nothing.

    Example, the second column follows the response more closely in one environment than in the other:
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from sklearn.pipeline import make_pipeline
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south"], 1000)
        >>> cause = random.standard_normal(2000)
        >>> y = np.tanh(2 * cause) + random.standard_normal(2000) / 2
        >>> follower = np.where(environments == "north", 1.5, 0.5) * y + random.standard_normal(2000) / 2
        >>> model = make_pipeline(HeteroSelector(), HistGradientBoostingRegressor())
        >>> model = model.fit(np.column_stack([cause, follower]), y, heteroselector__environments=environments)
        >>> model[0].get_support().tolist()
        [True, False]
    """

    task: Literal["auto", "regression", "classification"] = "auto"

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroSelector":
        """Choose the columns.

        Args:
            X: (rows, columns).
            y: (rows,), numbers or two different labels.
            environments: one label for each row, of any kind, or the name of a column of X, which is then no column to
                choose; None: one environment.
            sample_weight: how many rows each row stands for.
        """
        check_settings(self)
        rows = array_rows(self, X, y, environments, sample_weight, classes=True)
        self.environment_column_ = environments if isinstance(environments, str) else None
        self.task_ = _task_of(rows.y) if self.task == "auto" else self.task
        if self.task_ == "regression":
            rows = array_rows(self, X, y, environments, sample_weight)  # of numbers, which may have been objects
        with watched(self.verbose, "selecting") as progress:
            found = fit_expanded(self, rows, classes=self.task_ == "classification", progress=progress)
        found.describe(self)
        trusted = self.invariant_.any() and self.pooling_ <= MOSTLY_POOLED
        self.support_ = self.invariant_ if trusted else np.ones_like(self.invariant_)
        self.notes_.insert(0, self._passed())
        return self

    def transform(self, X: Any) -> Any:
        """(rows, chosen columns); the column that named the environments may be among those of X, or not."""
        names = getattr(X, "column_names", getattr(X, "columns", ()))
        named = self.environment_column_ is not None and self.environment_column_ in names
        return super().transform(without_environments(X, self.environment_column_)[0] if named else X)

    def _passed(self) -> str:
        passed = f"{int(self.support_.sum())} of {len(self.support_)} columns are passed on"
        if self.support_ is self.invariant_:
            return f"{passed}: those whose relation to the response is the same in all environments."
        if len(self.environments_) == 1:
            return f"{passed}: a single environment cannot tell which relations hold elsewhere."
        if not self.invariant_.any():
            return f"{passed}: none of them has the same relation to the response in all environments."
        return (
            f"{passed}: the {int(self.invariant_.sum())} invariant ones explain too little by themselves "
            f"(pooling = {self.pooling_:.2f}); pooling=0 passes on these alone."
        )

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.target_tags.required = True
        return tags


def _task_of(y: np.ndarray) -> str:
    labels = y.dtype.kind in "OUSb" and not all(isinstance(value, Number) for value in y[:1])
    return "classification" if labels or type_of_target(y) == "binary" else "regression"
