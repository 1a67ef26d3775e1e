"""Axes of many values, which are in zarr arrays of their own and not in the metadata."""

import os
import pickle

import numpy as np
import pytest
import xarray as xr

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.store.files import LocalFiles, files_at
from holdfast.sweeps.store.grid import GridCells
from holdfast.sweeps.store.header import ConflictError, Header
from holdfast.sweeps.store.layout import Axis, Layout

MANY = 3000


def points(count, begin=0):
    numbers = range(begin, begin + count)
    batchings = tuple(("hetero", "pooled")[number % 2] for number in numbers)
    own = {"step_size": tuple(0.1 / (number + 3) for number in numbers), "batching": batchings, "size": tuple(numbers)}
    return Layout.of([Axis("point", own)], seeds=1, most_seeds=1)


def saved(cells, index):
    cells.save(index, CellResult({"twice": np.array([2 * cells.settings(index)["size"]])}))


def test_many_points_are_read_as_they_were_written_and_leave_the_metadata_small(tmp_path):
    layout = points(MANY)
    cells = GridCells.at(tmp_path / "r", layout, identity={"program": "twice"})
    saved(cells, (2999, 0))
    assert GridCells.open(tmp_path / "r").layout == layout
    assert (tmp_path / "r/zarr.json").stat().st_size < 10_000
    data = xr.open_zarr(tmp_path / "r")
    for name, values in layout.axes[0].coordinates.items():
        assert data[name].values.tolist() == list(values)
    assert int(data["twice"][2999, 0]) == 5998


def test_a_copy_for_a_worker_is_small_and_knows_the_same_cells(tmp_path):
    cells = GridCells.at(tmp_path / "r", points(MANY), identity={})
    packed = pickle.dumps(cells)
    assert len(packed) < 1000
    assert pickle.loads(packed) == cells
    saved(pickle.loads(packed), (7, 0))
    assert cells.content((7, 0)) is not None
    assert len(list(cells.missing())) == MANY - 1


@pytest.mark.parametrize("first", [5, MANY])
def test_many_points_grow_at_the_end_or_anywhere(tmp_path, first):
    saved(GridCells.at(tmp_path / "r", points(first), identity={}), (2, 0))
    longer = GridCells.at(tmp_path / "r", points(MANY + 50), identity={})
    assert longer.positions == (range(MANY + 50),)
    assert len(list(longer.missing())) == MANY + 49
    other = GridCells.at(tmp_path / "r", points(100, begin=MANY), identity={})
    assert other.positions == (tuple(range(MANY, MANY + 100)),)
    assert other.requested == points(100, begin=MANY)
    assert [other.settings(index)["size"] for index in other.missing()] == list(range(MANY, MANY + 100))
    for index in ((2, 0), (MANY + 99, 0)):
        assert other.settings(index) == points(MANY + 100).settings(index)
    saved(other, (MANY + 99, 0))
    values = xr.open_zarr(tmp_path / "r")["step_size"].values
    np.testing.assert_array_equal(values, points(MANY + 100).axes[0].coordinates["step_size"])


def test_a_command_that_is_killed_while_it_extends_many_points_leaves_what_was_there(tmp_path):
    before = GridCells.at(tmp_path / "r", points(MANY), identity={})
    files = files_at(tmp_path / "r")
    longer = Header.read(files).extended(points(MANY + 50), {}).files()
    for name, content in longer.items():  # one file after the other; the group, which makes them valid, is the last
        assert Header.read(files).layout == before.layout
        files.write(name, content)
    assert Header.read(files).layout == points(MANY + 50)


def flip(path):
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["step_size", "batching"])
@pytest.mark.parametrize(
    "damage",
    [flip, lambda path: os.truncate(path, 0), lambda path: os.truncate(path, 1001), lambda path: path.unlink()],
    ids=["flipped", "empty", "cut", "missing"],
)
def test_damaged_values_are_noticed_and_written_again_by_a_command_that_knows_them(tmp_path, name, damage):
    cells, file = GridCells.at(tmp_path / "r", points(MANY), identity={}), tmp_path / "r" / name / "c.0"
    saved(cells, (7, 0))
    for again in (MANY, MANY + 50):  # the same command, and one that extends it
        before = file.read_bytes()
        damage(file)
        for read in (GridCells.open, lambda path: GridCells.at(path, points(9, begin=5), identity={})):
            with pytest.raises(ConflictError, match=rf"values of '{name}' .* are damaged .* choose another folder"):
                read(tmp_path / "r")
        cells = GridCells.at(tmp_path / "r", points(again), identity={})
        assert len(list(cells.missing())) == again - 1
        assert GridCells.open(tmp_path / "r").layout == points(again)
        assert again > MANY or file.read_bytes() == before


def test_values_that_only_their_own_file_has_are_on_the_disk_before_the_group(tmp_path, monkeypatch):
    write, durable = LocalFiles.write, []

    def noted(self, name, content, **options):
        durable.extend([name] if options.get("durable") else [])
        write(self, name, content, **options)

    monkeypatch.setattr(LocalFiles, "write", noted)
    cells = GridCells.at(tmp_path / "r", points(MANY), identity={})
    coordinates = [f"{name}/c.0" for name in ("step_size", "batching", "size")]
    assert durable == [*coordinates, "zarr.json"]
    steps = np.arange(MANY)
    cells.save((0, 0), CellResult({"loss": np.ones((1, MANY))}, {"loss": ("step",)}, {"step": steps}))
    assert durable == [*coordinates, "zarr.json", "step/c.0", "step/c.1", "step/c.2", "zarr.json"]
    flip(tmp_path / "r/step/c.1")
    with pytest.raises(ConflictError, match=r"values of 'step' .* are damaged .* restore the file from a copy"):
        GridCells.open(tmp_path / "r")


def test_whole_numbers_of_many_points_do_not_become_others(tmp_path):
    whole = Layout.of({"size": range(MANY)}, seeds=1, most_seeds=1)
    GridCells.at(tmp_path / "r", whole, identity={})
    with pytest.raises(ConflictError, match=r"size must be whole numbers as in the folder .* got 0.5"):
        GridCells.at(tmp_path / "r", Layout.of({"size": [*range(MANY), 0.5]}, seeds=1, most_seeds=1), identity={})
    assert GridCells.open(tmp_path / "r").layout == whole
