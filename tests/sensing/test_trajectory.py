from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from holdfast import Settings, Trajectory, simulate
from holdfast.core.outcome import Code
from holdfast.sensing import environments

SETTINGS = Settings(
    dimension=6, batch_size=50, steps=20, every=5, seeds=3, seed=4, step_size=(0.05, 5.0), bias=(0.5, 1.0)
)


@pytest.fixture(scope="module")
def trajectory():
    return simulate(SETTINGS)


def test_a_trajectory_equals_itself_only(trajectory):
    other = replace(trajectory, data=2 * trajectory.data)
    assert trajectory == trajectory
    assert trajectory != other
    assert len({trajectory, other}) == 2


def test_everything_is_labelled(trajectory):
    data = trajectory.data
    assert data["spurious"].dims == ("step_size", "bias", "seed", "step")
    assert data["singular_values"].dims == ("step_size", "bias", "seed", "step", "direction")
    assert data["seed"].values.tolist() == [4, 5, 6]
    assert data["step"].values.tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_allclose(data["invariant"].isel(step=0), 1e-6, rtol=1e-4)  # U_0 = alpha I
    assert trajectory.versions.keys() >= {"holdfast", "jax", "numpy", "python"}
    assert all(data[name].attrs["long_name"] for name in ("invariant", "phase", "singular_values"))


def test_outcomes_follow_the_cells(trajectory):
    codes = trajectory.data["outcome"]
    assert (codes.sel(step_size=5.0) == Code.DIVERGED).all()
    assert (codes.sel(step_size=0.05) != Code.DIVERGED).all()
    assert trajectory.outcomes[-1].sentence.startswith("diverged at step")


def test_saved_and_loaded_is_the_same(trajectory, tmp_path):
    trajectory.save(tmp_path / "runs.zarr")
    loaded = Trajectory.load(tmp_path / "runs.zarr")
    xr.testing.assert_equal(loaded.data, trajectory.data)
    assert loaded.settings == trajectory.settings
    assert loaded.versions == trajectory.versions
    assert loaded.outcomes == trajectory.outcomes


def test_a_table_for_spreadsheets(trajectory, tmp_path):
    trajectory.save(tmp_path / "runs.csv")
    table = pd.read_csv(tmp_path / "runs.csv")
    assert len(table) == 2 * 2 * 3 * 5
    row = table[(table.step == 10) & (table.seed == 5) & (table.step_size == 0.05) & (table.bias == 1.0)]
    expected = trajectory.data["distance"].sel(step=10, seed=5, step_size=0.05, bias=1.0)
    assert row["distance"].item() == pytest.approx(float(expected), rel=1e-6)


def test_the_case_of_a_suffix_does_not_matter(trajectory, tmp_path):
    for overwrite in (False, True):
        trajectory.save(tmp_path / "runs.CSV", overwrite=overwrite)
        trajectory.save(tmp_path / "runs.ZARR", overwrite=overwrite)
    assert len(pd.read_csv(tmp_path / "runs.CSV")) == 2 * 2 * 3 * 5
    xr.testing.assert_equal(Trajectory.load(tmp_path / "runs.ZARR").data, trajectory.data)


def test_nothing_is_overwritten_unasked(trajectory, tmp_path):
    for name in ("runs.zarr", "runs.csv"):
        trajectory.save(tmp_path / name)
        with pytest.raises(ValueError, match=r"path must not exist yet \(overwrite=True or --overwrite replaces it\)"):
            trajectory.save(tmp_path / name)
        trajectory.save(tmp_path / name, overwrite=True)
    (tmp_path / "thesis.zarr").mkdir()
    (tmp_path / "thesis.zarr" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="choose another name"):
        trajectory.save(tmp_path / "thesis.zarr", overwrite=True)
    with pytest.raises(ValueError, match="written by Trajectory"):
        Trajectory.load(tmp_path / "thesis.zarr")
    with pytest.raises(ValueError, match="which does not exist"):
        Trajectory.load(tmp_path / "nothing.zarr")


def test_diverged_runs_can_be_left_out(trajectory):
    assert np.isnan(trajectory.survivors["spurious"].sel(step_size=5.0)).all()
    assert np.isfinite(trajectory.survivors["spurious"].sel(step_size=0.05)).all()


def test_unknown_formats_are_refused(trajectory, tmp_path):
    with pytest.raises(ValueError, match=r"path must end in .zarr or .csv, got .*runs.xls"):
        trajectory.save(tmp_path / "runs.xls")
    with pytest.raises(ValueError, match="folder that exists"):
        trajectory.save(tmp_path / "nowhere" / "runs.csv")


def test_own_environments():
    settings = Settings(dimension=6, steps=300, seeds=2, oracle="population", step_size=0.1, spurious_rank=2)
    strengths = [[[0.7, 0.1], [0.1, 0.4]]]
    result = simulate(settings, environments=environments.table(strengths))
    # One environment only: nothing oscillates, so SGD learns A* + A(e).
    assert float(result.final["pooled_distance"].max()) < 0.05
    assert "0.7" in result.data.attrs["environments"]
    with pytest.raises(ValueError, match="bias must be one number when environments are given"):
        simulate(Settings(bias=[1.0, 2.0]), environments=environments.table([1.0, 2.0]))
    with pytest.raises(ValueError, match="spurious_rank must be 1"):
        simulate(settings, environments=environments.table([1.0, 2.0]))


def test_own_continuum_is_checked_as_what_it_is():
    settings = Settings(batching="pooled", batch_size=(50, 800))
    with pytest.raises(ValueError, match="one number for pooled batches of a continuum"):
        simulate(settings, environments=environments.gaussian(1.0, 6.0))
    with pytest.raises(ValueError, match="batch_size must be at most 8388608"):
        simulate(Settings(batching="pooled", batch_size=10**8))
    full = Settings(dimension=4, steps=2, seeds=1, environments="uniform", batching="full")
    simulate(full, environments=environments.table([1.0, 2.0]))
