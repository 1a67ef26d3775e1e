"""Standard errors of the coefficients of classes against how much the coefficients vary from sample to sample."""

import numpy as np
import pytest

from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.core import group_rows
from holdfast.core.class_moments import class_statistics, collect_class_moments
from holdfast.estimators import HeteroClassifier, split_intervals
from holdfast.estimators.inference import (
    contrasts,
    discriminant_errors,
    pooled_covariance,
    softmax_errors,
    standard_errors,
)
from holdfast.estimators.pooling import blend
from holdfast.estimators.search.class_fits import linear_discriminant, softmax_regression, with_constant
from holdfast.estimators.search.evidence import LinearModel, LogisticEvidence

SAMPLES = 200
# The standard deviation of 200 values has a relative error of 1 / sqrt(400); four of these are allowed.
ALLOWED = 4 / np.sqrt(2 * SAMPLES)
MEANS = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, -1.0, 0.5]])


def _sample(random, classes, rows=300):
    """Correlated normal features, and environments that differ in their level and in the shares of the classes."""
    environments = np.arange(rows) % 2
    codes = (random.random(rows) ** np.where(environments, 1.5, 0.8) * classes).astype(int)
    noise = random.standard_normal((rows, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]])
    return MEANS[codes] + noise + environments[:, None], codes, environments


@pytest.mark.parametrize(("classes", "pooling"), [(2, 0.0), (3, 0.0), (2, 0.4), (3, 1.0)])
def test_errors_of_a_discriminant(classes, pooling):
    random = np.random.default_rng(classes)
    directions, found, errors = np.eye(3)[:, :2], [], []
    for _ in range(SAMPLES):
        x, codes, environments = _sample(random, classes)
        statistics = class_statistics(collect_class_moments(x, codes, group_rows(environments, len(x))))
        strict, pooled = linear_discriminant(statistics, directions), linear_discriminant(statistics)
        scores = blend(strict, pooled, pooling)
        found.append(contrasts(classes) @ scores.coefficients / statistics.scale)
        errors.append(discriminant_errors(statistics, directions, pooling) / statistics.scale)
    spread, stated = np.std(found, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    used = slice(None) if pooling else slice(2)
    np.testing.assert_allclose(stated[:, used], spread[:, used], rtol=ALLOWED)
    assert pooling or not stated[:, 2].any()


@pytest.mark.parametrize("pooling", [0.0, 0.4])
def test_errors_of_a_multinomial_regression(pooling):
    random = np.random.default_rng(7)
    found, errors = [], []
    for _ in range(SAMPLES):
        x, codes, environments = _sample(random, 3)
        parts, weights = group_rows(environments, len(x)).rows(), np.ones(len(x))
        fits = []
        for weight, directions in ((1 - pooling, np.eye(3)[:, :2]), (pooling, np.eye(3))):
            scores = softmax_regression((x @ directions).T, codes, 3, weights)
            fits.append((weight, directions, scores._replace(coefficients=scores.coefficients @ directions.T)))
        found.append(contrasts(3) @ blend(fits[0][2], fits[1][2], pooling).coefficients)
        errors.append(softmax_errors(x, codes, weights, parts, fits))
    spread, stated = np.std(found, axis=0), np.sqrt(np.mean(np.square(errors), axis=0))
    used = slice(None) if pooling else slice(2)
    np.testing.assert_allclose(stated[:, used], spread[:, used], rtol=ALLOWED)


def test_of_two_classes_the_multinomial_regression_has_the_errors_of_a_logistic_regression():
    """The ridge of one observation counts once for the one and half for the other, hence the tolerance."""
    x, codes, environments = _sample(np.random.default_rng(3), 2, 2000)
    z, parts = (x - x.mean(0)) / x.std(0), group_rows(environments, 2000).rows()
    scores = softmax_regression(z.T, codes, 2, np.ones(2000))
    found = softmax_errors(z, codes, np.ones(2000), parts, [(1.0, np.eye(3), scores)])
    rows = [LogisticRows(z[own].T, codes[own].astype(float), np.ones(len(own))) for own in parts]
    w, intercept = LogisticEvidence(rows).solve(np.arange(3))
    evidence = LogisticEvidence([with_constant(part) for part in rows])
    covariance = pooled_covariance(evidence, LinearModel(np.append(w, 0.0), intercept), np.arange(4))
    np.testing.assert_allclose(found[0], standard_errors(covariance, 2000, 4)[:-1], rtol=0.01)


@pytest.mark.parametrize("invariance", ["effects", "class_means"])
def test_a_summary_of_three_classes_has_intervals_and_says_which_class(invariance):
    x, codes, environments = _sample(np.random.default_rng(4), 3, 1500)
    names = np.array(["ash", "birch", "cedar"])
    model = HeteroClassifier(invariance=invariance).fit(x, names[codes], environments=environments)
    summary = model.summary()
    used = summary.table["coefficient"] != 0
    assert used.any()
    assert (summary.table.loc[used, "low"] < summary.table.loc[used, "high"]).all()
    (note,) = (note for note in summary.notes if "more than two classes" in note)
    assert all(f"{name}" in note for name in summary.stability.index)
    assert any(f"{name} for" in note for name in names)


@pytest.mark.slow
def test_intervals_of_three_classes_cover_their_coefficients():
    """The coefficients of the log-odds are known: W^-1 times the means. 60 tables x 6 numbers, about 95 % covered."""
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]])
    true = contrasts(3) @ MEANS @ np.linalg.inv(mixing.T @ mixing)
    random, covered = np.random.default_rng(5), []
    for _ in range(60):
        codes = random.integers(0, 3, 600)
        x = MEANS[codes] + random.standard_normal((600, 3)) @ mixing
        estimator = HeteroClassifier(invariance="effects", pooling=0)
        found = split_intervals(estimator, x, codes, environments=np.arange(600) % 2)
        for (feature, label), row in found.iterrows():
            if len(found) == 9:  # of all features, so that coefficients are those of the full model
                covered.append(row["low"] <= true[label, int(feature[1:])] <= row["high"])
    # intervals of one table are correlated: as if there were a third as many
    assert len(covered) > 200
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / (len(covered) / 3))
