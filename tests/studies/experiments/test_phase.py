import numpy as np
import pytest
import xarray as xr

from holdfast.plots import style
from holdfast.sensing.environments import two_point, uniform
from holdfast.sweeps import open_phase_diagram, phase_diagram, phase_sweep, run_sweep
from holdfast.sweeps.phase_diagram import BIAS, PLANES, least_heterogeneity
from holdfast.theory.lyapunov import two_point_threshold
from holdfast.theory.window import threshold_heterogeneity
from holdfast_studies.findings import phase
from sweeps.store.cell_files import cell_files


def own_two_point(bias, heterogeneity, **options):
    """The same law, but not known by its closed form."""
    return two_point(bias, heterogeneity, **options)


@pytest.mark.parametrize("exponent", [0.0, 0.01])
def test_the_threshold_of_any_law_is_found_by_its_exponent(exponent):
    step_size = np.array([0.05, 0.1, 0.2])
    closed = two_point_threshold(step_size, BIAS, exponent)
    assert least_heterogeneity(own_two_point, step_size, exponent) == pytest.approx(closed, abs=0.02)


def test_the_threshold_of_a_continuum_is_that_of_the_theory():
    found = least_heterogeneity(uniform, np.array([0.1]))
    assert found == pytest.approx([threshold_heterogeneity(uniform, BIAS, 0.1)], abs=0.05)
    assert np.isnan(least_heterogeneity(uniform, np.array([0.001]))).all()  # above the range that is drawn


DIMENSIONS = {
    "step_size": {"heterogeneity": [2.0, 8.0], "step_size": [0.05, 0.1]},
    "time": {"step": [10, 20], "init_scale": [1e-3, 1e-2]},
    "sampling": {"dimension": [10, 20], "batch_size": [100, 1000]},
    "overlap": {"heterogeneity": [2.0, 8.0], "overlap": [0.0, 0.5]},
}


@pytest.mark.parametrize("plane", PLANES)
def test_curves_are_drawn_for_any_law(plane):
    values = {name: (tuple(DIMENSIONS[plane]), np.ones((2, 2), int)) for name in ("spurious", "residual", "region")}
    data = xr.Dataset(values, DIMENSIONS[plane], {"plane": plane, "seeds": 2, "order": "cyclic"})
    for law in (two_point, own_two_point, uniform):
        with style():
            figure = phase.draw_phase_diagram(data, law)
        assert all(axes.get_lines() for axes in figure.axes if axes.get_label() != "<colorbar>")


def test_a_law_of_ones_own_is_simulated():
    known, own = (phase_diagram("time", law, cells=3, seeds=4) for law in (two_point, own_two_point))
    xr.testing.assert_allclose(known, own)
    assert not known.equals(phase_diagram("time", uniform, cells=3, seeds=4))


@pytest.mark.parametrize(
    "plane", [pytest.param(name, marks=[pytest.mark.slow] * (name == "sampling")) for name in PLANES]
)
def test_a_sweep_is_the_diagram_in_memory(plane, tmp_path):
    """Slabs have the same shape, so even the last bits are the same."""
    options, path = {"order": "cyclic", "cells": 3, "seeds": 8}, tmp_path / "plane.zarr"
    sweep = phase_sweep(plane, **options)
    assert run_sweep(sweep, path).failures == {}
    cell_files(tmp_path)[0].unlink()  # as if it had been stopped before this cell
    with pytest.raises(ValueError, match=r"folder must be that of a finished sweep, got .* of its runs"):
        open_phase_diagram(plane, path)
    assert run_sweep(sweep, path).computed == 1
    found, expected = open_phase_diagram(plane, path), phase_diagram(plane, **options)
    xr.testing.assert_equal(found, expected)
    assert {name: found.attrs[name] for name in ("plane", "seeds", "order")}.items() <= expected.attrs.items()
    assert set(phase.EXPERIMENT.numbers(found)) == set(phase.EXPERIMENT.numbers(expected))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plane": "nowhere"}, "plane must be one of step_size, time, sampling, overlap, got 'nowhere'"),
        ({"cells": 1}, "cells must be a whole number of at least 2, got 1"),
        ({"seeds": 1}, "seeds must be a whole number of at least 2, got 1"),
    ],
)
def test_odd_arguments_are_refused(options, message):
    for function in (phase_diagram, phase_sweep):
        with pytest.raises(ValueError, match=message):
            function(**options)
