"""What the view draws is what the library computes."""

from dataclasses import replace

import numpy as np
import pytest

from holdfast.apps.lab.server import encoded
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.oscillation import VIEW, OscillationSettings
from holdfast.sensing.simulation import simulate
from holdfast.sweeps.phase_diagram import least_heterogeneity
from holdfast.theory.lyapunov import two_point_exponent

SETTINGS = OscillationSettings(step_size=0.08, bias=0.5, heterogeneity=5.0, dimension=10, order="reshuffled", seed=7)


def test_bands_map_and_curves():
    parts = {}
    data = VIEW.compute(SETTINGS, Context(parts.__setitem__, lambda done, total: None, lambda number: None))
    for name, settings in SETTINGS.simulated().items():
        expected, drawn = simulate(settings).data, parts["trajectories"][name]
        np.testing.assert_array_equal(drawn["steps"], expected["step"])
        for signal in ("invariant", "spurious"):
            for label, quantile in (("low", 0.1), ("median", 0.5), ("high", 0.9)):
                np.testing.assert_allclose(drawn[signal][label], expected[signal].quantile(quantile, "seed"), rtol=1e-6)
    plane = data["map"]
    # Strengths are float32: a product of two factors 1 + eta xi of at most 7 is off by at most 2 * 7 * 6 * 2^-24.
    exact = two_point_exponent(plane["step_size"], 0.5, plane["heterogeneity"][:, None])
    np.testing.assert_allclose(np.exp(2 * plane["exponent"]), np.exp(2 * exact), atol=84 * 2**-24)
    assert np.isclose(parts["point"]["exponent"], two_point_exponent(0.08, 0.5, 5.0), atol=1e-7)
    # On the first curve the exponent is zero.
    zero = data["curves"][0]
    np.testing.assert_allclose(two_point_exponent(zero["x"], 0.5, zero["y"]), 0, atol=1e-12)
    assert "16 runs" in data["summary"]
    assert b"NaN" not in encoded({**parts, **data})


def test_the_curve_of_any_law_has_the_bias_of_the_view():
    """The search over heterogeneities agrees with the closed form for two points, at another bias than the paper's."""
    from holdfast.sensing.environments import two_point

    step_size = np.array([0.05, 0.1])
    searched = least_heterogeneity(lambda bias, m: two_point(bias, m), step_size, bias=0.5)
    spacing = 12 / 120
    np.testing.assert_allclose(searched, least_heterogeneity(two_point, step_size, bias=0.5), atol=spacing / 4)


@pytest.mark.slow
def test_runs_that_diverge_are_counted_and_leave_the_curves():
    """Normal strengths at a step size far beyond the window: the last finite state of a run is no signal."""
    settings = OscillationSettings(dimension=10, environments="gaussian", step_size=0.5, heterogeneity=12.0)
    parts = {}
    data = VIEW.compute(settings, Context(parts.__setitem__, lambda done, total: None, lambda number: None))
    hetero = parts["trajectories"]["hetero"]
    assert hetero["diverged"] == hetero["runs"] == 16
    assert np.isnan(hetero["spurious"]["median"][-1])
    assert "HeteroSGD: all runs diverged" in data["summary"]


@pytest.mark.slow
def test_only_shapes_compile_anew():
    """All sliders but those of sizes move what is traced."""
    from holdfast.core.run import _advance

    compute = lambda settings: VIEW.compute(  # noqa: E731
        settings, Context(lambda part, data: None, lambda done, total: None, lambda number: None)
    )
    start = OscillationSettings(dimension=10)
    compute(start)
    programs = _advance._cache_size()
    moved = replace(start, step_size=0.07, heterogeneity=3.0, bias=0.2, batch_size=500, init_scale=0.01, steps=100)
    compute(replace(moved, seed=3))
    assert _advance._cache_size() == programs
    compute(replace(start, dimension=19))  # a size that no other test has compiled in this process
    assert _advance._cache_size() > programs
