"""Results in a folder: what is loaded is what was saved, or nothing; and nothing is computed twice."""

import contextlib
import errno
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from holdfast.core import CellResult
from holdfast.core.owner import owner
from holdfast.sweeps.engines import RefusedWorkerError
from holdfast.sweeps.engines.remote import Payload
from holdfast.sweeps.store import CELLS, DATASETS, RECORDS, Cell, CodeVersion, Key, Lease, Store, naming
from holdfast.sweeps.store import store as storing
from holdfast.sweeps.store.naming import cell_name, settings_hash
from holdfast.sweeps.store.work import CellWork
from sweeps.store.cell_files import cell_files, notes
from sweeps.store.object_store import s3_bucket

MODULES = ("holdfast.core.statistics",)
DATA = xr.Dataset(
    {
        "share": (("batching", "seed"), np.ones((2, 3), np.float32), {"odd": {1}}),
        "when": (("seed",), np.array(["2026-01-01", "2026-01-02", "NaT"], "datetime64[ns]")),
    },
    {"batching": ["hetero", "pooled"], "seed": np.arange(3)},
    {"threshold": np.float64(0.5), "levels": np.array([1, 2]), "odd": object()},
)
RECORD = {"error": 0.25, "undefined": float("nan"), "choice": "a"}
CELL = CellResult(
    {"path": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3), "end": np.array(["ä", ""]), "sure": [True, False]},
    {"path": ("step",)}, {"step": [0, 5, 10]}, {"path": "where it was"},
)  # fmt: skip


def name(title="first", modules=MODULES, **settings):
    return Key(title, settings, modules, ("numpy", "no-such-package")).file


@pytest.fixture(params=[(CELLS, CELL), (DATASETS, DATA), (RECORDS, RECORD)], ids=["cell", "data set", "record"])
def saved(request, tmp_path):
    """A store with one result."""
    codec, value = request.param
    store = Store(tmp_path / "results", codec)
    store.save(name(seeds=3), value, 1.5)
    return store, value


def test_what_is_loaded_is_what_was_saved(saved):
    store, value = saved
    again = store.load(name(seeds=3))
    if isinstance(value, xr.Dataset):
        assert again.equals(value)
        assert again.attrs == {"threshold": 0.5, "levels": [1, 2], "odd": str(value.attrs["odd"])}
        assert again["share"].dtype == np.float32
        assert list(again.coords) == list(value.coords)
    elif isinstance(value, CellResult):
        assert {name: each.tolist() for name, each in again.values.items()} == {
            name: each.tolist() for name, each in value.values.items()
        }
        assert (again.dimensions, again.meanings) == (value.dimensions, value.meanings)
        assert again.values["path"].dtype == np.float32
        assert again.coordinates["step"].tolist() == [0, 5, 10]
    else:
        assert repr(again) == repr(value)
    assert store.read(name(seeds=3)).seconds == 1.5
    assert store.read(name(seeds=3)).computed_by == naming.computed_by()
    assert store.load(name(seeds=4)) is None
    assert store.load(name("second", seeds=3)) is None


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_bytes(path.read_bytes() + b" "),
        lambda path: path.write_bytes(b""),
        flip,
        Path.unlink,
    ],
    ids=["shortened", "longer", "empty", "a flipped bit", "gone"],
)
def test_damage_is_seen_and_the_result_is_missing_until_it_is_saved_again(saved, change):
    store, value = saved
    cells = [Cell(name(seeds=3), "ours")]
    assert list(store.missing(cells)) == []
    change(cell_files(store.folder)[0])
    assert store.load(name(seeds=3)) is None
    assert list(store.missing(cells)) == cells
    with store.lease(name(seeds=3)) as lease:
        assert lease is Lease.TAKEN
        store.save(name(seeds=3), value)
    assert list(store.missing(cells)) == []


def test_a_file_under_the_name_of_another_result_is_damage(saved):
    store, _ = saved
    (path,) = cell_files(store.folder)
    other = name(seeds=4)
    (store.folder / other[:2]).mkdir(exist_ok=True)
    path.rename(store.folder / store.path(other))
    assert store.load(other) is None
    assert [cell.label for cell in store.missing([Cell(other, "damaged"), Cell(path.name, "gone")])] == [
        "gone", "damaged"
    ]  # fmt: skip


def test_names_do_not_depend_on_the_order_of_settings_or_the_type_of_whole_numbers():
    one, other = {"bias": 1, "steps": 10, "order": "cyclic"}, {"order": "cyclic", "steps": 10.0, "bias": 1.0}
    assert settings_hash(one) == settings_hash(other)
    different = [{**one, "bias": 2}, {**one, "bias": "1"}, {**one, "bias": True}, {**one, "steps": 1, "bias": 10}]
    different += [{"bias": 1, "steps": 10}, {**one, "more": None}]
    assert len({cell_name(settings_hash(each), "0" * 16) for each in [one, *different]}) == 7


KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast.sweeps.store import RECORDS, Key, Store

store = Store(Path(sys.argv[1]), RECORDS)
name = Key("second", {"seeds": 3}, ("holdfast.core.statistics",), ("numpy", "no-such-package")).file
with store.scratch():
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    with store.lease(name):
        store.save(name, {"error": 0.5})
"""


def test_a_run_that_is_killed_leaves_nothing_that_looks_like_a_result_and_the_next_one_removes_it(saved):
    store, value = saved
    found = subprocess.run([sys.executable, "-c", KILLED, str(store.folder)], stderr=subprocess.PIPE)
    assert (found.returncode, found.stderr) == (-signal.SIGKILL, b"")
    assert len(list(store.folder.rglob(".temporary-*"))) == 2  # a scratch folder, and half of a result
    assert store.finished() == {name(seeds=3)}
    store.tidy()
    with store.scratch():
        pass
    store.save(name("second", seeds=3), value)
    assert list(store.folder.rglob(".temporary-*")) == []
    assert notes(store.folder, ".lease") == []
    assert store.finished() == {name(seeds=3), name("second", seeds=3)}


def test_a_process_that_is_killed_loses_its_lease_to_the_next_one(tmp_path):
    script = (
        "import sys, time\nfrom holdfast.sweeps.store import RECORDS, Store\n"
        "with Store(sys.argv[1], RECORDS).lease(sys.argv[2]) as lease:\n    print(lease.value, flush=True)\n"
        "    time.sleep(100)\n"
    )
    store = Store(tmp_path, RECORDS)
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path, name()], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "taken\n"
    with store.lease(name()) as lease:
        assert lease is Lease.BUSY
    assert [each.partition("-")[2] for each in store.running()] == [str(process.pid)]
    process.kill()
    process.communicate()
    assert store.running() == []
    with store.lease(name()) as lease:
        assert lease is Lease.TAKEN


def test_results_and_notes_of_other_code_can_be_told_apart_and_deleted(saved, monkeypatch):
    store, value = saved
    store.save(name(seeds=4), value)
    gone = f"{owner().partition('-')[0]}-{2**22 + 1}"
    with monkeypatch.context() as patch:
        patch.setattr(naming, "fingerprint", lambda modules: "other code")
        old = name(seeds=3)
        assert store.load(old) is None
        store.save(old, value)
        store.fail(old, "ValueError: no")
        store.save(name(seeds=5), value)
        (store.folder / f"{store.path(old)}.lease").write_text(gone)
    assert old[:32] == name(seeds=3)[:32]
    store.replace_others(name(seeds=3))
    assert store.load(old) is None
    assert len(store.finished()) == 3
    assert notes(store.folder, ".failure") == notes(store.folder, ".lease") == []
    assert store.prune(name()[33:]) == 1
    assert store.finished() == {name(seeds=3), name(seeds=4)}
    assert store.ways() == [naming.computed_by()]


def test_versions_of_packages_decide(saved, monkeypatch):
    store, _ = saved
    monkeypatch.setattr(naming, "installed_version", lambda package: "another")
    assert store.load(name(seeds=3)) is None


def test_cells_that_were_computed_in_different_ways_are_noticed(saved, monkeypatch):
    store, value = saved
    assert store.ways() == [naming.computed_by()]
    monkeypatch.setattr(storing, "computed_by", lambda: "XLA on avx2, jax 0.10.2")
    store.save(name(seeds=4), value)
    assert set(store.ways()) == {naming.computed_by(), "XLA on avx2, jax 0.10.2"}
    assert store.read(name(seeds=4)).computed_by == "XLA on avx2, jax 0.10.2"


def test_a_value_that_changes_when_written_is_refused(tmp_path):
    pairs = pd.MultiIndex.from_product([[1, 2], [3, 4]], names=["one", "two"])
    odd = DATA.assign_coords(xr.Coordinates.from_pandas_multiindex(pairs, "pair"))
    with pytest.raises(ValueError, match=r"the result must (have a form on disk|be the same after writing)"):
        Store(tmp_path, DATASETS).save(name(), odd)
    with pytest.raises(ValueError, match="the result must have a form on disk, which this has not"):
        Store(tmp_path, RECORDS).save(name(), {"error": object()})
    with pytest.raises(ValueError, match="must be the same after writing and reading"):
        Store(tmp_path, RECORDS).save(name(), {"error": (1, 2)})
    assert list(Store(tmp_path, RECORDS).finished()) == []


def test_failures_are_noted_until_the_cell_is_saved(saved):
    store, value = saved
    store.fail(name(seeds=4), "ValueError: too large")
    assert store.failures() == {name(seeds=4): "ValueError: too large"}
    assert store.finished() == {name(seeds=3)}
    store.save(name(seeds=4), value)
    assert store.failures() == {}


def test_a_scratch_store_lies_in_the_folder_and_leaves_nothing(tmp_path):
    store = Store(tmp_path / "results", RECORDS)
    with store.scratch() as scratch:
        scratch.save(name(), {"error": 0.25})
        assert scratch.load(name()) == {"error": 0.25}
        assert scratch.folder.parent == store.folder
        assert store.load(name()) is None
    assert list(store.folder.iterdir()) == []


def test_a_copy_of_the_code_is_refused_by_name_where_it_is_another_one(tmp_path, monkeypatch):
    work = CellWork(Store(tmp_path, RECORDS), abs, None, CodeVersion(MODULES, ("numpy", "scikit-learn")))
    payload = Payload.of(work)
    monkeypatch.setattr(naming, "installed_version", lambda package: "0.0.1")
    words = "worker 3 has numpy 0.0.1, we have .* and scikit-learn 0.0.1, we have .*; install the same on all machines"
    with pytest.raises(RefusedWorkerError, match=words):
        payload.open("worker 3")
    monkeypatch.undo()
    monkeypatch.setattr(naming, "fingerprint", lambda modules: "other code")
    with pytest.raises(RefusedWorkerError, match="worker 3 has code with the digest other code, we have "):
        payload.open("worker 3")


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
        store = Store(Path(temporary, "cells"), CELLS)
        store.save(name(seeds=3), CELL)
        before = set(store.folder.rglob("*"))
        with full_disk() if kind == "full disk" else read_only(store.folder):
            with pytest.raises(OSError, match=name(seeds=4)) as caught:
                store.save(name(seeds=4), CELL)
            assert caught.value.errno == (errno.EFBIG if kind == "full disk" else errno.EACCES)
            if kind == "read-only":
                with pytest.raises(PermissionError), store.lease(name(seeds=4)):
                    pass
            assert store.load(name(seeds=3)).values["path"].tolist() == CELL.values["path"].tolist()
            assert store.finished() == {name(seeds=3)}
        assert {path for path in set(store.folder.rglob("*")) - before if path.is_file()} == set()  # no half of a file


@pytest.fixture
def bucket():
    with s3_bucket() as url:
        yield url


@pytest.mark.parametrize("url", ["memory://bucket/cells", pytest.param("s3", marks=pytest.mark.slow)])
def test_object_stores_hold_the_same_bytes(url, saved, request):
    here, value = saved
    if url == "s3":
        url = f"{request.getfixturevalue('bucket')}/{here.folder.name}"
    away = Store(f"{url}/{type(value).__name__}", here.codec)
    cells = [Cell(name(seeds=number), number) for number in (3, 4, 5)]
    assert list(away.missing(cells)) == cells
    with away.lease(name(seeds=3)) as lease, away.lease(name(seeds=3)) as again:
        assert lease is again is Lease.TAKEN  # object stores have no leases
        away.save(name(seeds=3), value, 1.5)
    with away.lease(name(seeds=3)) as lease:
        assert lease is Lease.FINISHED
    path = here.path(name(seeds=3))
    assert away.files.read(path) == (here.folder / path).read_bytes()
    away.fail(name(seeds=4), "OSError: lost")
    away = pickle.loads(pickle.dumps(away))
    assert (away.finished(), away.failures()) == ({name(seeds=3)}, {name(seeds=4): "OSError: lost"})
    away.files.write(away.path(name(seeds=5)), b"damaged")
    assert [cell.label for cell in away.missing(cells)] == [4, 5]
    assert away.running() == []
