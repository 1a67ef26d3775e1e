"""Laws, batchings, oracles, ensembles and algorithms of the user's own, composed by `simulate`."""

import json
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from holdfast import Settings, Trajectory, simulate
from holdfast.algorithms import Factors, factored
from holdfast.apps.cli.terminal.simulations import show_trajectory
from holdfast.core import Algorithm
from holdfast.core.linear_algebra import pack_symmetric, unpack_symmetric
from holdfast.core.run import _advance
from holdfast.sensing import oracles
from holdfast.sensing import settings as named_parts
from holdfast.sensing.batching import Batch, hetero
from holdfast.sensing.builder import Parts, SensingBuilder
from holdfast.sensing.ensembles import Ensemble, gaussian, symmetric_gaussian
from holdfast.sensing.environments import Deviation, FiniteEnvironments, continuum, table, two_point
from holdfast.sensing.problem import MatrixSensing
from holdfast.theory import diagnose, exponents, order_floor, simulate_shares, stationary_law
from holdfast.theory.diagnosis import Region, predicted_region

SMALL = Settings(dimension=6, batch_size=50, steps=20, every=10, seeds=3)
LAPLACE = Deviation(
    lambda key, shape: jax.random.laplace(key, shape, jnp.float32),
    lambda p: -np.sign(np.asarray(p) - 0.5) * np.log(1 - 2 * np.abs(np.asarray(p) - 0.5)),
)
laplace = partial(continuum, LAPLACE)


class Moving(NamedTuple):
    factors: Factors
    velocity: Factors


def heavy_ball(gradient, dimension, step_size, init_scale, *, momentum=0.0, dtype=None):
    """Factored gradient descent with momentum."""
    plain = factored(gradient, dimension, step_size, init_scale, dtype=dtype)

    def init():
        return Moving(plain.init(), jax.tree.map(jnp.zeros_like, plain.init()))

    def step(key, state, number):
        change = jax.tree.map(jnp.subtract, plain.step(key, state.factors, number), state.factors)
        velocity = jax.tree.map(lambda old, new: momentum * old + new, state.velocity, change)
        return Moving(jax.tree.map(jnp.add, state.factors, velocity), velocity)

    return Algorithm(init, step, lambda state: state.factors)


def in_turn(environments, batch_size):
    """One environment after the other."""

    def draw(key, step):
        strength = jnp.asarray(environments.strengths)[step % environments.count]
        return Batch(strength[None], jnp.full(1, 1 if batch_size is None else batch_size, strength.dtype))

    return draw


def same(left, right):
    xr.testing.assert_allclose(left.data.drop_attrs(), right.data.drop_attrs(), rtol=1e-5)


def test_a_law_can_be_swept_like_a_named_one():
    settings = Settings(dimension=6, steps=40, every=20, seeds=2, oracle="population", heterogeneity=(3.0, 9.0))
    same(simulate(settings, environments=two_point), simulate(settings))
    found = simulate(settings, environments=laplace)
    assert found.data["spurious"].dims == ("heterogeneity", "seed", "step")
    fixed = simulate(
        Settings(dimension=6, steps=40, every=20, seeds=2, oracle="population"), environments=laplace(1.0, 3.0)
    )
    np.testing.assert_allclose(found.data["spurious"].sel(heterogeneity=3.0), fixed.data["spurious"], rtol=1e-4)


def test_a_law_decides_what_simulations_and_theory_find():
    """The mean growth of log Q^2 over seeds is the exponent that quadrature gives."""
    step_size, steps, seeds = 0.05, 100, 400
    settings = Settings(
        dimension=2, steps=steps, every=steps, seeds=seeds, oracle="population", step_size=step_size, init_scale=1e-8
    )
    grown = np.log(simulate(settings, environments=laplace).final["spurious"].values)
    growth = (grown - 2 * np.log(1e-8)) / (2 * steps)
    expected = exponents(laplace(1.0, 6.0), step_size)[0]
    assert growth.mean() == pytest.approx(expected, abs=4 * growth.std() / np.sqrt(seeds))
    assert diagnose(laplace(1.0, 4.0)).window.low == pytest.approx(0.0538555, abs=1e-6)
    assert predicted_region(laplace(1.0, 4.0), 0.1) is Region.INVARIANT_ONLY


def test_a_batching_sees_the_number_of_the_step():
    settings = Settings(dimension=4, steps=2, every=1, seeds=1, oracle="population", init_scale=1e-4)
    spurious = simulate(settings, environments=table([2.0, -4.0]), batching=in_turn).data["spurious"].values[0]
    np.testing.assert_allclose(spurious[1:] / spurious[:-1], [(1 + 0.05 * 2) ** 2, (1 - 0.05 * 4) ** 2], rtol=1e-4)


def test_an_oracle_takes_the_place_of_the_named_one():
    settings = Settings(dimension=6, steps=20, every=10, seeds=3)
    same(
        simulate(settings, oracle=oracles.population),
        simulate(Settings(**{**settings.asdict(), "oracle": "population"})),
    )


def test_an_algorithm_has_axes_of_its_own(tmp_path, capsys):
    settings = replace(SMALL, bias=(0.5, 1.0))
    found = simulate(settings, algorithm=heavy_ball, sweep={"momentum": [0.0, 0.5, 0.9]})
    assert found.data["invariant"].dims == ("bias", "momentum", "seed", "step")
    assert found.axes == {"bias": [0.5, 1.0], "momentum": [0.0, 0.5, 0.9]}
    plain = simulate(settings)
    np.testing.assert_allclose(found.data["invariant"].sel(momentum=0.0), plain.data["invariant"], rtol=1e-4)
    assert (found.final["invariant"].sel(momentum=0.9) > found.final["invariant"].sel(momentum=0.0)).all()
    found.save(tmp_path / "runs.zarr")
    loaded = Trajectory.load(tmp_path / "runs.zarr")
    xr.testing.assert_equal(loaded.data, found.data)
    assert (loaded.axes, loaded.outcomes) == (found.axes, found.outcomes)
    assert loaded.data.attrs["algorithm"] == "heavy_ball"
    summary = json.loads(json.dumps(found.summary()))
    assert summary["axes"]["momentum"] == [0.0, 0.5, 0.9]
    assert np.shape(summary["outcome"]) == (2, 3, 3)
    show_trajectory(found)
    assert "momentum" in capsys.readouterr().out


def test_equal_parts_compile_once():
    simulate(SMALL, environments=laplace, algorithm=heavy_ball, sweep={"momentum": [0.1]})
    before = _advance._cache_size()
    changed = replace(SMALL, steps=7, bias=0.3)
    simulate(changed, environments=laplace, algorithm=heavy_ball, sweep={"momentum": [0.7]})
    assert _advance._cache_size() == before
    parts = SensingBuilder.of(SMALL, Parts(laplace, hetero))
    assert parts == SensingBuilder.of(changed, Parts(laplace, hetero))
    assert parts != SensingBuilder.of(SMALL, Parts(laplace, in_turn))


@pytest.mark.parametrize(
    ("changes", "own", "message"),
    [
        ({}, {"sweep": {"momentum": [0.1]}}, "sweep must be left out unless algorithm is given, got momentum"),
        ({}, {"algorithm": heavy_ball, "sweep": {"decay": [0.1]}}, r"of the algorithm \(momentum\), got 'decay'"),
        ({}, {"algorithm": heavy_ball, "sweep": {"momentum": []}}, "momentum a sequence of finite numbers"),
        ({}, {"algorithm": heavy_ball, "sweep": {"momentum": 0.5}}, "momentum a sequence of finite numbers"),
        ({}, {"algorithm": heavy_ball, "sweep": {"bias": [0.5]}}, r"swept by Settings\(bias="),
        ({}, {"algorithm": heavy_ball, "sweep": {"spurious": [0.5]}}, "unlike the settings and signals"),
        ({}, {"algorithm": heavy_ball, "sweep": {"momentum": [0.5, 0.5]}}, "each once"),
        ({}, {"algorithm": heavy_ball, "sweep": {"momentum": [True]}}, "0 and 1 for False and True"),
        ({"parameterisation": "signed"}, {"algorithm": heavy_ball}, "parameterisation must be left out"),
        ({"noise_variance": 0.1}, {"oracle": oracles.population}, "noise_variance must be left out when oracle"),
        ({"oracle": "data", "samples_per_environment": 60}, {"batching": hetero}, "samples_per_environment must be"),
        ({}, {"environments": lambda bias, spread, **_: bias}, "or a law that makes them"),
        ({}, {"environments": [1.0, 2.0]}, "environments must be environments or a law"),
        ({}, {"environments": lambda bias, spread, **_: table([bias - spread, bias + spread])}, "that jax can trace"),
        (
            {"spurious_rank": 2},
            {"environments": lambda bias, spread, **_: FiniteEnvironments(bias * jnp.ones((1, 1, 1)), jnp.ones(1))},
            "spurious_rank must be 1, the rank of the environments",
        ),
        ({"batching": "full"}, {"environments": laplace}, "batching must be hetero or pooled for a continuum"),
    ],
)
def test_parts_that_do_not_go_together(changes, own, message):
    with pytest.raises(ValueError, match=message):
        simulate(replace(SMALL, **changes), **own)


def changed(change):
    """The maker of an algorithm that is not quite `factored`."""
    return lambda *settings, **own: change(factored(*settings, **own))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"algorithm": "signed"}, "algorithm must be a function that makes it for each run"),
        ({"algorithm": Algorithm(jnp.zeros, lambda key, state, number: state)}, "algorithm must be a function"),
        ({"batching": "pooled"}, "batching must be a function that makes it for each run"),
        ({"algorithm": changed(lambda made: None)}, "algorithm must make an Algorithm"),
        ({"algorithm": changed(lambda made: made._replace(parameters=lambda state: state[0]))}, "-> Factors"),
        (
            {"algorithm": changed(lambda made: made._replace(step=lambda *given: tuple(made.step(*given))))},
            r"as init does, Factors\(positive=float32\[6, 6\].*, got \(float32\[6, 6\]",
        ),
        ({"batching": lambda environments, size: None}, r"batching must make a function \(key, step\) -> Batch"),
        ({"batching": lambda environments, size: lambda key, step: 1}, "-> Batch, got 1"),
        ({"oracle": lambda problem: None}, r"oracle must make a function \(key, fitted, batch\)"),
        ({"oracle": lambda problem: lambda key, fitted, batch: fitted[0]}, r"-> matrix of shape \(6, 6\)"),
    ],
)
def test_contracts_are_checked_before_anything_is_compiled(own, message):
    with pytest.raises(ValueError, match=message):
        simulate(SMALL, **own)


def test_parts_are_noted_by_names_that_stay():
    notes = simulate(SMALL, environments=laplace, algorithm=partial(heavy_ball, momentum=0.5)).data.attrs
    assert notes["algorithm"] == "heavy_ball(momentum=0.5)"
    assert notes["environments"] == "continuum(Deviation(<lambda>, <lambda>))"
    assert "0x" not in simulate(SMALL, environments=laplace(1.0, 6.0)).data.attrs["environments"]


@pytest.mark.parametrize("kind", ["LAWS", "BATCHINGS", "ORACLES", "ENSEMBLES", "PARAMETERISATIONS"])
def test_every_name_leads_to_a_documented_part(kind):
    for named in getattr(named_parts, kind).values():
        assert named.load().__doc__
        assert named.words


def _antisymmetric(numbers, dimension):
    """Half the difference of a square matrix and its transpose, of N(0, 1/2) entries off the diagonal."""
    square = numbers.reshape(dimension, dimension)
    return (square - square.T) / 2


# Between the two named ensembles: the antisymmetric part has half the variance that independent entries give it.
leaning = Ensemble(
    size=lambda dimension: symmetric_gaussian.size(dimension) + dimension**2,
    pack=lambda matrix: jnp.append(pack_symmetric(matrix), jnp.zeros(matrix.size, matrix.dtype)),
    unpack=lambda numbers, dimension: (
        unpack_symmetric(numbers[: -(dimension**2)])
        + np.float32(np.sqrt(0.5)) * _antisymmetric(numbers[-(dimension**2) :], dimension)
    ),
    entry_variance=0.75,
)


@pytest.mark.parametrize("ensemble", [symmetric_gaussian, leaning, gaussian])
@pytest.mark.parametrize("name", ["law", "data"])
def test_an_ensemble_decides_the_antisymmetric_noise_of_a_gradient(ensemble, name):
    """Off the diagonal its variance is (tau - 1/2) ||W||_F^2 / m, by data and by the exact law."""
    basis, count = np.eye(3, dtype=np.float32), 40
    problem = MatrixSensing(basis[:, :1], jnp.ones(1), basis[:, 1:2], two_point(1.0, 6.0))
    oracle = oracles.law(problem, ensemble) if name == "law" else oracles.online(problem, ensemble, count)
    batch = Batch(jnp.array([[[7.0]]]), jnp.array([float(count)]))
    keys = jax.random.split(jax.random.key(0), 3000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: oracle(key, jnp.zeros((3, 3)), batch)))(keys))
    antisymmetric = ((drawn - drawn.swapaxes(1, 2)) / 2)[:, *np.triu_indices(3, 1)]
    expected = (ensemble.entry_variance - 0.5) * (1 + 7**2) / count
    assert np.square(antisymmetric).mean() == pytest.approx(expected, rel=0.05, abs=1e-9)


def test_simulations_take_an_ensemble():
    found = simulate(replace(SMALL, steps=100, every=100, seeds=40), ensemble=leaning).final["residual_norm"]
    named = [
        simulate(replace(SMALL, steps=100, every=100, seeds=40, ensemble=each)).final["residual_norm"]
        for each in ("symmetric", "gaussian")
    ]
    assert float(named[0].mean()) < float(found.mean()) < float(named[1].mean())


def test_the_theory_answers_for_an_ensemble_of_ones_own():
    law, given = two_point(1.0, 8.0), {"batch_size": 2000, "dimension": 20}
    kicked = [
        simulate_shares(law, 0.05, 200, 1e-3, ensemble=ensemble, runs=4000, **given).median
        for ensemble in ("symmetric", leaning, "gaussian")
    ]
    assert kicked[0] < kicked[1] < kicked[2]
    assert [
        order_floor(law, 0.05, 2000, order="cyclic", ensemble=ensemble) / order_floor(law, 0.05, 2000, order="cyclic")
        for ensemble in (symmetric_gaussian, leaning, "gaussian")
    ] == pytest.approx([1.0, 1.5, 2.0])
    laws = [stationary_law(law, 0.05, batch_size=2000, ensemble=each).floor for each in ("symmetric", leaning)]
    assert laws[1] == pytest.approx(1.5 * laws[0])
    assert diagnose(law, step_size=0.05, ensemble=leaning, **given).median == pytest.approx(kicked[1], rel=0.1)


def test_a_named_ensemble_and_its_object_are_one():
    same(simulate(SMALL, ensemble=gaussian), simulate(replace(SMALL, ensemble="gaussian")))
    assert "0x" not in simulate(SMALL, ensemble=leaning).data.attrs["ensemble"]


@pytest.mark.parametrize(
    ("ensemble", "message"),
    [
        ("gaussian", "ensemble must be a holdfast.sensing.ensembles.Ensemble, got 'gaussian'"),
        (leaning._replace(entry_variance=1.0), "the entry_variance of its entries off the diagonal, which is 0.75"),
        (gaussian._replace(unpack=lambda numbers, d: 2 * numbers.reshape(d, d)), "must be isotropic"),
        (gaussian._replace(pack=lambda matrix: 2 * jnp.ravel(matrix)), r"must have <unpack\(x\), W> = x . pack\(W\)"),
    ],
)
def test_ensembles_are_checked(ensemble, message):
    with pytest.raises(ValueError, match=message):
        simulate(SMALL, ensemble=ensemble)


def test_an_ensemble_is_given_once():
    with pytest.raises(ValueError, match="as an object or by name"):
        simulate(replace(SMALL, ensemble="gaussian"), ensemble=leaning)
    with pytest.raises(ValueError, match="ensemble must be one of gaussian, symmetric, or an Ensemble, got 'round'"):
        diagnose(two_point(1.0, 6.0), ensemble="round", batch_size=100)
