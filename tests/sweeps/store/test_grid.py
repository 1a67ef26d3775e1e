import contextlib
import errno
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from holdfast.core import CellResult
from holdfast.core.owner import owner
from holdfast.sweeps.store import Axis, GridCells, Layout, Lease, open_grid
from holdfast.sweeps.store.files import files_at
from holdfast.sweeps.store.header import Header
from sweeps.store.grid_files import contents
from sweeps.store.grid_products import check_products, fill, product
from sweeps.store.grid_writer import IDENTITY, LAYOUT, computed
from sweeps.store.object_store import s3_bucket


@pytest.fixture
def cells(tmp_path):
    """A grid of 2 x 2 x 2 cells, all finished."""
    layout = LAYOUT.chosen([(0, 1), (0, 1)], 10)
    cells = GridCells.at(tmp_path / "results.zarr", layout, identity=IDENTITY)
    assert fill(cells) == 8
    return cells


def test_xarray_opens_the_group_without_a_warning_and_finds_what_open_grid_finds(cells):
    ours, theirs = open_grid(cells.files.root), xr.open_zarr(cells.files.root).load()
    assert ours["path_0"].dims == ("step_size", "batching", "seed", "step")
    assert ours["steps"].dtype == np.int32
    for name in set(ours.variables) - {"finished"}:
        np.testing.assert_array_equal(ours[name], theirs[name].astype(ours[name].dtype))
    assert set(theirs.variables) - set(ours.variables) == {"checksum"}
    assert (theirs["checksum"] > 0).all()
    assert ours.attrs == IDENTITY
    xr.testing.assert_identical(xr.open_zarr(cells.files.root, consolidated=False).load(), theirs)


def test_values_are_those_that_were_saved(cells):
    data = open_grid(cells.files.root)
    for index in np.ndindex(2, 2, 2):
        block = slice(5 * index[2], 5 * index[2] + 5)
        saved = computed(cells.settings(index), cells.block(index))
        for name, values in saved.values.items():
            np.testing.assert_array_equal(data[name].values[(*index[:2], block)], values)


def test_what_is_not_computed_is_fill_and_not_finished(tmp_path):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2], "b": ["x"]}, seeds=3, most_seeds=3), identity={})
    assert xr.open_zarr(tmp_path / "r")["checksum"].shape == (2, 1, 3)
    assert set(open_grid(tmp_path / "r").data_vars) == {"seconds", "finished"}
    cells.save((0, 0, 0), product({"a": 1, "b": "x"}, np.arange(3)))
    data = open_grid(tmp_path / "r", ["product"])
    assert data["product"].values[:, 0].tolist() == [[0, 1, 2], [np.iinfo(np.int64).min] * 3]
    assert data["finished"].values[:, 0].tolist() == [[True] * 3, [False] * 3]
    with pytest.raises(ValueError, match="variables must be among label, product, got 'x'"):
        open_grid(tmp_path / "r", ["x"])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def swap(path):
    other = path.with_name(path.name.replace("c.1.0.1", "c.0.0.0"))
    other.write_bytes(path.read_bytes())


@pytest.mark.parametrize("name", ["path_2/c.1.0.1.0", "outcome/c.1.0.1", "checksum/c.1.0.1"])
@pytest.mark.parametrize(
    "change", [lambda path: os.truncate(path, 7), flip, Path.unlink, lambda path: path.write_bytes(b"")]
)
def test_damage_is_noticed_and_only_the_damaged_cell_is_computed_again(cells, name, change):
    before = open_grid(cells.files.root)
    change(Path(cells.files.root, name))
    again = GridCells.at(cells.files.root, cells.requested, identity=IDENTITY)
    assert list(again.missing()) == [(1, 0, 1)]
    damaged = open_grid(cells.files.root)
    assert int((~damaged["finished"]).sum()) == 5  # the seeds of one cell
    assert np.isnan(damaged["path_0"].values[1, 0, 5:]).all()
    assert fill(again) == 1
    xr.testing.assert_equal(open_grid(cells.files.root).drop_vars("seconds"), before.drop_vars("seconds"))


def test_a_chunk_of_another_cell_is_damage(cells):
    for folder in Path(cells.files.root).iterdir():
        for path in folder.glob("c.1.0.1*") if folder.is_dir() else ():
            swap(path)
    assert list(cells.missing()) == [(0, 0, 0)]


def test_growing_computes_only_what_is_new_and_opens_in_the_order_asked_for(tmp_path):
    """Random layouts one after the other: what was computed before is never computed again."""
    random, done = np.random.default_rng(0), set()
    for _ in range(8):
        a = random.permutation(6)[: random.integers(1, 6)].tolist()
        b = random.permutation(["x", "y", "ä ö", "z"])[: random.integers(1, 5)].tolist()
        seeds = int(random.integers(1, 12))
        cells = GridCells.at(tmp_path / "r", Layout.of({"a": a, "b": b}, seeds=seeds, most_seeds=3), identity={})
        size = cells.layout.seeds_per_cell
        wanted = {(x, y, block) for x in a for y in b for block in range(-(-seeds // size))}
        assert fill(cells, product) == len(wanted - done)
        done |= wanted
        check_products(open_grid(tmp_path / "r"), a, b, seeds)
    everything = xr.open_zarr(tmp_path / "r").load()
    finished = everything["checksum"] > 0
    expected = everything["a"] * everything["seed"] * xr.ones_like(everything["b"], dtype=int)
    assert everything["product"].where(finished).equals(expected.transpose(*finished.dims).where(finished))


def test_whole_numbers_may_be_followed_by_others(tmp_path):
    for a, new in (([1, 3], 2), ([1, 2.5, 3], 1)):
        cells = GridCells.at(tmp_path / "r", Layout.of({"a": a, "b": ["x"]}, seeds=2, most_seeds=2), identity={})
        assert fill(cells, lambda settings, seeds: CellResult({"product": settings["a"] * seeds * 1.0})) == new
    assert open_grid(tmp_path / "r")["product"].sel(a=2.5, seed=1).item() == 2.5
    assert xr.open_zarr(tmp_path / "r")["a"].values.tolist() == [1.0, 3.0, 2.5]


def test_points_are_found_by_their_settings(tmp_path):
    def layout(*points):
        a, b = zip(*points, strict=True)
        return Layout.of([Axis("point", {"a": a, "b": b})], seeds=2, most_seeds=2)

    assert fill(GridCells.at(tmp_path / "r", layout((1, "x"), (2, "y"), (2, "y")), identity={}), product) == 3
    cells = GridCells.at(tmp_path / "r", layout((2, "y"), (3, "x"), (1, "x")), identity={})
    assert fill(cells, product) == 1
    data = open_grid(tmp_path / "r")
    assert data["product"].sel(seed=1).values.tolist() == data["a"].values.tolist() == [2, 3, 1]
    assert data["b"].dims == ("point",)
    assert set(xr.open_zarr(tmp_path / "r").coords) == {"a", "b", "seed"}


@pytest.mark.parametrize(
    ("axes", "identity", "message"),
    [
        ({"a": [1]}, {"program": "other", "settings": {"steps": 3}}, "program must be 'this' as in the folder"),
        ({"a": [1]}, {"program": "this", "settings": {"steps": 4}}, r"settings\.steps must be 3 .* got 4"),
        ({"a": [1]}, {"program": "this", "settings": {"steps": 3, "d": 1}}, r"settings\.d must be None .* got 1"),
        ({"b": [1]}, {"program": "this", "settings": {"steps": 3}}, "axes must be a as in the folder .* got b"),
        ({"a": ["x"]}, {"program": "this", "settings": {"steps": 3}}, "values of 'a' must be numbers, text or bool"),
    ],
)
def test_another_program_or_setting_is_refused_by_name_and_changes_nothing(tmp_path, axes, identity, message):
    first = {"program": "this", "settings": {"steps": 3}}
    GridCells.at(tmp_path / "r", Layout.of({"a": [1]}, seeds=2, most_seeds=2), identity=first)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=message):
        GridCells.at(tmp_path / "r", Layout.of(axes, seeds=2, most_seeds=2), identity=identity)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_folders_of_other_things_are_refused(tmp_path):
    layout = Layout.of({"a": [1]}, seeds=2, most_seeds=2)
    (tmp_path / "text.txt").write_text("mine")
    xr.Dataset({"x": ("y", [1.0])}).to_zarr(tmp_path / "other.zarr", consolidated=False)
    for path, words in (
        (
            tmp_path,
            r"must be a new one or one of holdfast, got .*, which has other files and no zarr\.json \(other\.zarr, t",
        ),
        (
            tmp_path / "other.zarr",
            r"cannot be used: their zarr\.json is damaged, or not of holdfast \(KeyError: 'grid'\)",
        ),
        (tmp_path / "text.txt", "the folder of the results must be a folder, got the file"),
    ):
        with pytest.raises(ValueError, match=words):
            GridCells.at(path, layout, identity={})
    with pytest.raises(ValueError, match="the folder must have results of holdfast in it, got"):
        open_grid(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"loss": np.ones((2, 4))}, r"variable 'loss' .* got float64 \(loss_1 = 4 per seed\) after float64"),
        ({"loss": np.ones((2, 3), np.float32)}, "variable 'loss' must be the same in every cell, got float32"),
        ({"loss": np.ones((2, 3)), "more": np.ones(2)}, "variable 'more' .* after none"),
        ({"less": np.ones((2, 3))}, "variable 'less' must be the same"),
        ({"loss": np.ones((3, 3))}, "values must be for 2 seeds, got 3"),
        ({"loss": np.ones((2, 3), complex)}, "variable 'loss': values must be real numbers"),
    ],
)
def test_a_cell_of_another_form_is_refused(tmp_path, values, message):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2), identity={})
    cells.save((0, 0), CellResult({"loss": np.ones((2, 3))}))
    with pytest.raises(ValueError, match=message):
        cells.save((1, 0), CellResult(values))
    assert list(cells.missing()) == [(1, 0)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a", "must be new ones, got 'a', which is an axis already"),
        *(
            (name, f"must be new ones, got '{name}', which is used by the result itself")
            for name in ("seed", "seconds")
        ),
        *((name, "must be plain words, got") for name in ("../elsewhere", ".hidden", "")),
    ],
)
def test_variables_have_names_of_their_own(tmp_path, name, words):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2), identity={})
    with pytest.raises(ValueError, match=f"names of axes and variables {words}"):
        cells.save((0, 0), CellResult({name: np.ones(2)}))


@contextlib.contextmanager
def full_disk():
    """Files of more than 200 bytes cannot be written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def read_only(folder):
    """Root may write everywhere, so it becomes another user for a while."""
    everything = [folder, *folder.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("kind", ["full disk", "read-only"])
def test_a_folder_that_cannot_be_written_to_is_a_clear_error_and_the_rest_is_readable(kind):
    with tempfile.TemporaryDirectory() as temporary:
        os.chmod(temporary, 0o755)
        folder = Path(temporary, "results.zarr")
        cells = GridCells.at(folder, LAYOUT.chosen([(0,), (0, 1)], 5), identity=IDENTITY)
        cells.save((0, 0, 0), computed(cells.settings((0, 0, 0)), cells.block((0, 0, 0))))
        value = computed(cells.settings((0, 1, 0)), cells.block((0, 1, 0)))
        before = set(folder.rglob("*"))
        with full_disk() if kind == "full disk" else read_only(folder):
            with pytest.raises(OSError, match=r"path_0/c\.0\.1\.0\.0|outcome/c\.0\.1\.0") as caught:
                cells.save((0, 1, 0), value)
            assert caught.value.errno == (errno.EFBIG if kind == "full disk" else errno.EACCES)
            if kind == "read-only":
                with pytest.raises(PermissionError), cells.lease((0, 1, 0)):
                    pass
                assert list(GridCells.at(folder, cells.requested, identity=IDENTITY).missing()) == [(0, 1, 0)]
                with pytest.raises(PermissionError):  # there is more to write than cells
                    GridCells.at(folder, LAYOUT, identity=IDENTITY)
            assert list(GridCells.open(folder).missing()) == [(0, 1, 0)]
            assert open_grid(folder)["finished"].sum() == 5
        left = {path for path in set(folder.rglob("*")) - before if path.parent.name == "checksum"}
        assert left == set()  # no half of a file
        assert fill(GridCells.at(folder, cells.requested, identity=IDENTITY)) == 1


def test_failures_are_noted_until_the_cell_is_saved(tmp_path):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2], "b": ["x"]}, seeds=2, most_seeds=2), identity={})
    cells.fail((1, 0, 0), "ValueError: too large")
    assert cells.failures() == {(1, 0, 0): "ValueError: too large"}
    assert fill(cells, product) == 2
    assert cells.failures() == {}
    assert not list(tmp_path.rglob("*.failure"))


def test_failures_of_cells_that_are_no_longer_asked_for_are_not_listed(tmp_path):
    for values, seeds in (([1, 2], 4), ([2], 2)):
        layout = Layout.of({"a": values}, seeds=seeds, most_seeds=2)
        cells = GridCells.at(tmp_path / "r", layout, identity={})
        for index in cells.missing():
            cells.fail(index, "ValueError: no")
    assert cells.layout.shape == (2, 2)
    assert cells.failures() == {(1, 0): "ValueError: no"}


@pytest.mark.parametrize("remote", [False, True])
def test_a_grid_whose_creation_was_interrupted_is_made_by_the_next_command(tmp_path, remote):
    path = "memory://interrupted/r" if remote else tmp_path / "r"
    layout = Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2)
    written = Header.of(layout, {}, {}).files()
    for count in range(len(written)):
        for name, content in list(written.items())[:count]:
            files_at(path).write(name, content)
        cells = GridCells.at(path, layout, identity={})
        assert len(list(cells.missing())) == 2
        for name in written:
            cells.files.delete(name)


def test_the_time_of_a_block_is_shared_between_the_cells_that_are_computed(tmp_path):
    cells = GridCells.at(tmp_path / "r", Layout.of({"a": [1, 2]}, seeds=2, most_seeds=2), identity={})
    cells.save((0, 0), CellResult({"loss": np.ones(2)}))
    with cells.lease((0, 0)) as first, cells.lease((1, 0)) as second:
        assert (first, second) == (Lease.FINISHED, Lease.TAKEN)
        time.sleep(0.02)
        cells.save((1, 0), CellResult({"loss": np.ones(2)}))
    assert float(open_grid(cells.files.root)["seconds"].sel(a=2).sum()) >= 0.02


def test_what_killed_processes_left_is_removed_by_the_next_command(cells):
    checksums = Path(cells.files.root, "checksum")
    gone = f"{owner().partition('-')[0]}-{2**22 + 1}"
    left = f".temporary-{gone}-0", f".temporary-{gone}-1", "c.0.0.0.lease", "c.0.0.0.failure", "c.0.0.1.lease.lease"
    for name in left:
        (checksums / name).write_text(gone)
    (checksums / ".temporary-elsewhere-7-0").write_text("in use")
    GridCells.at(cells.files.root, cells.requested, identity=IDENTITY)
    assert {path.name for path in checksums.iterdir() if not path.name.startswith("c.")} == {
        "zarr.json",
        ".temporary-elsewhere-7-0",
    }
    assert len(list(checksums.glob("c.*"))) == 8


def test_a_copy_on_a_worker_saves_the_same_bytes(cells, tmp_path):
    layout = cells.requested
    fresh = pickle.dumps(GridCells.at(tmp_path / "copy.zarr", layout, identity=IDENTITY))
    for index in np.ndindex(*layout.shape):
        pickle.loads(fresh).save(index, computed(layout.settings(index), layout.block(index)))
    assert contents(tmp_path / "copy.zarr") == contents(cells.files.root)
    assert list(cells.missing()) == []


def test_many_cells_are_listed_without_looking_at_each(tmp_path, monkeypatch):
    layout = Layout.of({"a": range(200), "b": np.linspace(0, 1, 50)}, seeds=16, most_seeds=8)
    cells = GridCells.at(tmp_path / "r", layout, identity={})
    cells.save((3, 4, 1), CellResult({"loss": np.ones(8)}))
    with monkeypatch.context() as patch:
        patch.setattr("os.stat", lambda *_: pytest.fail("a question per cell"))
        patch.setattr("os.open", lambda *_: pytest.fail("a question per cell"))
        missing = set(cells.missing(verify=False))
    assert len(missing) == layout.cells - 1
    assert (3, 4, 1) not in missing


def test_the_writer_needs_numpy_alone(tmp_path):
    script = f"""
import sys
sys.modules.update(dict.fromkeys(["xarray", "zarr", "pandas", "fsspec", "jax"]))
import numpy as np
from holdfast.core import CellResult
from holdfast.sweeps.store import GridCells, Layout
cells = GridCells.at({str(tmp_path / "r")!r}, Layout.of({{"a": ["x", "y"]}}, seeds=2, most_seeds=2), identity={{}})
for index in cells.missing():
    cells.save(index, CellResult({{"loss": np.ones(2)}}))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (open_grid(tmp_path / "r")["loss"] == 1).all()


@pytest.fixture
def bucket():
    with s3_bucket() as url:
        yield url


@pytest.mark.parametrize("path", ["memory://bucket/results.zarr", pytest.param("s3", marks=pytest.mark.slow)])
def test_object_stores_hold_the_same_bytes(path, cells, request):
    if path == "s3":
        path = f"{request.getfixturevalue('bucket')}/results.zarr"
    remote = GridCells.at(path, cells.requested, identity=IDENTITY)
    assert fill(remote) == 8
    assert list(remote.missing()) == []
    root = cells.files.root
    for name, content in contents(root).items():
        assert remote.files.read(name) == content, name
    xr.testing.assert_identical(open_grid(path).drop_vars("seconds"), open_grid(root).drop_vars("seconds"))
    assert xr.open_zarr(path).load()["path_1"].equals(open_grid(path)["path_1"])
    remote.files.write("path_2/c.1.0.1.0", b"damaged")
    remote.files.delete("outcome/c.0.0.0")
    remote.fail((1, 0, 1), "OSError: lost")
    again = pickle.loads(pickle.dumps(GridCells.at(path, cells.requested, identity=IDENTITY)))
    assert set(again.missing()) == {(1, 0, 1), (0, 0, 0)}
    assert fill(again) == 2
    assert again.running() == []
    assert again.failures() == {}
