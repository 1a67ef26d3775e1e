"""The public tests by name: where the data come from, how many seeds are run, and what is measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from holdfast.datasets.linear_unit_tests import LINEAR_UNIT_TESTS, linear_unit_test
from holdfast.datasets.real_tables import LOOKED_AT, REAL_TABLES, Half, half_of, real_dataset
from holdfast.datasets.splits import Dataset, Kind
from holdfast.datasets.structural import structural_dataset
from holdfast.datasets.toy import TOY_SETTINGS, toy_dataset
from holdfast_studies.comparison.methods.base import Measure


@dataclass(frozen=True)
class Group:
    """Tests that share their tables.

    Attributes:
        name: the heading.
        about: what the tests have in common, and what the numbers mean.
        measures: one table each; methods are ranked by the first.
        many: whether there are so many tests that they are summarised as one, relative to least squares.

    Example:
        >>> TOY_MODEL.measures
        ('coefficient_error', 'false_coefficient')
    """

    name: str
    about: str
    measures: tuple[Measure, ...]
    many: bool = False


UNIT_TESTS = Group(
    "unit tests",
    "Linear unit tests for invariance discovery (Aubin et al. 2021): 3 environments of 10,000 rows, 5 "
    "invariant and 5 spurious inputs, rotated where the name ends in s. Error on rows whose spurious inputs are "
    "permuted, mean over environments: squared error for Example1 and 1s, share of wrong labels for the others.",
    ("error",),
)
MORE_ENVIRONMENTS = Group(
    "unit tests with more environments",
    "Example3s with 6 and 10 environments. With 3 the differences between environments "
    "span only two of the five spurious directions; with 6 they span all. Share of wrong labels on rows whose spurious "
    "inputs are permuted.",
    ("error",),
)
TOY_MODEL = Group(
    "toy model",
    "Three causes of the target, three effects whose strength changes, six features of noise; 4 "
    "environments of 5,000 rows. Distance of the coefficients to the true ones; largest coefficient that should be 0.",
    ("coefficient_error", "false_coefficient"),
)
STRUCTURAL_MODELS = Group(
    "structural models",
    "Random linear structural models of 8 features and a target, 5 environments of 1,000 rows "
    "with interventions; tested under stronger interventions on everything but the target. Squared error; distance to "
    "the effects of the true causes.",
    ("error", "coefficient_error"),
)
REAL_DATA = Group(
    "real tables",
    "One environment, or a tenth of them, is held out in turn. Squared error in units of the variance "
    "of the target in training, or share of wrong labels; mean over folds, and that of the worst environment of each.",
    ("error", "worst_error"),
)
MANY_TABLES = Group(
    "many real tables",
    "Further real tables, folds as before; half of them were put aside before anything was chosen. Each table counts "
    "once: the logarithm of the error relative to that of least squares on the same rows, or of the wrong labels "
    "relative to logistic regression, mean over folds (0.05: 5 % worse); and the share of tables on which that is over "
    "2 % worse.",
    ("error",),
    many=True,
)
GROUPS = (UNIT_TESTS, MORE_ENVIRONMENTS, TOY_MODEL, STRUCTURAL_MODELS, REAL_DATA, MANY_TABLES)
# Where tests go that name no group.
OWN_TESTS = Group(
    "own tests",
    "Tests that were passed as objects. Squared error or share of wrong labels on the test rows, mean over "
    "environments, and that of the worst environment.",
    ("error", "worst_error"),
)


@dataclass(frozen=True)
class PublicTest:
    """A test that methods are run on.

    Attributes:
        name: on the command line and in tables.
        about: one sentence.
        kind: regression or classification.
        seeds: how many seeds, or folds, the full comparison takes.
        draw: seed -> data set.
        group: the tables that it belongs to.
        home: the module whose code decides the data. If it is None, nothing tells whether a result is still valid, and
            no result is cached.
        folds: whether a seed is a fold of real data and not a draw.
        half: of the tables on which a default is chosen, or of those put aside; None for a test that is in neither.
        environments: how many there are; with `features` it decides which methods are affordable. None: all are.
        features: how many there are, or None.

    Example:
        >>> small = PublicTest("small", "toy model with few rows", "regression", 5,
        ...                    partial(toy_dataset, 1.0, 0.5, samples=100))
        >>> small.draw(0).train.inputs.shape, small.group.name
        ((400, 12), 'own tests')
    """

    name: str
    about: str
    kind: Kind
    seeds: int
    draw: Callable[[int], Dataset]
    group: Group = OWN_TESTS
    home: str | None = None
    folds: bool = False
    half: Half | None = None
    environments: int | None = None
    features: int | None = None

    def seed_count(self, asked: int | None) -> int:
        """The number of seeds to run if `asked` of them are asked for: real data have no more than their folds."""
        if asked is None:
            return self.seeds
        return min(asked, self.seeds) if self.folds else asked


def _public_tests() -> Iterator[PublicTest]:
    source = "holdfast.datasets.linear_unit_tests"
    for name in LINEAR_UNIT_TESTS:
        kind: Kind = "regression" if name.startswith("Example1") else "classification"
        draw = partial(linear_unit_test, name)
        yield PublicTest(name, f"linear unit test {name}", kind, 50, draw, UNIT_TESTS, source)
    for count in (6, 10):
        draw = partial(linear_unit_test, "Example3s", environments=count)
        about = f"linear unit test Example3s with {count} environments"
        yield PublicTest(f"Example3s_{count}", about, "classification", 50, draw, MORE_ENVIRONMENTS, source)
    for bias, heterogeneity in TOY_SETTINGS:
        about = f"toy model, bias s={bias:g}, heterogeneity M={heterogeneity:g}"
        name, draw = f"toy_{bias:g}_{heterogeneity:g}", partial(toy_dataset, bias, heterogeneity)
        yield PublicTest(name, about, "regression", 20, draw, TOY_MODEL, "holdfast.datasets.toy")
    about, source = "random linear structural models under interventions", "holdfast.datasets.structural"
    yield PublicTest("structural", about, "regression", 50, structural_dataset, STRUCTURAL_MODELS, source)
    for group in (REAL_DATA, MANY_TABLES):
        for name, table in REAL_TABLES.items():
            if (name in LOOKED_AT) is (group is REAL_DATA):
                draw, source = partial(real_dataset, name), "holdfast.datasets.real_tables"
                test = PublicTest(name, table.about, table.kind, table.folds, draw, group, source, folds=True)
                many = replace(test, half=half_of(name), environments=table.environments, features=table.width)
                yield many if group is MANY_TABLES else test


PUBLIC_TESTS = {test.name: test for test in _public_tests()}
"""The tests of the comparison by name."""
