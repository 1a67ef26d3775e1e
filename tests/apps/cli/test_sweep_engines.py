"""`holdfast sweep` with a program of a user, where it runs: processes, a cluster, an object store, a full disk."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest
import xarray as xr

from holdfast.apps.cli.main import main
from holdfast.sweeps import open_sweep, sweep_status
from sweeps.store.cell_files import contents, notes
from sweeps.store.live_cluster import LiveCluster
from sweeps.store.object_store import s3_bucket

PROGRAM = """
import os
import resource
from pathlib import Path

import numpy as np


def squares(settings, seeds):
    if settings["scale"] == 3 and Path("full").exists():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # from now on, files stay empty
    process = np.full(len(seeds), os.getpid())
    return {"square": settings["scale"] * seeds**2, "process": process}
"""
SPEC = """
program = "NAME:squares"

[sweep]
scale = [1, 2, 3, 4, 5]
seeds = 6
seeds_per_cell = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, request):
    """The folder of the command, with a module that only it has."""
    found = tmp_path / "project"
    found.mkdir()
    name = f"program_of_{request.node.name}"  # its own, since modules are remembered by their names
    (found / f"{name}.py").write_text(PROGRAM)
    (found / "spec.toml").write_text(SPEC.replace("NAME", name))
    monkeypatch.chdir(found)
    return found


def _check(data):
    assert data["finished"].values.all()
    np.testing.assert_array_equal(data["square"], np.outer([1, 2, 3, 4, 5], np.arange(6) ** 2))


def test_processes_import_the_program_from_the_folder_of_the_command(folder, capsys):
    assert main(["sweep", "spec.toml", "--out", "runs", "--processes", "2"]) == 0
    assert re.match(r"15 cells computed in .* of work; result in runs/results\.zarr\n", capsys.readouterr().out)
    data = open_sweep("runs")
    _check(data)
    processes = np.unique(data["process"])
    assert len(processes) == 2
    assert os.getpid() not in processes


@pytest.mark.slow
def test_workers_of_a_cluster_import_the_program_from_the_folder_of_the_command(folder, tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    (tmp_path / "elsewhere").mkdir()
    with ExitStack() as stack:
        monkeypatch.chdir(tmp_path / "elsewhere")  # where the workers are started
        cluster = LiveCluster(tmp_path, stack)
        cluster.add_worker("first")
        cluster.add_worker("second")
        monkeypatch.chdir(folder)
        assert main(["sweep", "spec.toml", "--out", "runs", "--dask", cluster.address]) == 0
        assert re.match(r"15 cells computed in .* of work; result in runs/results\.zarr\n", capsys.readouterr().out)
        workers = {process.pid for process in cluster.workers.values()}
        assert main(["sweep", "spec.toml", "--out", "runs", "--dask", str(cluster.file)]) == 0
        assert "is up to date; nothing to compute" in capsys.readouterr().out
    data = open_sweep("runs")
    _check(data)
    assert {*np.unique(data["process"])} <= workers


@pytest.mark.slow
def test_an_object_store_holds_a_sweep_as_a_folder_does(folder, capsys):
    with s3_bucket("sweeps") as bucket:
        url = f"{bucket}/runs"
        assert main(["sweep", "spec.toml", "--out", url]) == 0
        assert f"result in {url}/results.zarr" in capsys.readouterr().out
        assert main(["sweep-status", url, "--verify"]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert words == "finished 15 of 15 cells (100.0%) damaged 0 failed 0"
        assert main(["sweep", "spec.toml", "--out", "runs"]) == 0
        away, here = open_sweep(url), open_sweep("runs")
        _check(away)
        xr.testing.assert_identical(away.drop_vars("seconds"), here.drop_vars("seconds"))
        (folder / "spec.toml").write_text((folder / "spec.toml").read_text().replace("4, 5]", "4, 5, 6]"))
        capsys.readouterr()
        assert main(["sweep", "spec.toml", "--out", url]) == 0
        assert re.match(r"3 cells computed in .* of work, 15 were finished; ", capsys.readouterr().out)
        assert open_sweep(url)["square"].sel(scale=6).values.tolist() == [6 * seed**2 for seed in range(6)]


def test_a_disk_that_is_full_in_the_middle_is_an_error_and_the_same_command_resumes(folder):
    """The limit on the size of files stands for the disk: writing fails in the same calls, with another number."""
    command = [sys.executable, "-m", "holdfast", "sweep", "spec.toml", "--out", "runs", "--workers", "1"]
    (folder / "full").touch()
    stopped = subprocess.run(command, capture_output=True, text=True)
    assert stopped.returncode == 1
    file = re.escape(str(folder / "runs/cells")) + "/[0-9a-f/-]+"
    reason = rf"the result of scale=3, seeds 0 to 1 cannot be saved: OSError: \[Errno 27\] File too large: '{file}'"
    resuming = "6 cells saved, and the same command goes on from there"
    assert re.fullmatch(rf"holdfast: cannot write or read: {reason}; {resuming}\n", stopped.stderr), stopped.stderr
    assert sweep_status("runs", verify=True)[:3] == (15, 6, 0)
    before = contents("runs")
    assert open_sweep("runs")["square"].sel(scale=[1, 2]).values.tolist() == [
        [scale * seed**2 for seed in range(6)] for scale in (1, 2)
    ]
    assert notes("runs", ".lease") == []
    (folder / "full").unlink()
    resumed = subprocess.run(command, capture_output=True, text=True)
    assert re.match(r"9 cells computed in .* of work, 6 were finished; result in", resumed.stdout), resumed.stderr
    _check(open_sweep("runs"))
    assert before.items() <= contents("runs").items()
