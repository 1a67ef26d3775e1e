import numpy as np
import pytest

from holdfast.estimators.description import joint_directions, principal_directions


@pytest.fixture
def covariances():
    """Three environments whose covariances share oblique axes."""
    random = np.random.default_rng(0)
    mixing = random.standard_normal((5, 5))
    return np.stack([mixing.T @ np.diag(random.uniform(0.5, 3, 5)) @ mixing for _ in range(3)])


def test_joint_directions_are_uncorrelated_in_every_environment(covariances):
    directions = joint_directions(covariances, np.ones(3) / 3)
    turned = directions.T @ covariances @ directions
    off = turned - np.einsum("eii->ei", turned)[:, :, None] * np.eye(5)
    assert np.abs(off).max() < 1e-6
    np.testing.assert_allclose(turned.mean(0), np.eye(5), atol=1e-8)


def test_directions_without_variance_are_left_out(covariances):
    padded = np.zeros((3, 6, 6))
    padded[:, :5, :5] = covariances
    assert principal_directions(padded, np.ones(3) / 3).shape == (6, 5)
