"""IRMv1, V-REx, Group DRO, AND-mask and Fish, tuned by the published protocol of the unit tests."""

import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from holdfast.algorithms.invariance.and_mask import AgreementMask
from holdfast.algorithms.invariance.average_risk import AverageRisk
from holdfast.algorithms.invariance.base import InvarianceMethod
from holdfast.algorithms.invariance.fish import Fish
from holdfast.algorithms.invariance.group_dro import GroupDRO
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.invariance.vrex import RiskExtrapolation
from holdfast.algorithms.losses.logistic import LogisticRows, rows_with_intercept
from holdfast.algorithms.losses.squared import SecondMoments, second_moments
from holdfast.core.grouping import group_rows
from holdfast.core.moments import Scaling, own_units, standard_units
from holdfast.datasets.splits import Dataset, Kind
from holdfast.estimators.baselines.explicit import fit_side_by_side, uniform_starts
from holdfast_studies.comparison.methods.base import ComparedMethod, FittedMethod, best_on_validation

DRAWS = 20  # sets of hyper-parameters; the first is the default
STEPS = 10_000

HyperParameters = Callable[[random.Random], dict[str, float]]
"""A generator of random numbers -> hyper-parameters of a method."""


def _rates(source: random.Random) -> dict[str, float]:
    return {"step_size": 10 ** source.uniform(-4, -2), "weight_decay": 10 ** source.uniform(-6, -2)}


def _irm(source: random.Random) -> dict[str, float]:
    return {**_rates(source), "weight": 1 - 10 ** source.uniform(-3, -0.3)}


def _extrapolation(source: random.Random) -> dict[str, float]:
    return {**_rates(source), "penalty": 10 ** source.uniform(-1, 5)}


def _group_dro(source: random.Random) -> dict[str, float]:
    return {**_rates(source), "rate": 10 ** source.uniform(-3, -1)}


def _mask(source: random.Random) -> dict[str, float]:
    rates = {"step_size": 10 ** source.uniform(-4, 0), "weight_decay": 10 ** source.uniform(-5, 0)}
    return {**rates, "threshold": source.uniform(0.8, 1)}


def _fish(source: random.Random) -> dict[str, float]:
    return {**_rates(source), "meta_step_size": source.choice([0.05, 0.1, 0.5])}


def draws(kind: type, draw: HyperParameters) -> list[InvarianceMethod]:
    """The default and random hyper-parameters; where the published code draws them too, they are the same numbers.

    The published code seeds Python's generator with 1000 + the number of the draw, whatever the data.
    """
    return [kind(), *(kind(**draw(random.Random(1000 + number))) for number in range(1, DRAWS))]


def fit_tuned(
    kind: type, draw: HyperParameters, standardize: bool, data_sets: Sequence[Dataset], seeds: Sequence[int]
) -> list[FittedMethod]:
    """All draws on all data sets side by side, and for each data set the best of them on its validation rows.

    Args:
        kind: the type of the method.
        draw: of its hyper-parameters.
        standardize: bring the inputs to mean 0 and variance 1 first, which the published protocol does not do.
        data_sets: of one shape, with training and validation rows.
        seeds: of the starts, one for each data set.
    """
    methods = draws(kind, draw)
    features = data_sets[0].train.inputs.shape[1]
    scalings = [standard_units(each.train.inputs) if standardize else own_units(features) for each in data_sets]
    tables = [_table(each, scaling) for each, scaling in zip(data_sets, scalings, strict=True)]
    starts = np.stack([uniform_starts(DRAWS, features, seed) for seed in seeds])
    found = fit_side_by_side(methods, tables, starts, steps=STEPS, seeds=[DRAWS * seed for seed in seeds])
    return [
        _best(methods, parameters, scaling, data_set)
        for parameters, scaling, data_set in zip(found, scalings, data_sets, strict=True)
    ]


def fit_one(kind: type, draw: HyperParameters, standardize: bool, data_set: Dataset, seed: int) -> FittedMethod:
    """All draws on one data set."""
    (fitted,) = fit_tuned(kind, draw, standardize, [data_set], [seed])
    return fitted


def _table(data_set: Dataset, scaling: Scaling) -> SecondMoments | LogisticRows:
    inputs, targets, environments = data_set.train
    summarise = second_moments if data_set.kind == "regression" else rows_with_intercept
    return summarise(scaling.apply(inputs), targets, group_rows(environments, len(targets)).rows())


def _best(methods: list[InvarianceMethod], found: np.ndarray, scaling: Scaling, data_set: Dataset) -> FittedMethod:
    coefficients, shifts = scaling.undo(found[:, :-1])
    fits = [
        FittedMethod(partial(_predict, data_set.kind, weights, intercept), weights, str(method))
        for weights, intercept, method in zip(coefficients, found[:, -1] + shifts, methods, strict=True)
    ]
    return best_on_validation(fits, data_set)


def _predict(kind: Kind, coefficients: np.ndarray, intercept: float, inputs: np.ndarray) -> np.ndarray:
    scores = inputs @ coefficients + intercept
    return scores if kind == "regression" else (scores > 0).astype(float)


_BOTH: tuple[Kind, ...] = ("regression", "classification")
_KNOWN = (
    ("average_risk", "average risk (ERM by Adam)", AverageRisk, _rates, "published ranges"),
    ("irm", "IRMv1", InvariantRiskMinimization, _irm, "published ranges"),
    ("and_mask", "AND-mask", AgreementMask, _mask, "published ranges"),
    ("vrex", "V-REx", RiskExtrapolation, _extrapolation, "penalty 10^U(-1, 5) as in DomainBed"),
    ("group_dro", "Group DRO", GroupDRO, _group_dro, "rate 10^U(-3, -1) as in DomainBed"),
    ("fish", "Fish", Fish, _fish, "meta step size 0.05, 0.1 or 0.5 as in DomainBed"),
)


def _method(name: str, title: str, kind: type, draw: HyperParameters, ranges: str, standardize: bool) -> ComparedMethod:
    tuning = f"{DRAWS} draws of hyper-parameters ({ranges}), chosen on validation rows"
    return ComparedMethod(
        f"{name}_standardized" if standardize else name,
        f"{title}, standardised" if standardize else title,
        f"{tuning}; features standardised" if standardize else f"{tuning}; features as they are",
        _BOTH,
        partial(fit_one, kind, draw, standardize),
        __name__,
        fit_all=partial(fit_tuned, kind, draw, standardize),
        # Elsewhere the features have one scale, or nearly, as they are; 20 draws of 10,000 steps are too much for many
        # tables.
        groups=("unit tests",) if standardize else ("unit tests", "toy model", "structural models", "real tables"),
    )


EXPLICIT = tuple(
    _method(name, title, kind, draw, ranges, standardize)
    for standardize in (False, True)
    for name, title, kind, draw, ranges in _KNOWN
)
