"""Linear mixed models: effects that differ between environments, pooled as far as their differences allow."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from holdfast.core.moments import StandardizedMoments, standardized
from holdfast.core.partial_pooling import MixedModel, fit_mixed
from holdfast.core.progress import counted
from holdfast.core.statistics import UPPER
from holdfast.core.validation import require, suggestion
from holdfast.core.worker import one_blas_thread
from holdfast.estimators.array_rows import array_rows
from holdfast.estimators.contract import LinearRegressor
from holdfast.estimators.pooling import mean_products
from holdfast.estimators.printed_summary import PrintedSummary, shortened
from holdfast.estimators.rows import ChunkRows, Rows, RowSums, dask_rows, sum_rows
from holdfast.tables.frames import is_dask_frame

INTERCEPT, RESIDUAL = "intercept", "residual"
# Up to this many random effects, all their covariances are estimated by default.
MOST_CORRELATED = 4
# A feature of which the features before it leave less than this share of its variance is a combination of them.
COMBINATION = 1e-10
# A random effect whose standard deviation is below this share of that of the errors (both in standard units) is zero.
NEGLIGIBLE = 1e-3
# The printed summary is this wide, and says so many letters of the effects that others are correlated with.
WIDTH, LETTERS = 80, 9
# heading -> column of the fixed effects
COLUMNS = {
    "coef": "coefficient",
    "std err": "standard error",
    "[0.025": "low",
    "0.975]": "high",
    "sd": "sd between environments",
}


class MixedRegressor(LinearRegressor):
    """Linear regression with effects that vary between environments, by restricted maximum likelihood (REML).

        y = intercept + x^T coef + b_e0 + sum over random features of x_j b_ej + error,    b_e ~ N(0, D)

    The fixed part is what holds on average over environments, and predicts in one that is new; the random part is what
    an environment adds to it. An environment of few rows is drawn towards the average, one of many rows keeps its own
    effects. Only the second moments of each environment are used, so that one pass over the rows is all, wherever they
    are; `holdfast.core.fit_mixed` has the equations.

    Args:
        random: what varies between environments: "intercept", their levels; "slopes", also the effects of all features;
            or a list of features (names, or numbers where there are none), also their effects.
        covariance: of the random effects: "full"; "diagonal", levels at the means of the features and effects vary
            independently of each other; "auto", full up to four random effects, if there are more environments.

    Attributes:
        coef_, intercept_: the fixed part.
        fixed_effects_: table of the intercept and the features: coefficient, its standard error, the ends of its 95 %
            interval (low, high), and the standard deviation of the effect between environments (NaN where it is not
            random). Intervals are those of Student's t. For the intercept, random effects and features that are
            constant in each environment it has as many degrees of freedom as there are environments beyond the
            intercept and these features (exact in balanced tables), for others those that the rows leave.
        random_covariance_: table, D.
        error_variance_: of the errors.
        random_effects_: table of environments x random effects, the best linear unbiased predictions of b_e.
        effects_: table of environments x (intercept, features), their sums with the fixed part.
        criterion_: -2 log of the restricted likelihood.
        environments_: labels.
        rows_, response_: how many rows were fitted, and the name of the response.
        notes_: sentences on what could not be estimated.
        passes_: how often the rows were read.

    Reference: N. Laird and J. Ware, Biometrics 38 (1982); D. Bates, M. Mächler, B. Bolker and S. Walker, Journal of
    Statistical Software 67 (2015).

    Example, the effect of dose differs between 30 clinics:
        >>> rng, clinic = np.random.default_rng(0), np.repeat(np.arange(30), 40)
        >>> dose = rng.uniform(0, 2, 1200)
        >>> own = 3 + 0.5 * rng.standard_normal(30)
        >>> y = 1 + own[clinic] * dose + rng.standard_normal(1200)
        >>> model = MixedRegressor(random=[0]).fit(dose[:, None], y, environments=clinic)
        >>> model.fixed_effects_.round(1).loc["x0"].tolist()
        [2.9, 0.1, 2.7, 3.1, 0.5]
        >>> known, new = model.predict([[1.0]], environments=[0]), model.predict([[1.0]])
        >>> bool(abs(known[0] - (1 + own[0])) < abs(new[0] - (1 + own[0])))
        True
    """

    def __init__(
        self,
        random: Literal["intercept", "slopes"] | Sequence[Any] = "intercept",
        *,
        covariance: Literal["auto", "full", "diagonal"] = "auto",
    ):
        self.random = random
        self.covariance = covariance

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: (rows, features); a data frame of pandas or Dask, or an array.
            y: (rows,); with Dask, a column with the partitions of X.
            environments: one label for each row, of any kind, or the name of a column of X; None: one
                environment, which is least squares.
            sample_weight: how many rows each row stands for.
        """
        given = (X, y, environments, sample_weight)
        return self._fit_rows(dask_rows(*given) if is_dask_frame(X) else array_rows(self, *given))

    def fit_chunks(self, chunks: Iterable[tuple]) -> Self:
        """Fit to a table that does not fit into memory.

        Args:
            chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight), in any order; read once.
        """
        return self._fit_rows(ChunkRows(chunks))

    def predict(self, X: Any, environments: Any = None) -> np.ndarray:
        """(rows,), the predicted responses.

        Args:
            X: (rows, features).
            environments: one label for each row; rows of environments that were fitted get their random part, too. None
                or a new label: the fixed part.
        """
        fixed = super().predict(X)
        if environments is None:
            return fixed
        if is_dask_frame(X):
            raise ValueError("environments must be None for a Dask data frame, got labels: predict its partitions")
        labels = np.asarray(environments, dtype=object)
        require(labels.shape == fixed.shape, f"environments must be {len(fixed)} labels", labels.shape)
        known = {label: number for number, label in enumerate(self.environments_)}
        codes = np.array([known.get(label, -1) for label in labels.tolist()])
        effects = np.vstack([self.random_effects_.to_numpy(), np.zeros(len(self._random))])[codes]
        columns = np.column_stack([np.ones(len(fixed)), np.asarray(X, float)])
        return fixed + np.einsum("ij,ij->i", effects, columns[:, self._random])

    def summary(self) -> PrintedSummary:
        """The fit as a printed table: `print(model.summary())`."""
        check_is_fitted(self)
        numbers = self.fixed_effects_.reset_index(names="name")
        labels = list(self.random_covariance_.columns)
        deviations = np.sqrt(np.diag(self.random_covariance_))
        with np.errstate(invalid="ignore"):  # where a variance is zero
            correlations = self.random_covariance_.to_numpy() / np.outer(deviations, deviations)
        cells = pd.DataFrame({head: numbers[name].map("{:.4g}".format) for head, name in COLUMNS.items()})
        shown = [f"r {name}" for name in shortened(labels[:-1], LETTERS)]
        for place, head in enumerate(shown):
            own = dict(zip(self._random[place + 1 :], correlations[place + 1 :, place], strict=True))
            cells[head] = [f"{own[row]:.2f}" if row in own else "" for row in range(len(cells))]
        cells.loc[len(cells), "sd"] = f"{np.sqrt(self.error_variance_):.4g}"
        headline = (
            f"Mixed model of {self.response_} (REML): {counted(self.rows_, 'row')}, "
            f"{counted(len(self.environments_), 'environment')}. -2 log REML: {self.criterion_:.3f}."
        )
        legend = (
            "Intervals are for the average over environments. sd: standard deviation of an effect between "
            "environments, and of the residuals within them; r: correlation with the effect in the heading. "
            "`random_covariance_` has the covariances."
        )
        cells = cells.fillna("").replace("nan", "-").set_axis([*numbers["name"], RESIDUAL])
        return PrintedSummary(headline, cells, [legend, *self.notes_], spare=[shown], width=WIDTH)

    def _fit_rows(self, rows: Rows) -> Self:
        contract = "covariance must be 'auto', 'full' or 'diagonal'"
        require(self.covariance in ("auto", "full", "diagonal"), contract, repr(self.covariance))
        total = rows.sums(sum_rows)
        total.introduce(self)
        self.passes_ = rows.passes.count
        self.environments_ = list(total.sums.labels)
        random = _random_columns(self.random, total.features)
        known = standardized(total.sums)
        kept = _independent_columns(known)
        random = [column for column in random if column in kept]
        self.notes_ = _left_out(kept, total.features)
        counts = known.counts
        spare = f"{counts.sum():g} samples for {len(kept) - 1} features that are no combinations of others"
        require(counts.sum() > len(kept), "X must have more rows than features", spare)
        several = len(counts) > 1
        contract = f"environments must have more rows in one of them than there are random effects ({len(random)})"
        require(not several or counts.max() > len(random), contract, f"{counts.max():g} at most")
        enough = len(counts) > len(random)
        contract = "covariance must be 'auto' or 'diagonal' unless there are more environments than random effects"
        found = f"'full' with {len(counts)} environments and {counted(len(random), 'random effect')}"
        require(enough or not several or self.covariance != "full", contract, found)
        full = self.covariance == "full" or (self.covariance == "auto" and enough and len(random) <= MOST_CORRELATED)
        if not several:
            self.notes_.append("There is one environment, so nothing is known about differences between environments.")
        places = [kept.index(column) for column in random]
        with one_blas_thread():
            sums = counts[:, None, None] * mean_products(known, np.array(kept[1:], int) - 1)
            model = fit_mixed(sums, np.array(places if several else [], int), diagonal=not full)
        self._describe(model, known, kept, random, total)
        return self

    def _describe(
        self, model: MixedModel, known: StandardizedMoments, kept: list[int], random: list[int], total: RowSums
    ) -> None:
        """Everything in the units of the table."""
        names, deviation = [INTERCEPT, *total.features], float(known.scale[-1])
        units = deviation * _units(known)  # standard -> table
        fixed = np.zeros(len(names))
        fixed[kept] = model.fixed
        coefficients = units @ fixed
        self.intercept_, self.coef_ = float(coefficients[0] + known.location[-1]), coefficients[1:]
        own = units[:, kept]
        errors = np.sqrt(np.einsum("ij,jk,ik->i", own, model.covariance, own))
        errors[~np.isin(range(len(names)), kept)] = np.nan
        half = t.ppf(UPPER, _freedom(known, kept, random)) * errors
        several = len(known.counts) > 1
        to_table = units[np.ix_(random, random)]
        between = to_table @ model.between @ to_table.T if several else np.full(to_table.shape, np.nan)
        spread = pd.Series(np.nan, index=range(len(names)))
        spread[random] = np.sqrt(np.diag(between))
        labels = [names[column] for column in random]
        average = np.append(self.intercept_, self.coef_)
        self.fixed_effects_ = pd.DataFrame(
            {
                "coefficient": average,
                "standard error": errors,
                "low": average - half,
                "high": average + half,
                "sd between environments": spread.to_numpy(),
            },
            index=names,
        )
        self.random_covariance_ = pd.DataFrame(between, index=labels, columns=labels)
        best = model.best @ to_table.T if several else np.zeros((1, len(random)))
        index = pd.Index(self.environments_, name="environment")
        self.random_effects_ = pd.DataFrame(best, index=index, columns=labels)
        effects = np.tile(average, (len(index), 1))
        effects[:, random] += best
        self.effects_ = pd.DataFrame(effects, index=index, columns=names)
        self.error_variance_ = float(model.variance * deviation**2)
        rows = known.counts.sum() - len(kept)
        scales = known.scale[[column - 1 for column in kept[1:]]]
        self.criterion_ = float(model.criterion + 2 * rows * np.log(deviation) + 2 * np.log(scales).sum())
        self._random, self.rows_, self.response_ = random, round(float(known.counts.sum())), total.response
        self.notes_ += _warnings(model, [names[column] for column in random] if several else [])


def _random_columns(random: Any, features: list[str]) -> list[int]:
    """The columns of (1, X) whose effects are random."""
    if isinstance(random, str):
        contract = "random must be 'intercept', 'slopes' or a list of features"
        require(random in ("intercept", "slopes"), contract, repr(random))
        return [0, *range(1, 1 + len(features))] if random == "slopes" else [0]
    columns = [0]
    for name in random:
        number = features.index(name) if name in features else name
        allowed = isinstance(number, int | np.integer) and 0 <= int(number) < len(features)
        contract = f"random must name features ({', '.join(features[:10])})"
        require(allowed, contract, f"{name!r}{suggestion(str(name), features)}")
        columns.append(int(number) + 1)
    require(len(set(columns)) == len(columns), "random must name each feature once", list(random))
    return columns


def _independent_columns(known: StandardizedMoments) -> list[int]:
    """The columns of (1, z) that are no combinations of those before them: of the pooled moments, column by column."""
    second = np.einsum("e,eij->ij", known.weights, known.second)
    kept: list[int] = []
    for column in range(len(second)):
        seen = second[kept, column]
        rest = second[column, column] - (seen @ np.linalg.solve(second[np.ix_(kept, kept)], seen) if kept else 0.0)
        if rest > COMBINATION:
            kept.append(column)
    return [0, *(column + 1 for column in kept)]


def _freedom(known: StandardizedMoments, kept: list[int], random: list[int]) -> np.ndarray:
    """(columns,), degrees of freedom of the coefficients of (1, z), as `MixedRegressor` explains them."""
    environments, columns = len(known.counts), np.arange(len(known.constant) + 1)
    spread = np.einsum("e,ejj->j", known.weights, known.second) - known.weights @ known.means[:, :-1] ** 2
    same = np.append(False, spread <= COMBINATION)  # constant in each environment
    between = max(environments - 1 - same[kept].sum(), 1)
    within = known.counts.sum() - len(kept) - (environments - 1) * len(random)
    of_environments = (same | np.isin(columns, random)) & (environments > 1)
    return np.where(of_environments, between, max(within, between))


def _units(known: StandardizedMoments) -> np.ndarray:
    """(columns, columns), U: effects of (1, x) are U times those of (1, z), both on the same response."""
    scale, location = known.scale[:-1], known.location[:-1]
    units = np.diag(np.append(1.0, 1 / scale))
    units[0, 1:] = -location / scale
    return units


def _left_out(kept: list[int], features: list[str]) -> list[str]:
    left = [name for column, name in enumerate(features, 1) if column not in kept]
    return (
        [f"{', '.join(left)}: constant, or a combination of the features before; the coefficient is 0."] if left else []
    )


def _warnings(model: MixedModel, names: list[str]) -> list[str]:
    found = []
    if not model.converged:
        found.append("The search for the covariance of the random effects did not converge.")
    deviations = np.linalg.norm(model.factor, axis=1)
    zero = [name for name, deviation in zip(names, deviations, strict=True) if deviation < NEGLIGIBLE]
    if zero:
        found.append(
            f"The differences between environments in {', '.join(zero)} are no larger than sampling error explains, so "
            "their estimated variance is 0; a small variance cannot be excluded."
        )
    varying = deviations >= NEGLIGIBLE
    if np.linalg.matrix_rank(model.factor[varying] / deviations[varying, None], tol=NEGLIGIBLE) < varying.sum():
        several = ", ".join(name for name, varies in zip(names, varying, strict=True) if varies)
        found.append(
            f"The covariance of {several} between environments is singular: one of these effects follows from the "
            "others (of two, the correlation is -1 or 1), which more environments may refute. "
            "covariance='diagonal', or fewer features in random, makes the model simpler."
        )
    return found
