"""A folder in which nothing was saved is given to another sweep, whoever else is there."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from holdfast.core import CellResult
from holdfast.core.owner import owner
from holdfast.sweeps import run_sweep, running, specify, sweep_status
from holdfast.sweeps.results import results_path
from holdfast.sweeps.running import planned, prepare
from holdfast.sweeps.store.leases import Leases
from holdfast.sweeps.store.occupancy import is_replaceable, occupied
from sweeps.store.grid_files import contents

pytestmark = pytest.mark.usefixtures("users_folder")


def _corrected():
    return specify({}, {"scale": [1.0, 2.0, 3.0]}, seeds=2, program="programs_of_a_user:square")


@pytest.mark.parametrize("change", ["program", "axes"])
def test_a_folder_in_which_every_cell_failed_takes_another_sweep(change, tmp_path):
    wrong = specify({}, {"scale": [1.0, 2.0]}, seeds=2, program="programs_of_a_user:wrong")
    assert run_sweep(wrong, results_path(tmp_path)).failed == 2
    program, axis = ("square", "scale") if change == "program" else ("wrong", "width")
    other = specify({}, {axis: [3.0]}, seeds=2, program=f"programs_of_a_user:{program}")
    assert planned(other, results_path(tmp_path)) is None
    assert sweep_status(tmp_path).cells == 2
    assert run_sweep(other, results_path(tmp_path)).computed == (change == "program")
    assert [path.name for path in tmp_path.iterdir()] == ["results.zarr"]
    assert {"scale", "width"} & {path.name for path in (tmp_path / "results.zarr").iterdir()} == {axis}
    status = sweep_status(tmp_path)
    assert (status.cells, status.finished + sum(status.failures.values())) == (1, 1)


def test_a_folder_without_results_in_which_another_process_computes_is_not_replaced(tmp_path):
    path = results_path(tmp_path)
    cells = prepare(specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong"), path)
    other = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:square")
    with cells.lease((0, 0)), pytest.raises(ValueError, match="program must be 'programs_of_a_user:wrong'"):
        run_sweep(other, path)


def test_who_computes_in_a_folder_that_was_replaced_saves_nothing(tmp_path):
    path = results_path(tmp_path)
    cells = prepare(specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong"), path)
    copied = pickle.dumps(cells)
    other = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:square")
    assert run_sweep(other, path).computed == 1
    before = contents(path)
    with pytest.raises(FileNotFoundError, match="was deleted, or replaced by another one"):
        cells.save((0, 0), CellResult({"square": np.ones(2), "row": np.ones((2, 2))}))
    with pytest.raises(FileNotFoundError, match="was deleted, or replaced by another one"):
        pickle.loads(copied)
    assert contents(path) == before


def test_a_command_that_computes_no_cell_yet_keeps_its_folder(tmp_path):
    """It waits for workers, say."""
    path = results_path(tmp_path)
    cells = prepare(specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong"), path)
    with occupied(Leases(cells.files)), pytest.raises(ValueError, match="program must be 'programs_of_a_user:wrong'"):
        run_sweep(_corrected(), path)
    assert run_sweep(_corrected(), path).computed == 3


def test_a_command_says_that_it_works_in_its_folder_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path, compute, seen = results_path(tmp_path), running.compute, []

    def watched(*arguments, **options):
        seen.append(is_replaceable(path))
        return compute(*arguments, **options)

    monkeypatch.setattr(running, "compute", watched)
    wrong = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong")
    run_sweep(wrong, path)
    assert (seen, is_replaceable(path), list(Path(path, "checksum").glob("*.lease"))) == ([False], True, [])
    Path(path, "checksum", "elsewhere-7-1.lease").write_text(f"{owner().partition('-')[0]}-{2**22 + 1}")  # was killed
    prepare(wrong, path)
    assert list(Path(path, "checksum").glob("*.lease")) == []


def test_results_that_are_saved_between_the_two_looks_at_a_folder_stay(tmp_path, monkeypatch):
    path = results_path(tmp_path)
    other = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:picky")
    cells = prepare(other, path)

    def late(*arguments, **options):
        cells.save((0, 0), CellResult({"square": np.ones(2)}))
        return real(*arguments, **options)

    real = running.replace_grid
    monkeypatch.setattr(running, "replace_grid", late)
    with pytest.raises(ValueError, match="program must be 'programs_of_a_user:picky'"):
        run_sweep(_corrected(), path)
    assert sweep_status(tmp_path).finished == 1


@pytest.mark.parametrize("kind", ["slash", "link", "url"])
def test_a_path_may_have_a_slash_at_its_end_or_be_a_link_or_a_url(kind, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    if kind == "link":
        (tmp_path / "results.zarr").symlink_to(tmp_path / "elsewhere")
    path = {
        "slash": f"{tmp_path}/results.zarr/",
        "link": f"{tmp_path}/results.zarr",
        "url": f"file://{tmp_path}/r.zarr",
    }
    wrong = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong")
    assert run_sweep(wrong, path[kind]).failed == 1
    assert run_sweep(_corrected(), path[kind]).computed == 3


def test_a_grid_of_an_object_store_is_never_replaced(tmp_path):
    path = f"memory://{tmp_path}/results.zarr"
    run_sweep(specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:wrong"), path)
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="program must be 'programs_of_a_user:wrong'"):
            run_sweep(_corrected(), path, overwrite=overwrite)


AT_ONCE = """
import sys, time
from holdfast.sweeps.engines import ThreadEngine
from holdfast.sweeps import run_sweep, specify

chosen = specify({}, {"scale": [1.0, 2.0, 3.0]}, seeds=2, program="programs_of_a_user:square")
print("ready", flush=True)
begin = float(sys.stdin.readline())
for number in range(10):
    time.sleep(max(begin + 0.2 * number - time.time(), 0))
    print(run_sweep(chosen, f"{number}/results.zarr", ThreadEngine(1)).computed)
"""


def test_two_processes_that_replace_a_folder_at_once_share_the_work(tmp_path):
    wrong = specify({}, {"scale": [1.0, 2.0]}, seeds=2, program="programs_of_a_user:wrong")
    for number in range(10):
        assert run_sweep(wrong, results_path(tmp_path / str(number))).failed == 2
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    begin = f"{time.time() + 0.2}\n"
    outputs = [process.communicate(begin, timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    computed = [list(map(int, words.split())) for words, _ in outputs]
    for number, both in enumerate(zip(*computed, strict=True)):
        assert sum(both) == 3  # each cell once, whoever was first
        assert sweep_status(tmp_path / str(number), verify=True)[:3] == (3, 3, 0)
        assert [path.name for path in (tmp_path / str(number)).iterdir()] == ["results.zarr"]
