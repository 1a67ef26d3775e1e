import jax
import numpy as np
import pytest

from holdfast.environments import gaussian, table, two_point, uniform

DRAWS = 40_000


def draws(environments):
    return np.asarray(jax.vmap(environments.draw)(jax.random.split(jax.random.key(0), DRAWS)), float)


@pytest.mark.parametrize(("law", "variance"), [(two_point, 4.0), (uniform, 4.0 / 3), (gaussian, 4.0)])
@pytest.mark.parametrize("shared", [True, False])
def test_laws_have_the_stated_mean_variance_and_dependence(law, variance, shared):
    environments = law(1.0, 2.0, rank=2, off_diagonal=0.5, shared=shared)
    values = draws(environments)
    np.testing.assert_allclose(values, np.swapaxes(values, 1, 2))
    # Five standard errors of a mean; the fourth moment of the strengths is at most 3 * 2^4.
    np.testing.assert_allclose(values.mean(0), environments.mean, atol=5 * 2 / np.sqrt(DRAWS))
    first, second = values[:, 0, 0] - 1, values[:, 1, 1] - 1
    assert first.var() == pytest.approx(variance, abs=5 * np.sqrt(48 / DRAWS))
    correlation = np.corrcoef(first, second)[0, 1]
    assert correlation == pytest.approx(1.0) if shared else abs(correlation) < 5 / np.sqrt(DRAWS)
    assert np.abs(values[:, 0, 1]).max() > 0.4


def test_table_is_drawn_with_its_probabilities():
    environments = table([1.0, 2.0, 5.0], [0.2, 0.5, 0.3])
    values = draws(environments)[:, 0, 0]
    for strength, probability in ((1.0, 0.2), (2.0, 0.5), (5.0, 0.3)):
        error = 5 * np.sqrt(probability * (1 - probability) / DRAWS)
        assert (values == strength).mean() == pytest.approx(probability, abs=error)
    assert float(environments.mean[0, 0]) == pytest.approx(2.7)


def test_table_takes_strengths_directions_and_matrices():
    assert table([[1.0, 2.0]]).strengths.tolist() == [[[1.0, 0.0], [0.0, 2.0]]]
    assert table([[[1.0, 3.0], [3.0, 2.0]]]).rank == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "must not be empty"),
        (([1.0, np.nan],), "must be finite"),
        (([[[1.0, 2.0], [0.0, 1.0]]],), "symmetric"),
        (([1.0, 2.0], [0.5, 0.6]), "sum to 1"),
        (([1.0, 2.0], [1.0]), "2 non-negative"),
    ],
)
def test_bad_tables_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        table(*arguments)


def test_too_many_independent_directions_are_refused():
    with pytest.raises(ValueError, match="spurious_rank must be at most 10"):
        two_point(1.0, 2.0, rank=11, shared=False)
