"""The folder of a sweep: exported results, results of older versions, cells of other code and of other machines."""

import pytest
import xarray as xr

from holdfast.apps.cli.main import main
from holdfast.sweeps import open_sweep, read_sweep
from holdfast.sweeps.results import prepare
from sweeps.store.cell_files import cell_files

SPEC = """
[settings]
dimension = 6
steps = 20
every = 5
oracle = "population"

[sweep]
step_size = [0.05, 0.1]
heterogeneity = [1.0, 6.0]
seeds = 4
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def test_a_result_is_exported_while_the_sweep_runs_and_when_it_is_damaged(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    prepare(read_sweep(spec), runs)
    assert main(["sweep-status", str(runs), "--export"]) == 0
    assert f"wrote {runs}/results.zarr" in capsys.readouterr().out
    assert not xr.open_zarr(runs / "results.zarr")["finished"].values.any()
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    for content in ("", "{", "{}", '{"attributes": {}}'):
        (runs / "results.zarr" / "zarr.json").write_text(content)
        assert main(["sweep", str(spec), "--out", str(runs)]) == 0
        xr.testing.assert_equal(xr.open_zarr(runs / "results.zarr").load(), open_sweep(runs))


def test_results_of_an_older_version_stay_and_one_sentence_says_how_to_read_them(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    xr.Dataset({"spurious": ("seed", [1.0])}, attrs={"grid": {}}).to_zarr(runs / "results.zarr", consolidated=False)
    sentence = f"results of holdfast 0.1 lack; xarray.open_zarr('{runs}/results.zarr') reads those"
    for command in (["sweep", str(spec), "--out"], ["sweep-status"], ["sweep-plot", "--x", "bias"]):
        assert main([*command, str(runs)]) == 2
        assert sentence in capsys.readouterr().err
    assert xr.open_zarr(runs / "results.zarr", consolidated=False)["spurious"].values.tolist() == [1.0]


def test_cells_of_other_code_are_left_aside_and_pruned(spec, tmp_path, capsys, monkeypatch):
    command, runs = ["sweep", str(spec), "--out", str(tmp_path / "runs")], str(tmp_path / "runs")
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.sweeps.store.naming.fingerprint", lambda modules: 16 * "0")
        assert main(command) == 0
    capsys.readouterr()
    assert main(command) == 0
    said = capsys.readouterr().out
    assert said.startswith("4 cells computed")
    assert said.endswith("4 cells of other code left aside; `holdfast sweep-status --prune` deletes them\n")
    assert main(["sweep-status", runs, "--prune"]) == 0
    assert "deleted 4 cells of other code" in capsys.readouterr().out
    assert len(cell_files(runs)) == 4
    assert main(command) == 0
    assert "is up to date; nothing to compute" in capsys.readouterr().out


def test_cells_that_were_computed_in_different_ways_are_named(spec, tmp_path, capsys, monkeypatch):
    command, runs = ["sweep", str(spec), "--out", str(tmp_path / "runs")], str(tmp_path / "runs")
    assert main(command) == 0
    cell_files(runs)[0].unlink()
    monkeypatch.setattr("holdfast.sweeps.store.store.computed_by", lambda: "XLA on avx2, jax 0.10.2")
    capsys.readouterr()
    for each in (command, ["sweep-status", runs]):
        assert main(each) == 0
        said = capsys.readouterr().out
        assert "cells were computed in different ways and may differ in their last digits: " in said
        assert "XLA on avx2, jax 0.10.2" in said
