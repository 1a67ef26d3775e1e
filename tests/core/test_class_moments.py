import numpy as np
import pytest

from holdfast.core.class_moments import add_class_moments, class_statistics, collect_class_moments
from holdfast.core.grouping import group_rows


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])[random.integers(3, size=2000)]
    y = np.array(["no", "perhaps", "yes"])[random.integers(3, size=2000)]
    x = random.standard_normal((2000, 3)) @ random.standard_normal((3, 3)) + (y == "yes")[:, None]
    return x, y, labels


def _moments(x, y, labels, weights=None):
    return collect_class_moments(x, y, group_rows(labels, len(x)), weights)


def test_moments_are_those_of_the_rows(table):
    x, y, labels = table
    found = class_statistics(_moments(x, y, labels))
    own = x[(labels == "b") & (y == "yes")]
    np.testing.assert_allclose(found.means[1, 2] * found.scale + found.location, own.mean(0), rtol=1e-10)
    covariance = found.covariances[1, 2] * np.outer(found.scale, found.scale)
    # ten rows of the pooled covariance are among those of a class
    pooled = found.within * np.outer(found.scale, found.scale)
    expected = ((len(own) - 1) * np.cov(own.T) + 10 * pooled) / (len(own) + 9)
    np.testing.assert_allclose(covariance, expected, rtol=1e-8)


def test_chunks_add_up_whatever_they_hold(table):
    """The first chunk lacks an environment and a class; both are found later."""
    x, y, labels = table
    order = np.argsort((labels == "a") | (y == "no"), kind="stable")
    x, y, labels = x[order], y[order], labels[order]
    parts = [_moments(x[rows], y[rows], labels[rows]) for rows in np.split(np.arange(2000), [100, 150, 1700])]
    assert len(parts[0].labels) == len(parts[0].classes) == 2
    total = parts[0]
    for part in parts[1:]:
        total = add_class_moments(total, part)
    whole = _moments(x, y, labels)
    assert total.classes == whole.classes
    again = [total.labels.index(label) for label in whole.labels]
    np.testing.assert_allclose(total.counts[again], whole.counts)
    for name in ("means", "covariances"):
        found, expected = (getattr(class_statistics(each), name) for each in (total, whole))
        np.testing.assert_allclose(found[again], expected, atol=1e-10)


def test_weights_are_repeated_rows(table):
    x, y, labels = table
    weights = np.random.default_rng(1).integers(1, 4, size=2000)
    rows = np.repeat(np.arange(2000), weights)
    found = class_statistics(_moments(x, y, labels, weights.astype(float)))
    expected = class_statistics(_moments(x[rows], y[rows], labels[rows]))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_offsets_and_units_change_nothing(table):
    """An offset of 1e7 leaves nine digits of a standard deviation of one."""
    x, y, labels = table
    plain = class_statistics(_moments(x, y, labels))
    moved = class_statistics(_moments(x * [1e-140, 1, 1e140] + [0, 1e7, 0], y, labels))
    np.testing.assert_allclose(moved.means, plain.means, atol=1e-6)
    np.testing.assert_allclose(moved.covariances, plain.covariances, atol=1e-6)
    assert not moved.constant.any()


def test_chunks_of_other_tables_are_refused(table):
    x, y, labels = table
    with pytest.raises(ValueError, match="chunks must have 3 features like the first, got 2"):
        add_class_moments(_moments(x, y, labels), _moments(x[:, :2], y, labels))
