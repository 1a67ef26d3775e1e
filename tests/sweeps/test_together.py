"""Cells that are computed together, as on an accelerator, are those that are computed one by one."""

import numpy as np
import pytest

from holdfast.sweeps import open_sweep, programs, running
from holdfast.sweeps.cells import SweepCells, cells_together, runs_of_a_cell
from holdfast.sweeps.engines.local import ThreadEngine
from holdfast.sweeps.specification import specify
from sweeps.store.cell_files import cell_files

SETTINGS = {"steps": 30, "every": 10, "oracle": "population"}
GRID = {"heterogeneity": [1.0, 5.0, 6.0], "dimension": [4, 5], "step_size": [0.05, 0.1, 3.0], "seeds": 3}
RANDOM = {
    "design": "random", "count": 6, "dimension": [4], "bias": {"low": 0.0, "high": 1.0}, "seeds": 6, "seeds_per_cell": 3
}  # fmt: skip


@pytest.mark.parametrize(
    ("axes", "record", "blocks"), [(GRID, "final", 6), (GRID, "quantiles", 6), (RANDOM, "final", 4)]
)
def test_values_are_those_of_single_cells(axes, record, blocks, tmp_path, monkeypatch):
    sweep = specify(SETTINGS, axes, record=record)
    called, original = [], programs.matrix_sensing_together

    def counted(points, seeds):
        called.append(len(points))
        return original(points, seeds)

    alone = running.run_sweep(sweep, tmp_path / "alone.zarr", ThreadEngine(2))
    assert called == []
    monkeypatch.setattr(programs, "matrix_sensing_together", counted)
    monkeypatch.setattr(running, "cells_together", lambda *_: 3)
    together = running.run_sweep(sweep, tmp_path / "together.zarr", ThreadEngine(2))
    assert called == [3] * blocks  # of one dimension, and of one block of seeds
    assert (together.computed, together.failed) == (alone.computed, 0)
    names = [[path.name for path in cell_files(tmp_path / f"{name}.cells")] for name in ("together", "alone")]
    assert names[0] == names[1]
    first, second = (open_sweep(tmp_path / f"{name}.zarr") for name in ("alone", "together"))
    for name in first:
        if name != "seconds":
            np.testing.assert_allclose(second[name].values, first[name].values, rtol=1e-5, atol=1e-7, err_msg=name)


def test_an_accelerator_is_filled_if_the_program_can_do_that():
    def together(sweep, platform):
        return cells_together(SweepCells(sweep, runs_of_a_cell(sweep, platform)), platform)

    phase = specify(SETTINGS, {"bias": [0.0, 1.0]}, seeds=64)
    assert together(phase, "gpu") == 128
    assert together(phase, "cpu") == 1
    assert together(specify(SETTINGS, {"bias": [0.0, 1.0]}, seeds=100_000), "gpu") == 1
    assert together(specify({"steps": 10}, {"step_size": [0.1]}, program="matrix-completion"), "gpu") == 1
