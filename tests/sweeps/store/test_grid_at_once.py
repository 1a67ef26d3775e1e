"""Commands that work on one grid at once: killed, looking, or extending it."""

import contextlib
import json
import pickle
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from holdfast.core import CellResult
from holdfast.core.owner import owner
from holdfast.sweeps.store import GridCells, Layout, Lease, open_grid
from holdfast.sweeps.store.files import LocalFiles
from holdfast.sweeps.store.header import ConflictError, Header
from holdfast.sweeps.store.occupancy import replace_grid
from sweeps.store.grid_products import check_products, fill, product


@pytest.mark.parametrize("number", range(8))
def test_a_writer_that_is_killed_while_it_declares_variables_costs_the_others_nothing(tmp_path, monkeypatch, number):
    """Killed before the file of this number; another writer, that began before, finishes the grid."""
    first = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2], "b": ["x"]}, seeds=2, most_seeds=2), identity={})
    second, write, left = pickle.loads(pickle.dumps(first)), LocalFiles.write, iter(range(number))

    def write_until_killed(self, *arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        write(self, *arguments, **options)

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(LocalFiles, "write", write_until_killed)
        first.save((0, 0, 0), product({"a": 1, "b": "x"}, np.arange(2)))
    assert fill(second, product) + len(list(tmp_path.glob("r/checksum/c.*[0-9]"))) >= 2
    assert {"product", "label"} <= set(xr.open_zarr(tmp_path / "r").data_vars)
    again = GridCells.at(tmp_path / "r", first.requested, identity={})
    assert list(again.missing()) == []
    check_products(open_grid(tmp_path / "r"), [1, 2], ["x"], 2)


def test_variables_that_a_group_lost_are_found_again(tmp_path):
    """As an earlier writer left it that took the array for the truth: the cells are finished, the group is old."""
    layout = Layout.of({"a": [1, 2], "b": ["x"]}, seeds=2, most_seeds=2)
    old, cells = (GridCells.at(tmp_path / name, layout, identity={}) for name in ("old", "r"))
    fill(cells, product)
    (tmp_path / "r/zarr.json").write_bytes((tmp_path / "old/zarr.json").read_bytes())
    assert old.variables() is None
    assert list(GridCells.at(tmp_path / "r", layout, identity={}).missing()) == []
    check_products(open_grid(tmp_path / "r"), [1, 2], ["x"], 2)


def test_the_claim_to_a_lease_is_no_cell(tmp_path, monkeypatch):
    """Another process lists the cells at the moment at which one takes over an old lease."""
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2), identity={})
    Path(tmp_path / "r/checksum/c.0.0.lease").write_text(f"{owner().partition('-')[0]}-{2**22 + 1}")
    delete, seen = LocalFiles.delete, []

    def delete_later(self, name):
        seen.append((name, list(cells.missing()), cells.running()))
        delete(self, name)

    monkeypatch.setattr(LocalFiles, "delete", delete_later)
    with cells.lease((0, 0)) as lease:
        assert lease is Lease.TAKEN
    assert seen[0] == ("checksum/c.0.0.lease.lease", [(0, 0), (1, 0)], [(0, 0)])


def test_who_looks_at_what_is_running_writes_nothing(tmp_path, monkeypatch):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2), identity={})
    Path(tmp_path / "r/checksum/c.1.0.lease").write_text("elsewhere-7")
    monkeypatch.setattr(LocalFiles, "_write_new", lambda *_: pytest.fail("a file is written"))
    looking = GridCells.open(tmp_path / "r")
    assert looking.running() == [(1, 0)]
    assert list(looking.missing()) == list(cells.missing())
    assert looking.failures() == {}


def multiple(settings, seeds):
    return CellResult({"product": settings["a"] * seeds * 1.0})


@pytest.mark.parametrize("moment", ["before", "after"])
def test_two_commands_that_extend_a_grid_at_once_never_take_a_value_for_another(tmp_path, monkeypatch, moment):
    """Without leases, both take position 1: one writes before or after the other, which has already read."""
    path = f"memory://{tmp_path}/{moment}.zarr"

    def grid(*values):
        return GridCells.at(path, Layout.of({"a": values}, seeds=3, most_seeds=3), identity={})

    grid(1.0)
    write, others = Header.write, []

    def write_at_once(self, files):
        if moment == "after":
            write(self, files)
        if not others:
            others.append(None)
            monkeypatch.setattr(Header, "write", write)
            if moment == "before":
                others.append(grid(1.0, 4.0))
            else:  # the other one had read the grid before
                larger, positions = Layout.of({"a": [1.0]}, seeds=3, most_seeds=3).extended(
                    Layout.of({"a": [1.0, 4.0]}, seeds=3, most_seeds=3)
                )
                stale = Header.of(larger, {}, {})
                write(stale, files)
                others.append(GridCells(files, larger, positions, 3, {}))
        if moment == "before":
            write(self, files)

    monkeypatch.setattr(Header, "write", write_at_once)
    ours, theirs = grid(1.0, 2.0), others[1]
    for _ in range(2):
        for cells in (theirs, ours):
            fill(cells, multiple)
            for index in cells.indices().reshape(-1, 2).tolist():
                content = cells.content(tuple(index))
                expected = cells.settings(tuple(index))["a"] * np.arange(3.0)
                np.testing.assert_array_equal(np.frombuffer(content["product"]), expected)
    again = grid(1.0, 2.0, 4.0)
    fill(again, multiple)
    assert open_grid(path)["product"].sel(seed=1).values.tolist() == [1.0, 2.0, 4.0]


LAYOUT = Layout.of({"a": [1.0, 2.0, 3.0]}, seeds=2, most_seeds=2)
OLD, NEW = {"settings": {"dimension": 10}}, {"settings": {"dimension": 99}}


def grid_with_one_cell(path, identity):
    """A grid whose values are the dimension, with one finished cell."""
    cells = GridCells.at(path, LAYOUT, identity=identity)
    save(cells, (0, 0))
    return cells


def save(cells, index):
    cells.save(index, CellResult({"x": np.full(2, float(cells.identity["settings"]["dimension"]))}))


def test_a_grid_in_which_a_command_works_is_not_replaced_by_force(tmp_path):
    old = grid_with_one_cell(tmp_path / "r", OLD)
    with old.lease((1, 0)), pytest.raises(ConflictError, match=r"another command works in the folder, .*dimension"):
        replace_grid(tmp_path / "r", LAYOUT, identity=NEW, overwrite=True)
    replace_grid(tmp_path / "r", LAYOUT, identity=NEW, overwrite=True)
    assert list(grid_with_one_cell(tmp_path / "r", NEW).missing()) == [(1, 0), (2, 0)]


def test_a_command_whose_folder_was_deleted_and_begun_anew_saves_nothing_more(tmp_path):
    old = grid_with_one_cell(tmp_path / "r", OLD)
    shutil.rmtree(tmp_path / "r")
    with pytest.raises(FileNotFoundError, match="was deleted, or replaced by another one"):
        save(old, (1, 0))
    new = grid_with_one_cell(tmp_path / "r", NEW)
    with pytest.raises(FileNotFoundError, match="was deleted, or replaced by another one"):
        save(old, (1, 0))
    assert list(new.missing()) == [(1, 0), (2, 0)]


def test_a_cell_of_another_grid_is_damage(tmp_path, monkeypatch):
    """It is saved at the moment at which the folder is replaced, so that nobody can notice it."""
    old = grid_with_one_cell(tmp_path / "r", OLD)
    shutil.rmtree(tmp_path / "r")
    new = grid_with_one_cell(tmp_path / "r", NEW)
    monkeypatch.setattr(GridCells, "_current_variables", GridCells.variables)
    save(old, (1, 0))
    assert (list(new.missing()), new.damaged) == ([(2, 0), (1, 0)], [(1, 0)])
    assert open_grid(tmp_path / "r")["x"].values[:, 0].tolist()[0] == 99.0


@pytest.mark.parametrize("remote", [False, True])
def test_a_copy_that_lives_on_declares_the_variables_of_a_folder_that_was_begun_anew(tmp_path, remote):
    """A worker of a cluster outlives commands, and the folders that people delete in between."""
    path = f"memory://{tmp_path}/anew.zarr" if remote else tmp_path / "r"
    old = grid_with_one_cell(path, OLD)
    if remote:
        for name in ("zarr.json", "checksum/zarr.json", "checksum/c.0.0", "x/zarr.json", "x/c.0.0"):
            old.files.delete(name)
    else:
        shutil.rmtree(path)
    new = GridCells.at(path, LAYOUT, identity=OLD)
    save(old, (1, 0))
    assert list(new.missing()) == [(0, 0), (2, 0)]
    assert list(open_grid(path).data_vars) == ["x", "seconds", "finished"]


def test_a_grid_of_another_format_is_refused_by_a_sentence_and_stays(tmp_path):
    grid_with_one_cell(tmp_path / "r", OLD)
    metadata = json.loads((tmp_path / "r/zarr.json").read_text())
    del metadata["attributes"]["grid"]["format"]  # the first format had none
    (tmp_path / "r/zarr.json").write_text(json.dumps(metadata))
    for use in (GridCells.open, lambda path: GridCells.at(path, LAYOUT, identity=OLD)):
        with pytest.raises(
            ConflictError, match=r"of another version of holdfast, .* xarray\.open_zarr still opens them"
        ):
            use(tmp_path / "r")
    assert (tmp_path / "r/x/c.0.0").exists()
    assert xr.open_zarr(tmp_path / "r")["x"].notnull().any()  # as the sentence says


def test_a_machine_whose_clock_is_ahead_takes_no_lease_for_expired(tmp_path, monkeypatch):
    """Leases of a command on another machine, renewed just now by the clock of the file system."""
    cells = GridCells.at(tmp_path / "r", LAYOUT, identity=OLD)
    leases = [tmp_path / "r/checksum" / name for name in ("deadbeef-77-1.lease", "c.0.0.lease")]
    for lease in leases:
        lease.write_text("deadbeef-77")
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 90)
    with cells.lease((0, 0)) as lease:
        assert lease is Lease.BUSY
    with pytest.raises(ConflictError, match="another command works in the folder"):
        replace_grid(tmp_path / "r", LAYOUT, identity=NEW)
    GridCells.at(tmp_path / "r", LAYOUT, identity=OLD)
    assert all(lease.exists() for lease in leases)
