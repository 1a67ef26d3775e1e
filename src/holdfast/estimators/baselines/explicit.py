"""Published methods that descend on the losses of the environments, as estimators, and many of them side by side."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from holdfast.algorithms.invariance.base import InvarianceMethod, descent, logistic_risks, squared_risks
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.losses.logistic import LogisticRows, rows_with_intercept
from holdfast.algorithms.losses.squared import SecondMoments, second_moments
from holdfast.core.grouping import group_rows
from holdfast.core.moments import Scaling, own_units, standard_units
from holdfast.core.run import Run, run
from holdfast.estimators.array_rows import two_classes
from holdfast.estimators.contract import LinearClassifier, LinearRegressor


def fit_side_by_side(
    methods: Sequence[InvarianceMethod],
    tables: Sequence[SecondMoments | LogisticRows],
    starts: np.ndarray,
    *,
    steps: int,
    seeds: Sequence[int],
) -> np.ndarray:
    """The parameters that each method ends with on each table.

    Args:
        methods: of one type, with different hyper-parameters.
        tables: of one shape: moments for the squared loss, rows for the logistic one; both with a feature that is
            always one. Several together keep an accelerator busy, which one does not.
        starts: (tables, methods, features + 1), the intercept last.
        steps: of each method.
        seeds: one for each table, of the order of environments, in the methods that draw one.

    Returns:
        (tables, methods, features + 1); NaN where a method diverged.
    """
    (kind,) = {type(method) for method in methods}
    runs = len(tables) * len(methods)
    stacked = {name: np.tile([getattr(method, name) for method in methods], len(tables)) for name in vars(methods[0])}
    single = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), table) for table in tables]
    # One table is shared by its runs; of several each run gets a copy of its own.
    shared = single[0] if len(single) == 1 else None
    own = None if len(single) == 1 else jax.tree.map(lambda *leaves: np.repeat(leaves, len(methods), 0), *single)
    records = run(
        _MethodRun(kind),
        shared,
        (jax.tree.map(np.float32, stacked), np.asarray(starts, np.float32).reshape(runs, -1), own),
        (np.asarray(seeds)[:, None] + np.arange(len(methods))).ravel(),
        steps=steps,
        every=steps,
        slab=runs,
        workers=1,
    )
    final = records.values["parameters"][:, -1].astype(float)
    final[records.diverged_at >= 0] = np.nan
    return final.reshape(len(tables), len(methods), -1)


def uniform_starts(count: int, features: int, seed: int) -> np.ndarray:
    """(count, features + 1), uniform in +- 1 / sqrt(features): what torch gives to a linear layer."""
    bound = 1 / np.sqrt(features)
    return np.random.default_rng(seed).uniform(-bound, bound, (count, features + 1))


@dataclass(frozen=True)
class _MethodRun:
    """Makes one run of a method of one type.

    The type belongs to the key of the compile cache and not to the parameters: jax 0.10 takes registered dataclasses
    with equally many fields for equal, and would now and then run the program of another method.
    """

    kind: type

    def __call__(
        self,
        shared: SecondMoments | LogisticRows | None,
        parameters: tuple[dict[str, jax.Array], jax.Array, SecondMoments | LogisticRows | None],
    ) -> Run:
        choices, start, own = parameters
        data = own if shared is None else shared
        assert data is not None
        risks = squared_risks(data) if isinstance(data, SecondMoments) else logistic_risks(data)
        return Run(descent(self.kind(**choices), risks, jnp.asarray(start)), _observe)


def _observe(parameters: jax.Array) -> dict[str, jax.Array]:
    return {"parameters": parameters}


@dataclass(eq=False, repr=False)
class _ExplicitMethod:
    """The settings of both estimators, and the runs of their method."""

    method: InvarianceMethod | None = None
    _: KW_ONLY
    steps: int = 10_000
    standardize: bool = True
    random_state: int | np.random.RandomState | None = 0

    def _units(self, x: np.ndarray) -> Scaling:
        return standard_units(x) if self.standardize else own_units(x.shape[1])

    def _fit_method(
        self, summarise: Callable[..., Any], inputs: np.ndarray, targets: np.ndarray, environments: Any
    ) -> tuple[np.ndarray, float]:
        """Coefficients of the inputs, (features,), and the intercept; sets the labels of the environments."""
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        grouping, scaling = group_rows(environments, len(targets)), self._units(inputs)
        self.environments_ = grouping.labels
        data = summarise(scaling.apply(inputs), targets, grouping.rows())
        method = InvariantRiskMinimization() if self.method is None else self.method
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        starts = uniform_starts(1, inputs.shape[1], seed)
        found = fit_side_by_side([method], [data], starts[None], steps=self.steps, seeds=[seed])[0, 0]
        if not np.isfinite(found).all():
            raise ValueError(f"method diverged on these data: choose a smaller step_size than that of {method}")
        coefficients, shift = scaling.undo(found[:-1])
        return coefficients, float(found[-1] + shift)


class ExplicitRegressor(_ExplicitMethod, LinearRegressor):
    """Linear regression by a method that treats environments explicitly: IRMv1, V-REx, Group DRO, AND-mask or Fish.

    Args:
        method: one of `holdfast.algorithms.invariance`, with its hyper-parameters; None: IRMv1 with the published ones.
        steps: full-batch steps.
        standardize: give the method features and a target of mean 0 and variance 1. The published code does not.
        random_state: of the start, and of the order of environments in Fish.

    Attributes:
        coef_: (features,).
        intercept_: a number.
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.algorithms.invariance import RiskExtrapolation
        >>> from holdfast.datasets import toy_dataset
        >>> data = toy_dataset(1.0, 0.5, seed=0, samples=500).train
        >>> fitted = ExplicitRegressor(RiskExtrapolation(penalty=10)).fit(
        ...     data.inputs, data.targets, environments=data.environments
        ... )
        >>> fitted.coef_.shape
        (12,)
    """

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitRegressor":
        """Fit; without labels all rows are one environment."""
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        response = self._units(targets[:, None])
        scaled = response.apply(targets[:, None])[:, 0]
        coefficients, intercept = self._fit_method(second_moments, inputs, scaled, environments)
        self.coef_ = coefficients * response.scale[0]
        self.intercept_ = float(intercept * response.scale[0] + response.location[0])
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class ExplicitClassifier(_ExplicitMethod, LinearClassifier):
    """Logistic regression of two classes by a method that treats environments explicitly; see `ExplicitRegressor`.

    Args:
        method: see `ExplicitRegressor`.
        steps: full-batch steps.
        standardize: give the method features of mean 0 and variance 1. The published code does not.
        random_state: of the start, and of the order of environments in Fish.

    Attributes:
        classes_: the two labels.
        coef_: (1, features), of the score of the second.
        intercept_: (1,).
        environments_: the labels of the environments.

    Example:
        >>> from holdfast.algorithms.invariance import AgreementMask
        >>> fitted = ExplicitClassifier(AgreementMask(step_size=0.1), steps=200)
        >>> fitted.fit([[-2.0], [-1.0], [1.0], [2.0]], list("aabb"), environments=[0, 1, 0, 1]).predict([[3.0]])
        array(['b'], dtype='<U1')
    """

    steps: int = 1_000

    def fit(self, X: Any, y: Any, *, environments: Any = None) -> "ExplicitClassifier":
        """Fit; without labels all rows are one environment."""
        inputs, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = two_classes(labels)
        coefficients, intercept = self._fit_method(rows_with_intercept, inputs, codes, environments)
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # the way scikit-learn asks for it
        tags.classifier_tags.multi_class = False
        return tags
