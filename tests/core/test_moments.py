import numpy as np
import pytest

from holdfast.core import group_rows
from holdfast.core.moments import BLOCK_ROWS, add_moments, collect_moments, standardized


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    x = random.standard_normal((300, 4)) * [1, 2, 3, 4] + [1e6, 0, -5, 3]
    return x, x @ [1.0, 0.5, 0, 0] + random.standard_normal(300), random.integers(0, 3, 300)


def test_moments_are_those_of_the_standardised_rows(table):
    x, y, codes = table
    found = standardized(collect_moments(x, y, group_rows(codes, 300)))
    z, t = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    for number in range(3):
        rows = codes == number
        np.testing.assert_allclose(found.second[number], z[rows].T @ z[rows] / rows.sum(), atol=1e-8)
        np.testing.assert_allclose(found.cross[number], z[rows].T @ t[rows] / rows.sum(), atol=1e-8)
        np.testing.assert_allclose(found.square[number], np.mean(t[rows] ** 2), atol=1e-8)
    np.testing.assert_allclose(found.location, np.append(x.mean(0), y.mean()))


def test_within_centring_removes_the_level_of_each_environment(table):
    x, y, codes = table
    moved = x + 7 * codes[:, None], y - 30 * codes
    plain, shifted = (
        standardized(collect_moments(*rows, group_rows(codes, 300)), within=True) for rows in ((x, y), moved)
    )
    np.testing.assert_allclose(plain.second, shifted.second, atol=1e-8)
    np.testing.assert_allclose(plain.cross, shifted.cross, atol=1e-8)


def test_chunks_in_any_order_give_the_same_moments(table):
    x, y, codes = table
    labels = np.array(["b", "a", "c"])[codes]
    whole = collect_moments(x, y, group_rows(labels, 300))
    order = np.random.default_rng(1).permutation(300)
    total = None
    for part in np.array_split(order, 7):
        chunk = collect_moments(x[part], y[part], group_rows(labels[part], len(part)))
        total = chunk if total is None else add_moments(total, chunk)
    positions = [total.labels.index(label) for label in whole.labels]
    np.testing.assert_allclose(standardized(total).second[positions], standardized(whole).second, atol=1e-8)


def test_more_rows_than_a_block():
    random = np.random.default_rng(2)
    x, y = random.standard_normal((2 * BLOCK_ROWS + 5, 2)), random.standard_normal(2 * BLOCK_ROWS + 5)
    np.testing.assert_allclose(standardized(collect_moments(x, y)).second[0], np.corrcoef(x.T), atol=1e-10)


def test_a_weight_counts_rows(table):
    x, y, codes = table
    weights = np.random.default_rng(3).integers(1, 4, 300)
    weighted = collect_moments(x, y, group_rows(codes, 300), weights.astype(float))
    rows = np.repeat(np.arange(300), weights)
    repeated = collect_moments(x[rows], y[rows], group_rows(codes[rows], len(rows)))
    np.testing.assert_allclose(standardized(weighted).cross, standardized(repeated).cross, atol=1e-8)
    np.testing.assert_allclose(weighted.counts, repeated.counts)


def test_constant_columns_are_found():
    x = np.column_stack([np.full(50, 0.1), np.arange(50.0)])
    assert standardized(collect_moments(x, np.arange(50.0))).constant.tolist() == [True, False]


def test_chunks_of_another_width_are_refused(table):
    x, y, _ = table
    with pytest.raises(ValueError, match="must have 4 features like the first, got 3"):
        add_moments(collect_moments(x, y), collect_moments(x[:, :3], y))
