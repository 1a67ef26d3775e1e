"""The public tests by name, each with how many seeds it is run and what is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from holdfast.datasets import (
    LINEAR_UNIT_TESTS,
    REAL_TABLES,
    TOY_SETTINGS,
    Dataset,
    Kind,
    linear_unit_test,
    real_dataset,
    structural_dataset,
    toy_dataset,
)

Measure = Literal["error", "worst_error", "coefficient_error", "false_coefficient"]


@dataclass(frozen=True)
class PublicTest:
    """A test that methods are run on.

    Attributes:
        name: on the command line.
        group: the table that shows it.
        about: one sentence.
        kind: regression or classification.
        seeds: how many draws, or folds, the full comparison takes.
        draw: seed -> Dataset.
        folds: whether a seed is a fold of real data and not a draw.
        home: the module that decides the draws.
    """

    name: str
    group: str
    about: str
    kind: Kind
    seeds: int
    draw: Callable[[int], Dataset]
    home: str
    folds: bool = False

    def seed_count(self, asked: int | None) -> int:
        """The number of seeds to run if `asked` were asked for; folds are no more than there are."""
        if asked is None:
            return self.seeds
        return min(asked, self.seeds) if self.folds else asked


# What each table shows of its tests; the first is what methods are ranked by.
GROUPS: dict[str, tuple[Measure, ...]] = {
    "unit tests": ("error",),
    "toy model": ("coefficient_error", "false_coefficient"),
    "structural models": ("error", "coefficient_error"),
    "real tables": ("error", "worst_error"),
}
ABOUT_GROUPS = {
    "unit tests": "Linear unit tests for invariance discovery (Aubin et al. 2021): 3 environments of 10,000 rows, 5 "
    "invariant and 5 spurious inputs, rotated where the name ends in s. Error on rows whose spurious inputs are "
    "permuted, mean over environments: squared error for Example1 and 1s, share of wrong labels for the others.",
    "toy model": "Three causes of the target, three effects whose strength changes, six features of noise; 4 "
    "environments of 5,000 rows. Distance of the coefficients to the true ones; largest coefficient that should be 0.",
    "structural models": "Random linear structural models of 8 features and a target, 5 environments of 1,000 rows "
    "with interventions; tested under stronger interventions on everything but the target. Squared error; distance to "
    "the effects of the true causes.",
    "real tables": "One environment, or a tenth of them, is held out in turn. Squared error in units of the variance "
    "of the target in training, or share of wrong labels; mean over folds, and that of the worst environment of each.",
}


def _tests() -> dict[str, PublicTest]:
    units = [
        PublicTest(
            name,
            "unit tests",
            f"linear unit test {name}",
            "regression" if name.startswith("Example1") else "classification",
            50,
            partial(linear_unit_test, name),
            "holdfast.datasets.linear_unit_tests",
        )
        for name in LINEAR_UNIT_TESTS
    ]
    toys = [
        PublicTest(
            f"toy_{bias:g}_{heterogeneity:g}",
            "toy model",
            f"toy model, bias s={bias:g}, heterogeneity M={heterogeneity:g}",
            "regression",
            20,
            partial(toy_dataset, bias, heterogeneity),
            "holdfast.datasets.toy",
        )
        for bias, heterogeneity in TOY_SETTINGS
    ]
    structural = PublicTest(
        "structural",
        "structural models",
        "random linear structural models under interventions",
        "regression",
        50,
        structural_dataset,
        "holdfast.datasets.structural",
    )
    real = [
        PublicTest(
            name,
            "real tables",
            table.about,
            table.kind,
            FOLDS[name],
            partial(real_dataset, name),
            "holdfast.datasets.real",
            folds=True,
        )
        for name, table in REAL_TABLES.items()
    ]
    return {test.name: test for test in (*units, *toys, structural, *real)}


# Written down, so that naming the tests does not load the tables; a test compares.
FOLDS = {"CollegeDistance": 4, "CPS1988": 4, "Exam": 10, "Hsb82": 10, "WVS": 4}


PUBLIC_TESTS = _tests()
