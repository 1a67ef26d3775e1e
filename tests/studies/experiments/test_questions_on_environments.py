"""Parts of the experiments on optimisers, laws of strengths and panels, checked on their own."""

import numpy as np
import pytest
import xarray as xr

from holdfast.core.run import Records
from holdfast.sensing.deviations import check_deviation
from holdfast.theory.strengths import strength_atoms
from holdfast_studies.experiment import Effort
from holdfast_studies.questions import continuum, number_of_environments, strength_laws
from holdfast_studies.questions.number_of_environments import BIAS, RANK, _moving, pooled_excess
from holdfast_studies.questions.optimizers import NAMES, chosen_step_sizes
from holdfast_studies.questions.strength_laws import HEAVY, LAWS, columns_of, run_strengths


@pytest.mark.parametrize(
    ("experiment", "module", "maps"),
    [(number_of_environments, number_of_environments, 1), (continuum, strength_laws, 2)],
)
def test_what_is_judged_has_other_seeds_than_the_maps(monkeypatch, experiment, module, maps):
    """Of the runs of an experiment, in their order; nothing is computed."""
    seeds = []

    def noted(build, shared, parameters, numbers, **options):
        seeds.append(set(np.asarray(numbers).tolist()))
        names = ("invariant", "spurious", "distance", "size")
        return Records(
            np.array([0, 1]), {name: np.ones((len(numbers), 2)) for name in names}, np.full(len(numbers), -1)
        )

    monkeypatch.setattr(module, "run", noted)
    monkeypatch.setattr(number_of_environments, "PANELS", 10)
    experiment.simulate(Effort(64))
    mapped = set().union(*(each for each in seeds if 0 in each))
    judged = [each for each in seeds if 0 not in each]
    assert len(seeds) - len(judged) == maps
    assert not any(each & mapped for each in judged)


@pytest.mark.parametrize("name", LAWS)
def test_all_laws_have_one_mean_and_variance(name):
    strengths, weights = strength_atoms(LAWS[name].environments(5.0))
    mean = weights @ strengths
    assert mean == pytest.approx(1.0, abs=1e-6)
    # 4096 quantiles miss the tails of Student's t, which hold a part of its variance.
    assert weights @ np.square(strengths - mean) == pytest.approx(25.0, rel=0.15 if name == "Student t3" else 1e-3)


def test_heavy_tails_are_drawn_as_their_quantiles_say():
    check_deviation(HEAVY)


def test_strengths_of_the_program_are_those_of_the_laws():
    """One step from a small start multiplies the spurious direction by 1 + eta xi, so that it shows the strength."""
    runs = 1000
    given = {**columns_of(list(LAWS.values())), "deviation": 2.0, "init_scale": 1e-9}
    records = run_strengths(None, runs, 1, given, first_seed=0)
    factors = (records.values["size"][:, -1] / 1e-9).reshape(len(LAWS), runs)
    strengths = (factors - 1) / 0.1  # 1 + eta xi is positive up to rare strengths of Student's t
    for name, drawn in zip(LAWS, strengths, strict=True):
        levels = np.quantile(drawn, [0.25, 0.75])
        atoms, weights = strength_atoms(LAWS[name].environments(2.0))
        order = np.argsort(atoms)
        expected = atoms[order][np.searchsorted(np.cumsum(weights[order]), [0.25, 0.75])]
        np.testing.assert_allclose(levels, expected, atol=0.3)  # 3.5 standard errors of a quartile


def test_the_rule_for_the_step_size():
    """The least spurious share among those that learn and do not diverge; else the largest invariant share."""
    shape = ("optimizer", "relative_step_size")
    invariant = np.tile([0.95, 0.95, 0.5, 0.99], (len(NAMES), 1))
    spurious = np.tile([0.3, 0.2, 0.0, 0.1], (len(NAMES), 1))
    diverged = np.zeros(invariant.shape)
    diverged[:, 3] = 0.1
    invariant[-1] = [0.1, 0.4, 0.6, 0.2]
    values = {"invariant": (shape, invariant), "spurious": (shape, spurious), "diverged": (shape, diverged)}
    table = xr.Dataset(values, {"optimizer": list(NAMES), "relative_step_size": [1.0, 2.0, 3.0, 4.0]})
    assert list(chosen_step_sizes(table).values()) == [2.0] * (len(NAMES) - 1) + [3.0]


@pytest.mark.parametrize("count", [2, 64])
def test_the_cost_of_pooled_panels(count):
    means = np.random.default_rng(0).normal(BIAS, 9.0, (20_000, count)).mean(1)
    costs = np.square(np.maximum(means, 0) - BIAS)
    assert pooled_excess(count) == pytest.approx(costs.mean(), abs=4 * costs.std() / np.sqrt(costs.size))


def test_each_pair_of_environments_moves_one_direction():
    for pairs in range(1, RANK + 1):
        strengths = _moving(pairs)
        assert int((strengths.std(0) > 0).sum()) == pairs
        np.testing.assert_allclose(strengths.mean(0), BIAS)
