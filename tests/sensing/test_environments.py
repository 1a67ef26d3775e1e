import jax
import numpy as np
import pytest

import holdfast as hf
from holdfast.sensing.environments import Deviation, continuum, gaussian, table, two_point, uniform

DRAWS = 40_000


def logistic(probability):
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability)


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


@pytest.mark.parametrize(
    ("draw", "quantile", "message"),
    [
        (jax.random.logistic, lambda p: -logistic(p), "must increase with the probability"),
        (jax.random.logistic, lambda p: np.nan * logistic(p), "must increase with the probability"),
        (jax.random.logistic, lambda p: jax.numpy.asarray(p) - 0.5, "NumPy array of float64"),
        (jax.random.logistic, lambda p: np.asarray(1.0), "NumPy array of float64"),
        (jax.random.exponential, lambda p: -np.log1p(-p), "must have mean zero, got a mean of 1"),
        (jax.random.cauchy, lambda p: np.tan(np.pi * (p - 0.5)), "must have a mean, got tails"),
        (lambda key, shape: np.random.default_rng(0).logistic(size=shape), logistic, "randomness from the key"),
        (lambda key, shape: jax.random.logistic(key, (1,)), logistic, "must return finite numbers of the shape"),
        (lambda key, shape: np.nan * jax.random.logistic(key, shape), logistic, "must return finite numbers"),
        (lambda key, shape: 2 * jax.random.logistic(key, shape), logistic, "must be of one law"),
    ],
)
def test_a_deviation_that_would_be_silently_wrong_is_refused(draw, quantile, message):
    deviation = Deviation(draw, quantile)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
        continuum(deviation, 1.0, 2.0)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
        jax.jit(lambda bias: continuum(deviation, bias, 2.0).mean)(1.0)


def test_right_deviations_pass():
    """Also those that are lopsided or have heavy tails, here Pareto's with a mean but no variance."""
    pareto = Deviation(lambda key, shape: jax.random.pareto(key, 1.5, shape) - 3, lambda p: (1 - p) ** (-1 / 1.5) - 3)
    for deviation in (Deviation(jax.random.logistic, logistic), pareto):
        with np.errstate(divide="ignore"):
            assert continuum(deviation, 1.0, 2.0).mean == 1.0
    assert Deviation(jax.random.logistic, logistic).expectation(np.square) == pytest.approx(np.pi**2 / 3, rel=1e-12)


@pytest.mark.parametrize("law", [two_point, uniform])
def test_a_law_takes_one_number_at_a_time(law):
    with pytest.raises(ValueError, match=r"heterogeneity must be one number, .* got \[2.0, 4.0\]"):
        law(1.0, [2.0, 4.0])


def _kind(value):
    """An id that is the same in every process."""
    return type(value).__name__ if type(value) is object else repr(value)


ODD = [float("nan"), float("inf"), None, "3", True, {}, 1j, object()]


@pytest.mark.parametrize("law", [two_point, uniform, gaussian], ids=["two_point", "uniform", "gaussian"])
@pytest.mark.parametrize("value", ODD, ids=_kind)
def test_laws_refuse_what_is_no_finite_number(law, value):
    for arguments in ((value, 6.0), (1.0, value)):
        with pytest.raises(ValueError, match=r"^(bias|heterogeneity) must be"):
            law(*arguments)
    with pytest.raises(ValueError, match=r"^off_diagonal must be"):
        law(1.0, 6.0, rank=2, off_diagonal=value)
    with pytest.raises(ValueError, match=r"^rank must be a whole number of at least 1"):
        law(1.0, 6.0, rank=value)
    if value is not True:
        with pytest.raises(ValueError, match=r"^shared must be True or False"):
            law(1.0, 6.0, shared=value)
        with pytest.raises(ValueError, match=r"^strengths must be"):
            table([1.0, value])


@pytest.mark.parametrize(
    "name", ["step_size", "steps", "init_scale", "confidence", "tolerance", "spectrum", "dimension"]
)
@pytest.mark.parametrize("value", ODD, ids=_kind)
def test_diagnose_refuses_odd_types(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must (be|hold)"):
        hf.diagnose(two_point(1.0, 6.0), **{name: value})
    with pytest.raises(ValueError, match=r"^environments must be"):
        hf.diagnose(value)


@pytest.mark.parametrize("value", ODD, ids=_kind)
def test_simulate_refuses_odd_types(value):
    with pytest.raises(ValueError, match=r"^settings must be holdfast.Settings"):
        hf.simulate(value)
    settings = hf.Settings(dimension=4, steps=2, seeds=2)
    if value is not None:
        with pytest.raises(ValueError, match=r"^progress must be"):
            hf.simulate(settings, progress=value)
    for name in ("step_size", "dimension", "heterogeneity", "seeds", "overlap"):
        with pytest.raises(ValueError, match=rf"^{name} must be"):
            hf.Settings(**{name: value})
