"""Invariant linear regression."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from holdfast.core.moments import Scaling, standardized
from holdfast.core.progress import watched
from holdfast.core.worker import one_blas_thread
from holdfast.estimators.advice import listed
from holdfast.estimators.array_rows import array_rows
from holdfast.estimators.contract import Level, LinearRegressor, SearchSettings, check_settings
from holdfast.estimators.description import Coordinates, TableDescription, coordinate_systems, rotated
from holdfast.estimators.linear import DescribedFit, fit_linear
from holdfast.estimators.rows import ChunkRows, Rows, RowSums, dask_rows, sum_rows
from holdfast.estimators.screening import diagnose_curvature
from holdfast.estimators.search.evidence import Evidence, SquaredEvidence
from holdfast.tables.frames import is_dask_frame

# A feature that explains a larger share of the response alone may be a copy of it.
COPY = 0.98


@dataclass(kw_only=True, eq=False, repr=False)
class HeteroRegressor(SearchSettings, DescribedFit, LinearRegressor):
    """Linear regression that relies on the features whose effects are the same in all environments.

    The invariant features S are those that HeteroSGD with amplified differences would leave alive: in the Hadamard form
    w = u*u - v*v, one environment after the other, with

        g = g_e + k (g_e - g_mean),    u <- u (1 - eta g),    v <- v (1 + eta g)

    an effect that varies is washed out once its exponent, the mean of log(1 - eta g), is negative. The exponents at the
    pooled fit of a set of features say what becomes of it, so S is found without any run
    (`holdfast.estimators.search.selection`). Features in S get the coefficients w_S of pooled least squares.

    Where S explains too little of what all features A explain in environments that were held out, part of the
    prediction comes from pooled least squares on all of them:

        coef_ = (1 - a) w_S + a w_A

    with a chosen as `holdfast.estimators.pooling` explains. A single environment gives a = 1, plain least squares.

    Only the second moments of each environment are used, so the rows are read once. They add up: `fit` takes a Dask
    data frame as well, whose partitions are summed where they are, and `fit_chunks` any chunks.

    Args:
        pooling: a: "auto", chosen from the data; 0, only the invariant features; 1, least squares on all features; or
            anything between.
        search: "exponents"; or "elimination", which also tries to leave out one feature after the other, testing what
            is left, and finds more where levels differ, in a longer time.
        groups: one label for each feature; features of one label are selected and tested together. An interaction has
            the pair of labels that it needs: ("a", "b") counts where a and b are selected. None: one by one.
        significance: level of the tests whether an effect varies. Smaller values select more features.
        tolerance: standard deviation of an effect over environments, as a share of it, that is too small to matter.
            With 0, the default, any variation beyond sampling error counts; with many rows, every real effect varies
            in this sense. A larger tolerance is for features that cannot be consequences of the response.
        level: "common": all environments share an intercept, and features that move with the level of an environment
            are suspicious. "environment": each environment has its own mean, and only effects are compared.
        rotation: the features may be an unknown rotation of what is invariant and what is not: look for coordinates
            first.
        before, after: names or numbers of features that were recorded before the response, and of those recorded after
            it or because of it. The first are judged by their effect on the response alone. The second are judged by
            their slope on it, and left out unless that holds. All others are judged by both.
        verbose: 0: nothing is printed; 1: a progress bar on stderr; or a function of (done, total).

    Attributes:
        coef_: (features,).
        intercept_: a number.
        pooling_: a.
        strict_coef_, pooled_coef_: (features,), w_S, exactly 0 outside S, and w_A.
        invariant_: (features,), True in S. With `rotation`, of the columns of `directions_`.
        relations_: table of features: the coefficient; the mean effect over environments with its 95 % interval, its
            spread and test; the reverse slope, of the feature on the response, with its spread and test; what the
            pooled fit would lose if either moved, its reliance on the feature, and the price of leaving it out; how
            dangerous the feature is, and a verdict. `holdfast.estimators.relations` has the equations.
        effects_: table of environments x features: the coefficient in one environment alone, given all features that
            are not dangerous.
        effect_tables_: these two, with the standard errors of the effects.
        advice_: at most three sentences: what to rely on, what is dangerous and what it would cost, what to do.
        notes_: what to mind besides.
        findings_: what they are made from.
        environments_: labels.
        directions_: (features, coordinates), the coordinates that were used, of standardised features.
        coordinates_: their name: features, principal or joint.
        scale_, response_scale_: standard deviations of the features and of the response.
        passes_: how often the rows were read.

    Reference: Xu, Gu and Fang (NeurIPS 2024) for HeteroSGD; amplification and automatic choice are ours.

    Example, the last feature follows the response more closely in one environment than in the other:
        >>> random = np.random.default_rng(0)
        >>> environments = np.repeat(["north", "south"], 1000)
        >>> causes = random.standard_normal((2000, 2))
        >>> y = causes.sum(1) + random.standard_normal(2000)
        >>> follower = np.where(environments == "north", 1.5, 0.5) * y + random.standard_normal(2000)
        >>> model = HeteroRegressor().fit(np.column_stack([causes, follower]), y, environments=environments)
        >>> model.invariant_.tolist(), model.coef_.round(1).tolist()
        ([True, True, False], [1.0, 1.0, 0.0])
    """

    level: Level = "common"

    def fit(self, X: Any, y: Any, *, environments: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: (rows, features); a data frame of pandas or Dask, or an array.
            y: (rows,); with Dask, a column with the partitions of X.
            environments: one label for each row, of any kind, or the name of a column of X; None: one environment.
            sample_weight: how many rows each row stands for; with Dask, a column with the partitions of X.
        """
        given = (X, y, environments, sample_weight)
        return self._fit_rows(dask_rows(*given) if is_dask_frame(X) else array_rows(self, *given))

    def fit_chunks(self, chunks: Iterable[tuple]) -> Self:
        """Fit to a table that does not fit into memory.

        Args:
            chunks: of (X, y), (X, y, environments) or (X, y, environments, sample_weight), in any order; read once.
        """
        return self._fit_rows(ChunkRows(chunks))

    def _fit_rows(self, rows: Rows) -> Self:
        check_settings(self)
        total = rows.sums(sum_rows)
        self._fit_sums(total).passes_ = rows.passes.count
        known = standardized(total.sums)
        copies = (known.weights @ known.cross) ** 2 > COPY
        if copies.sum() > 1:  # `notes_` knows of a single one: without it the error would grow
            self.notes_.append(
                f"{listed(total.features, copies)} each nearly determine {total.response} alone: they may be copies, "
                "or measured from it. If so, leave them out."
            )
        washed = self.findings_.varies & ~self.invariant_
        if washed.any() and self.coordinates_ == "features":
            bent = diagnose_curvature(*total.drawn, columns=np.flatnonzero(washed).tolist())
            self.notes_ += bent.advice(self.relations_.index.tolist())
        return self

    def _fit_sums(self, total: RowSums) -> Self:
        total.introduce(self)
        known = standardized(total.sums, within=self.level == "environment")
        scaling = Scaling(known.location[:-1], known.scale[:-1], known.constant)
        mean, deviation = float(known.location[-1]), float(known.scale[-1])
        labels, response = total.sums.labels, total.response
        table = TableDescription(
            total.features, labels, scaling, "regression", response, mean, deviation, level=self.level
        )

        def evidence_in(system: Coordinates) -> Evidence:
            own = known if system.name == "features" else rotated(known, system.directions)
            return SquaredEvidence(own, self.tolerance)

        systems = coordinate_systems(known.second, known.counts, self.rotation)
        with watched(self.verbose, "fitting") as progress, one_blas_thread():
            self._describe(fit_linear(self, table, systems, evidence_in, progress))
        self.intercept_ = float(self.intercept_)
        return self
