"""Sweeps that grow, shrink and change in one folder: what is finished is reused, whatever it was requested for."""

import numpy as np
import pytest
import xarray as xr

from holdfast import Settings
from holdfast.sweeps import open_sweep, results, run_sweep, specify, sweep, sweep_status
from holdfast.sweeps.engines import ThreadEngine

pytestmark = pytest.mark.usefixtures("users_folder")

SMALL = {"dimension": 6, "steps": 20, "every": 5, "oracle": "population"}


def test_an_axis_may_be_added_to_a_sweep_or_taken_away(tmp_path):
    """The settings decide what a cell is, whether they are swept or shared."""
    sweep(SMALL, {"bias": [0.0, 0.5]}, seeds=4, out=tmp_path)
    axes = {"step_size": [0.1, 0.2], "bias": [0.0, 0.5]}
    default = Settings(**SMALL).step_size
    wider = specify(SMALL, {**axes, "step_size": [default, 0.2]}, seeds=4)
    assert run_sweep(wider, tmp_path).computed == 2
    narrower = specify({**SMALL, "step_size": 0.2}, {"bias": [0.5]}, seeds=4)
    assert run_sweep(narrower, tmp_path).computed == 0
    whole = sweep({**SMALL, "step_size": 0.2}, {"bias": [0.5]}, seeds=4, out=tmp_path / "whole")
    xr.testing.assert_equal(open_sweep(tmp_path).drop_vars("seconds"), whole.drop_vars("seconds"))


def test_a_folder_in_which_every_cell_failed_takes_another_sweep(tmp_path):
    wrong = specify({"a": 1}, {"scale": [1.0, 2.0]}, seeds=2, program="programs_of_a_user:wrong")
    assert run_sweep(wrong, tmp_path).failed == 2
    assert sweep_status(tmp_path).cells == 2
    corrected = specify({"a": 2}, {"scale": [3.0]}, seeds=2, program="programs_of_a_user:square")
    assert run_sweep(corrected, tmp_path).computed == 1
    assert sweep_status(tmp_path)[:2] == (1, 1)


def test_whole_numbers_may_be_followed_by_others(tmp_path):
    for values, new in (([1, 3], 2), ([1, 2.5, 3], 1)):
        chosen = specify({}, {"scale": values}, seeds=2, program="programs_of_a_user:square")
        assert run_sweep(chosen, tmp_path).computed == new
    data = open_sweep(tmp_path)
    assert (data["scale"].values.tolist(), data["square"].sel(scale=2.5, seed=1).item()) == ([1.0, 2.5, 3.0], 2.5)


def test_growing_computes_only_what_is_new_and_opens_in_the_order_asked_for(tmp_path):
    """Random grids one after the other: what was computed before is never computed again."""
    random, done = np.random.default_rng(0), set()
    for _ in range(8):
        scale = random.permutation(6)[: random.integers(1, 6)].tolist()
        word = random.permutation(["x", "y", "ä ö", "z"])[: random.integers(1, 5)].tolist()
        seeds = int(random.integers(1, 12))
        axes = {"scale": scale, "word": word, "seeds_per_cell": 3}
        chosen = specify({}, axes, seeds=seeds, program="programs_of_a_user:square")
        _, cells = results.planned(chosen, tmp_path)
        wanted = {(x, y, block) for x in scale for y in word for block in range(-(-seeds // cells.runs))}
        assert run_sweep(chosen, tmp_path).computed == len(wanted - done)
        done |= wanted
        data = open_sweep(tmp_path)
        assert data["scale"].values.tolist() == scale
        assert data["word"].values.tolist() == word
        expected = np.multiply.outer(np.outer(scale, np.ones(len(word))), np.arange(seeds) ** 2.0)
        np.testing.assert_array_equal(data["square"], expected)
        assert data["finished"].values.all()
        exported = xr.open_zarr(tmp_path / "results.zarr").load()
        xr.testing.assert_identical(exported.drop_attrs(), data.drop_attrs())


def test_a_large_result_is_exported_in_parts(tmp_path, monkeypatch):
    axes = {"scale": [1.0, 2.0, 3.0, 4.0, 5.0], "word": ["a", "b"]}
    options = {"seeds": 3, "program": "programs_of_a_user:picky", "out": tmp_path}
    monkeypatch.setattr("holdfast.sweeps.results._PART", 400)
    with pytest.warns(UserWarning, match="2 cells failed") as warned:
        data = sweep({}, axes, **options)
    points = "(at scale=3.0, word=a, seeds 0 to 2; scale=3.0, word=b, seeds 0 to 2); the same call tries again"
    assert any(str(each.message).endswith(points) for each in warned)
    exported = xr.open_zarr(tmp_path / "results.zarr").load()
    xr.testing.assert_equal(exported, data)
    assert data["cell_failed"].sum() == 18


def test_cells_of_different_forms_are_refused_by_name(tmp_path):
    chosen = specify({}, {"width": [2, 3]}, seeds=2, program="programs_of_a_user:of_width")
    outcome = run_sweep(chosen, tmp_path / "one", ThreadEngine(1))
    (reason,) = outcome.failures
    assert reason.endswith("'row' must be the same in every cell, got float64 (row_1 = 3) after float64 (row_1 = 2)")
    for width in (2, 3):
        few = specify({}, {"width": [width]}, seeds=2, program="programs_of_a_user:of_width")
        assert run_sweep(few, tmp_path / "other").computed == 1
    with pytest.raises(ValueError, match=r"got float64 \(row_1 = 3\) after float64 \(row_1 = 2\)"):
        run_sweep(chosen, tmp_path / "other")


def test_a_damaged_request_is_written_again_and_no_cell_is_lost(tmp_path):
    grid = specify(Settings(dimension=4, steps=5), {"heterogeneity": [1.0, 2.0]}, seeds=2)
    run_sweep(grid, tmp_path)
    whole = open_sweep(tmp_path)
    (tmp_path / "cells/request").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="cells/request must say what is requested: repeat the command of the sweep"):
        sweep_status(tmp_path)
    outcome = run_sweep(grid, tmp_path)
    assert outcome.computed == 0
    xr.testing.assert_identical(open_sweep(tmp_path), whole)
