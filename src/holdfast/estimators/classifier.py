"""Invariant classification."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from holdfast.core.progress import watched
from holdfast.estimators.class_mean_form import fit_class_means
from holdfast.estimators.contract import ArrayRows, LinearClassifier, array_rows, check_settings, class_codes
from holdfast.estimators.description import TableFindings
from holdfast.estimators.effect_form import ClassRows, class_rows, fit_effects
from holdfast.estimators.linear import DescribedFit, SearchSettings
from holdfast.estimators.rows import ChunkRows, Rows, dask_rows, sum_rows
from holdfast.estimators.search.logistic_fit import held_out_logistic_losses
from holdfast.tables.frames import is_dask_frame

Invariance = Literal["effects", "class_means"]

# Class means are preferred if they explain this share of what effects explain. Near a tie they are the better choice:
# where classes are almost separated, no errors are left in which effects could be seen to vary, and the test of equal
# effects lets spurious features pass; the test of equal means is as sharp as ever. On simulated tables, shares from 0.5
# to 0.95 give test losses within 1 % of each other; only above do features that separate the training rows win.
PREFERRED_SHARE = 0.8


@dataclass(kw_only=True, eq=False, repr=False)
class HeteroClassifier(SearchSettings, DescribedFit, LinearClassifier):
    """Classification by what relates features and classes in the same way in all environments.

    There are two ways in which a relation can hold, and `invariance` says which is meant:

    - "effects": the class given the features is what stays (covariate shift). Logistic regression on the features whose
      effects on the log-odds are equal in all environments, as `HeteroRegressor` with the loss

          loss_e = mean over the rows of e of log(1 + exp(-s (z^T w + b))),    s = +-1

      Of more than two classes each is compared with all others, and multinomial regression gives the coefficients.
    - "class_means": the features given the class are what stays (label shift, noisy labels). A linear discriminant on
      the features in which the means of the classes differ by the same amount in all environments. With `rotation`, on
      the directions in which they do, after whitening by the covariance within classes.

    "auto" fits both and compares the log loss in each environment of logistic regressions fitted to all others on what
    either selects: class means are chosen if they explain four fifths of what effects do.

    Fits of the "effects" have the weak ridge of one observation, so that they are finite if the classes can be
    separated; the advice says so if they are. They need all rows in one memory. Fits of the "class_means" need counts,
    means and covariances only, which add up: `fit` takes a Dask data frame for them, and `fit_chunks` any chunks.

    In both forms, part of the prediction comes from a fit of all features where the invariant ones explain too little
    in environments that were held out, as in `HeteroRegressor`, with log loss.

    Args:
        pooling: a: "auto", chosen from the data; 0, only what is invariant; 1, all features; or anything between.
        search: as in `HeteroRegressor`; matters when effects are compared.
        invariance: "auto", "effects" or "class_means".
        groups: one label for each feature; features of one label are selected and tested together. Only effects can be
            compared in groups, so "auto" compares effects if there are any. None: one by one.
        significance: level of the tests whether an effect or a difference varies. Smaller values select more features.
        tolerance: standard deviation of an effect, or of a difference between class means, over environments, as a
            share of it, that is too small to matter. With 0, the default, any variation beyond sampling error counts.
            A larger one needs more care than for regression: where classes are nearly separable, coefficients grow
            without bounds, and so does what is tolerated.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        verbose: 0: nothing is printed; 1: a progress bar on stderr; or a function of (done, total).

    Attributes:
        classes_: the labels.
        invariance_: "effects" or "class_means".
        coef_: (1, features), of the log-odds of the second of two classes, or (classes, features).
        intercept_: (1,) or (classes,).
        pooling_: a.
        strict_coef_, pooled_coef_: as `coef_`, of the invariant features alone, and of all features.
        effects_: environments x features, in log-odds; by `class_means`, those that a feature alone would have. Of more
            than two classes, on the one for which they have the widest range; `summary()` says which.
        invariant_, stability_, effect_tables_, advice_, environments_, directions_, coordinates_, scale_,
            response_scale_, passes_: as in `HeteroRegressor`.

    Example:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south", "west"], 1000)
        >>> cause = random.standard_normal(3000)
        >>> y = np.where(cause + random.logistic(size=3000) > 0, "yes", "no")
        >>> strength = np.repeat([2.0, 0.2, 1.0], 1000)
        >>> follower = strength * (y == "yes") + random.standard_normal(3000)
        >>> model = HeteroClassifier().fit(np.column_stack([cause, follower]), y, environments=environments)
        >>> model.invariant_.tolist()
        [True, False]
    """

    invariance: Literal["auto", "effects", "class_means"] = "auto"

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> "HeteroClassifier":
        """Fit to a table.

        Args:
            X: (rows, features); a data frame of pandas or Dask, or an array.
            y: (rows,), labels of two or more classes; with Dask, a column with the partitions of X.
            environments: one label for each row, of any kind; None: one environment.
            sample_weight: how many rows each row stands for; with Dask, a column with the partitions of X.
        """
        given = (X, y, environments, sample_weight)
        return self._fit_rows(dask_rows(*given) if is_dask_frame(X) else array_rows(self, *given, classes=True))

    def fit_chunks(self, chunks: Iterable[tuple]) -> "HeteroClassifier":
        """Fit to a table that does not fit into memory; `invariance` must be "class_means", which needs moments only.

        Args:
            chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight), in any order; read once.
        """
        return self._fit_rows(ChunkRows(chunks))

    def _fit_rows(self, rows: Rows) -> "HeteroClassifier":
        check_settings(self)
        grouped = self.groups is not None and len(set(self.groups)) < len(list(self.groups))
        if grouped and self.invariance == "class_means":
            raise ValueError(
                'groups must be None for invariance="class_means", which compares features one by one, got labels'
            )
        table = rows if self.invariance == "class_means" else rows.together()
        if table is None:
            raise ValueError(
                f"invariance must be 'class_means' to fit {rows.name}, got {self.invariance!r}: effects need all rows "
                "in one memory"
            )
        total = table.sums(partial(sum_rows, classes=True))
        total.introduce(self)
        self.classes_, _ = class_codes(np.array(total.sums.classes))
        fits: dict[Invariance, TableFindings] = {}
        if self.invariance != "effects" and not grouped:
            settings = {name: getattr(self, name) for name in ("significance", "tolerance", "rotation", "pooling")}
            fits["class_means"] = fit_class_means(total.sums, total.features, response=total.response, **settings)
        if isinstance(table, ArrayRows) and self.invariance != "class_means":
            known = class_rows(table, total.features, self.classes_)
            with watched(self.verbose, "fitting") as progress:
                fits["effects"] = fit_effects(known, self, progress)
        chosen, reason = _choose(known, fits) if len(fits) == 2 else (next(iter(fits)), [])
        self.invariance_: Invariance = chosen
        self._describe(fits[chosen])
        # it travels to workers without the rest of the estimator
        separates = partial(_all_correct, self.coef_, self.intercept_, self.classes_)
        x, y, _ = total.sample.arrays
        # one wrong row of the sample is enough to know
        separated = separates(x, y) and (len(y) == total.rows or table.all(separates))
        self.advice_ = [*reason, *self.advice_, *([_SEPARATED[chosen]] if separated else [])]
        self.passes_ = rows.passes.count
        return self


def _all_correct(
    coefficients: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray,
    X: Any,
    y: Any,
    environments: Any = None,
    positions: Any = None,
    weights: Any = None,
) -> bool:
    """Whether scores give the class of all rows that count."""
    scores = np.asarray(X, float) @ coefficients.T + intercept
    predicted = scores.argmax(1) if len(classes) > 2 else (scores[:, 0] > 0).astype(int)
    wrong = classes[predicted] != np.asarray(y)
    return not (wrong if weights is None else wrong & (np.asarray(weights) > 0)).any()


_SEPARATED = {
    "effects": "The scores classify every row of this table correctly: the classes are separable, so regularization "
    "decides the size of the coefficients, and probabilities near 0 and 1 mean little.",
    "class_means": "The scores classify every row of this table correctly: the classes are separable, so probabilities "
    "near 0 and 1 rest on the normal law that the discriminant assumes, not on observed errors.",
}


def _choose(rows: ClassRows, fits: Mapping[Invariance, TableFindings]) -> tuple[Invariance, list[str]]:
    """Which form of invariance explains more in environments that were not fitted, and a sentence about it."""
    if not any(fit.varies.any() for fit in fits.values()):
        return "effects", []  # nothing to choose by: logistic regression is the weaker assumption
    used: dict[str, np.ndarray] = {name: fit.coordinates.directions[:, fit.selected] for name, fit in fits.items()}
    used["constant"] = np.zeros((rows.z.shape[1], 0))
    # of two classes one says it all
    numbers = range(1, 2) if len(rows.classes) == 2 else range(len(rows.classes))
    loss, weights = {}, rows.counts / rows.counts.sum()
    for name, directions in used.items():
        columns = np.arange(directions.shape[1])
        loss[name] = sum(
            float(weights @ held_out_logistic_losses(rows.one_against_all(number, directions), columns))
            for number in numbers
        )
    share = {name: max(0.0, 1 - value / max(loss["constant"], 1e-300)) for name, value in loss.items()}
    words = (
        f"In held-out environments, features with equal class means explain {share['class_means']:.0%} of the log "
        f"loss, those with equal effects {share['effects']:.0%}"
    )
    if share["class_means"] >= PREFERRED_SHARE * share["effects"] and share["class_means"] > 0:
        return "class_means", [f'{words}: we assume that the features given the class stay (invariance="class_means").']
    return "effects", [f'{words}: we assume that the class given the features stays (invariance="effects").']
