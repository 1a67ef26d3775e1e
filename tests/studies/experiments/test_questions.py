"""What the experiments on questions 1, 2 and 10 derive, against direct computation."""

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from holdfast.sensing.environments import two_point
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import execute
from holdfast.theory.lyapunov import matrix_exponents, two_point_exponent
from holdfast_studies import TITLES
from holdfast_studies.questions import conditioning, factors, overlap


def test_the_rest_of_a_large_start_is_that_of_random_matrices():
    """Gradient descent on U U^T towards zero, in NumPy. Eigenvalues of 60 x 60 matrices are within 2 % of their law."""
    random = np.random.default_rng(0)
    errors = []
    for _ in range(5):
        u = 0.5 * random.standard_normal((60, 60)) / np.sqrt(60)
        for _ in range(200):
            u -= factors.STEP_SIZE * u @ u.T @ u
        errors.append(np.linalg.norm(u @ u.T))
    assert np.mean(errors) == pytest.approx(factors.spread_start_error(0.5, 60, 200), rel=0.02)


def test_exact_width_takes_the_learned_eigenvalue_off_the_strengths():
    """One column: both directions share |u|^2, which is 1 by step 300, up to Q^2 below 1e-6."""
    settings = Settings(dimension=3, oracle="population", batching="full", bias=0.5, heterogeneity=0.0, width=1,
                        steps=600, every=300, seeds=2, init_scale=1e-2, dtype="float64")  # fmt: skip
    spurious = execute(settings).values["spurious_norm"]
    rate = np.log(spurious[:, 2] / spurious[:, 1]) / 300
    assert rate == pytest.approx(float(two_point_exponent(settings.step_size, 0.5 - 1.0, 0.0)), rel=1e-3)


@pytest.mark.parametrize("heterogeneity", [2.0, 8.0])
def test_products_of_two_directions_have_the_exponents_of_the_theory(heterogeneity):
    """Both are estimates; four standard errors of each, from their chains, which are of different length."""
    law = two_point(overlap.BIAS, heterogeneity, rank=2, off_diagonal=3.0, shared=False)
    expected = matrix_exponents(law, overlap.STEP_SIZE, steps=600, chains=64)[0]
    found = overlap.independent_exponents(np.array([3.0]), np.array([heterogeneity])).item()
    assert found == pytest.approx(expected.value, abs=4 * (expected.high - expected.low) / 2)


def test_without_environments_that_differ_an_overlap_costs_what_the_mean_says():
    """M = 0 and s = 0 is no spurious signal: no error. Strengths that always shrink by half keep half of eps."""
    assert overlap.error_per_overlap(0.05, 0.0, 0.0) == pytest.approx(0.0, abs=1e-12)
    assert overlap.error_per_overlap(0.05, -1.0, 0.0) == pytest.approx(np.sqrt(2) / 2, rel=1e-6)


def test_at_the_threshold_of_independent_signs_the_exponent_changes_its_sign():
    """Off-diagonal strengths of 3; the theory's own estimate is taken one unit of M away, many errors from zero."""
    threshold = overlap.independent_threshold(3.0)
    laws = [two_point(overlap.BIAS, threshold + shift, rank=2, off_diagonal=3.0, shared=False) for shift in (-1.0, 1.0)]
    below, above = (matrix_exponents(law, overlap.STEP_SIZE, steps=1000, chains=64)[0] for law in laws)
    assert below.low > 0 > above.high


def test_a_spurious_signal_that_does_not_vary_is_an_eigenvalue():
    assert conditioning.effective_eigenvalue(0.0) == pytest.approx(conditioning.BIAS)


@pytest.mark.parametrize("condition_number", [2.0, 10.0])
def test_plateaus_last_as_long_as_the_scalar_recursion_says(condition_number):
    """Growth slows down on the last steps to one half, by at most log(2) / 2 in log r."""
    r, steps, goal = conditioning.INIT_SCALE, 0, 1 / condition_number
    while r**2 < conditioning.LEARNED * goal:
        r, steps = r * (1 + conditioning.STEP_SIZE * (goal - r**2)), steps + 1
    predicted = float(conditioning.learning_times(np.array(condition_number)))
    longest = predicted + np.log(2) / 2 / np.log1p(conditioning.STEP_SIZE * goal) + 1
    assert predicted <= steps <= longest


def test_the_race_is_decided_when_the_first_signal_has_grown():
    invariant = [[1e-3, 0.02, 0.2, 0.5], [1e-3, 0.05, 0.09, 0.5], [1e-3] * 4]
    spurious = [[1e-3, 0.05, 0.15, 0.9], [1e-3, 0.01, 0.30, 0.1], [1e-4] * 4]
    data = xr.Dataset(
        {
            "singular_values": (("seed", "step", "direction"), np.array(invariant)[..., None]),
            "spurious_norm": (("seed", "step"), np.array(spurious)),
        }
    )
    np.testing.assert_array_equal(conditioning.races_won(data), [1, 0, np.nan])  # and not if none has grown


@pytest.mark.slow
def test_the_one_line_answers_name_claims_that_exist(claims_of):
    """The table on top of docs/questions.md; claims of a quick look have the ids of a full run."""
    page = Path(__file__).parents[3].joinpath("docs", "questions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d[\d, ]*)\. ", page, re.MULTILINE)
    assert ", ".join(rows).split(", ") == [str(number) for number in range(1, 11)]
    named = set(re.findall(r"`([^`]+)`", page[page.index("Their claims are") : page.index("## 1.")]))
    assert len(named) == 16
    asked = [name for name, title in TITLES.items() if title.startswith("question")]
    assert named <= {claim.id for name in asked for claim in claims_of(name)}
