"""The head in closed form: what it leaves out, and how many components it takes."""

import numpy as np
import pytest

from holdfast.core.class_moments import collect_class_moments
from holdfast.core.grouping import Grouping
from holdfast.embeddings import balance_rows, discover, invariant_head_of


def _problem(seed, rows, strengths, size=40, decay=0.9):
    """Class means along a signal in all directions, and a shortcut along one, of a strength that varies."""
    random = np.random.default_rng(seed)
    y, e = random.integers(2, size=rows), random.integers(len(strengths), size=rows)
    signal = np.zeros(size)
    signal[1:13] = 0.3
    x = random.standard_normal((rows, size)) + np.outer(y - 0.5, signal)
    x[:, 0] += (y - 0.5) * np.asarray(strengths)[e]
    return x * decay ** np.arange(size), y, Grouping(e, list(range(len(strengths))))


def test_the_head_is_the_discriminant_without_the_direction():
    """Against the textbook formula on the rows themselves."""
    x, y, grouping = _problem(0, 6000, (1.0, 3.0), size=5)
    head = invariant_head_of(collect_class_moments(x, y, grouping), components=5)
    cells = [(grouping.codes == e) & (y == c) for e in range(2) for c in range(2)]
    means = np.array([x[cell].mean(0) for cell in cells]).reshape(2, 2, 5)
    within = sum((x[cell] - x[cell].mean(0)).T @ (x[cell] - x[cell].mean(0)) for cell in cells) / (6000 - 4)
    values, vectors = np.linalg.eigh(within)
    root = vectors / np.sqrt(values) @ vectors.T
    differences = (means[:, 1] - means[:, 0]) @ root
    u = differences[1] - differences[0]
    sizes = np.array([1 / (1 / cells[2 * e].sum() + 1 / cells[2 * e + 1].sum()) for e in range(2)])
    mean = sizes @ differences / sizes.sum()
    expected = root @ (mean - u * (u @ mean) / (u @ u))
    found = np.diff(head.coefficients, axis=0)[0]
    assert np.allclose(found, expected, rtol=1e-2, atol=1e-2)
    assert head.classes == (0, 1)


def test_what_varies_is_not_used_in_a_new_environment():
    """Accuracy where the shortcut is reversed, against the pooled discriminant and against the best possible."""
    x, y, grouping = _problem(1, 40_000, (2.0, 3.0))
    head = invariant_head_of(collect_class_moments(x, y, grouping))
    new, labels, _ = _problem(2, 20_000, (-2.5,))
    scores = new @ np.diff(head.coefficients, axis=0)[0] + np.diff(head.intercepts)[0]
    single = Grouping(np.zeros(len(y), int), ["all"])
    pooled = invariant_head_of(collect_class_moments(x, y, single), components=40)
    shortcut = new @ np.diff(pooled.coefficients, axis=0)[0] + np.diff(pooled.intercepts)[0]
    # the signal alone has a distance of 0.3 sqrt(12) = 1.04 between the classes: Phi(0.52) = 0.698
    assert np.mean((scores > 0) == labels) > 0.65
    assert np.mean((shortcut > 0) == labels) < 0.3
    assert head.quality.varying == 1


@pytest.mark.parametrize("rows", [3000, 30_000])
def test_the_margin_chooses_components_as_new_rows_would(rows):
    """Over 10 draws, the chosen number is on average within 0.02 of the best number in hindsight."""
    lost = []
    for seed in range(10):
        x, y, grouping = _problem(10 + seed, rows, (2.0, 3.0))
        moments = collect_class_moments(x, y, grouping)
        new, labels, _ = _problem(100 + seed, 5000, (-2.5,))
        candidates = (2, 4, 8, 16, 32, 40)
        accuracies = []
        for count in candidates:
            one = invariant_head_of(moments, components=count)
            scores = new @ np.diff(one.coefficients, axis=0)[0] + np.diff(one.intercepts)[0]
            accuracies.append(np.mean((scores > 0) == labels))
        chosen = invariant_head_of(moments, components=candidates).quality.components
        lost.append(max(accuracies) - accuracies[candidates.index(chosen)])
    assert np.mean(lost) < 0.02


def test_several_classes_and_numbers():
    random = np.random.default_rng(0)
    y, e = random.integers(3, size=9000), random.integers(2, size=9000)
    x = random.standard_normal((9000, 4)) + 2 * np.eye(4)[:, :3].T[y]
    x[:, 3] += y * np.array([1.0, 3.0])[e]
    head = invariant_head_of(collect_class_moments(x, y, Grouping(e, [0, 1])), components=4)
    assert head.variation.count == 1
    assert head.coefficients.shape == (3, 4)
    new = random.standard_normal((9000, 4)) + 2 * np.eye(4)[:, :3].T[y]
    assert np.mean((new @ head.coefficients.T + head.intercepts).argmax(1) == y) > 0.85

    target = random.standard_normal(9000)
    x = random.standard_normal((9000, 3)) + np.column_stack([target, target * np.array([2.0, -0.5])[e], 0 * target])
    moments = collect_class_moments(np.column_stack([5 + 3 * target, x]), np.zeros(9000, int), Grouping(e, [0, 1]))
    line = invariant_head_of(moments, continuous=True)
    # y given x = y + noise of the same variance: half of x, in units of 3 about 5
    assert np.allclose(line.coefficients, [[1.5, 0.0, 0.0]], atol=0.1)
    assert line.intercepts[0] == pytest.approx(5, abs=0.1)


def test_errors_name_the_argument():
    x, y, grouping = _problem(0, 100, (1.0, 2.0), size=3)
    with pytest.raises(ValueError, match="components must be whole numbers of at least 1, got 0"):
        invariant_head_of(collect_class_moments(x, y, grouping), components=0)


def test_rows_that_leave_no_variance_within_classes_are_refused():
    """Four means of classes in environments take four degrees of freedom of the rows."""
    random = np.random.default_rng(0)
    for rows, message in ((8, "rows must be at least 9, 5 more than the 4 means .* in 2 environments, got 8"), (9, "")):
        y, grouping = np.arange(rows) % 2, Grouping(np.arange(rows) // 4 % 2, [0, 1])
        moments = collect_class_moments(random.standard_normal((rows, 3)), y, grouping)
        if message:
            with pytest.raises(ValueError, match=message):
                invariant_head_of(moments)
        else:
            assert np.isfinite(invariant_head_of(moments).coefficients).all()
    one_class = collect_class_moments(
        random.standard_normal((20, 3)), np.zeros(20, int), Grouping(np.arange(20) % 2, [0, 1])
    )
    with pytest.raises(ValueError, match="targets must be of at least 2 classes, got 1"):
        invariant_head_of(one_class)


def test_environments_without_two_common_classes_are_not_said_to_agree():
    random = np.random.default_rng(0)
    y = np.arange(100) // 50
    head = invariant_head_of(
        collect_class_moments(random.standard_normal((100, 3)) + y[:, None], y, Grouping(y, [0, 1]))
    )
    assert head.sentences[0].startswith("Nothing can be compared")


def test_what_is_printed_is_short():
    x, y, grouping = _problem(0, 400, (1.0, 2.0), size=3)
    head = invariant_head_of(collect_class_moments(x, y, grouping))
    for each in (head, head.variation, discover(x, y, grouping.codes), balance_rows(y, grouping.codes)):
        assert len(repr(each)) < 120, each
