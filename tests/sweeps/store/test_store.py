import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from holdfast.sweeps.store import store as storing
from holdfast.sweeps.store.store import DATASETS, RECORDS, DamagedError, Key, Store

MODULES = ("holdfast.core.statistics",)
DATA = xr.Dataset(
    {"share": (("batching", "seed"), np.ones((2, 3), np.float32), {"odd": {1}})},
    {"batching": ["hetero", "pooled"], "seed": np.arange(3)},
    {"threshold": np.float64(0.5), "levels": np.array([1, 2]), "odd": object()},
)
RECORD = {"error": 0.25, "undefined": float("nan"), "choice": "a"}


def key(name="first", **settings):
    return Key(name, settings, MODULES, ("numpy", "no-such-package"))


def entries(store):
    return sorted(path for path in store.folder.rglob("*") if path.suffix == store.codec.suffix)


@pytest.fixture(params=[(DATASETS, DATA), (RECORDS, RECORD)], ids=["data set", "record"])
def saved(request, tmp_path):
    """A store with one result."""
    codec, value = request.param
    store = Store(tmp_path / "results", codec)
    return store, store.save(key(seeds=3), value)


def test_what_is_loaded_is_what_save_returned(saved):
    store, value = saved
    again = store.load(key(seeds=3))
    assert again.identical(value) if isinstance(value, xr.Dataset) else repr(again) == repr(value)
    assert store.load(key(seeds=4)) is None
    assert store.load(key("second", seeds=3)) is None


def test_attributes_that_json_does_not_know_become_text(tmp_path):
    data = Store(tmp_path, DATASETS).save(key(), DATA)
    assert data.attrs == {"threshold": 0.5, "levels": [1, 2], "odd": str(DATA.attrs["odd"])}
    assert data["share"].dtype == np.float32


def damage_chunk(entry, change):
    paths = [path for path in entry.glob("share/*") if not path.name.startswith(".")] or [entry]
    change(paths[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_bytes(path.read_bytes() + b" "),
        lambda path: path.unlink() if path.parent.name == "share" else path.write_bytes(b""),
        lambda path: shutil.rmtree(path.parent) if path.parent.name == "share" else path.write_bytes(b"{}"),
    ],
    ids=["shortened", "longer", "missing", "all gone"],
)
def test_damage_is_seen_once_and_then_the_result_is_gone(saved, change):
    store, _ = saved
    damage_chunk(entries(store)[0], change)
    with pytest.raises(DamagedError, match="is damaged"):
        store.load(key(seeds=3))
    assert store.load(key(seeds=3)) is None
    assert not entries(store)


KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast.sweeps.store import EntryCells, Key, Store
from holdfast.sweeps.store.store import Codec

def write(path, value):
    path.write_text("half of a res")
    os.kill(os.getpid(), signal.SIGKILL)

keys = {"second": Key("second", {"seeds": 3}, ("holdfast.core.statistics",), ("numpy", "no-such-package"))}
store = Store(Path(sys.argv[1]), Codec(".json", (), write, None, None))
if sys.argv[2] == "lease":  # killed while it takes the lease
    os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with store.scratch(), EntryCells(store, keys).lease("second"):
    store.save(keys["second"], {})
"""


@pytest.mark.parametrize("moment", ["result", "lease"])
def test_a_run_that_is_killed_leaves_nothing_that_looks_like_a_result_and_the_next_one_removes_it(saved, moment):
    store, value = saved
    found = subprocess.run([sys.executable, "-c", KILLED, str(store.folder), moment], stderr=subprocess.PIPE)
    assert (found.returncode, found.stderr) == (-signal.SIGKILL, b"")
    assert len(list(store.folder.glob(".temporary-*"))) == 2  # a scratch folder, and half of a result or of a lease
    assert store.load(key("second", seeds=3)) is None
    store.save(key("second", seeds=3), value)
    assert store.load(key("second", seeds=3)) is not None
    assert sorted(path.name for path in store.folder.iterdir()) == ["first", "second"]


def test_results_of_other_code_are_deleted_and_those_of_other_settings_and_names_stay(saved, monkeypatch):
    store, value = saved
    store.save(key(seeds=4), value)
    for name in ("second", "first/inner"):
        store.save(key(name), value)
    before = set(entries(store))
    assert len(before) == 4
    monkeypatch.setattr(storing, "fingerprint", lambda modules: "other code")
    assert store.load(key(seeds=3)) is None
    store.save(key(seeds=3), value)
    after = set(entries(store))
    assert len(after) == 3
    assert {path.parent.name for path in after & before} == {"second", "inner"}


def test_versions_of_packages_decide(saved, monkeypatch):
    store, _ = saved
    monkeypatch.setattr(storing, "installed_version", lambda package: "another")
    assert store.load(key(seeds=3)) is None


def test_saving_twice_changes_nothing(saved):
    store, value = saved
    first = entries(store)
    store.save(key(seeds=3), value)
    assert entries(store) == first


def test_a_value_that_changes_when_written_is_refused(tmp_path):
    pairs = pd.MultiIndex.from_product([[1, 2], [3, 4]], names=["one", "two"])
    odd = DATA.assign_coords(xr.Coordinates.from_pandas_multiindex(pairs, "pair"))
    with pytest.raises(ValueError, match=r"value must have a form on disk|value must be the same after writing"):
        Store(tmp_path, DATASETS).save(key(), odd)
    with pytest.raises(ValueError, match="value must have a form on disk, which that of 'first' has not"):
        Store(tmp_path, RECORDS).save(key(), {"error": object()})
    with pytest.raises(ValueError, match="must be the same after writing and reading"):
        Store(tmp_path, RECORDS).save(key(), {"error": (1, 2)})
    assert os.listdir(tmp_path) == ["first"]


@pytest.mark.parametrize("name", ["", "../elsewhere", "a//b", "/root"])
def test_names_stay_inside_the_folder(name):
    with pytest.raises(ValueError, match="name must be a relative path without dots"):
        Key(name, {}, MODULES)


def test_prepared_keys_read_no_source_later(tmp_path, monkeypatch):
    """Threads must not parse source: Python 3.11 may fail when another thread does the same."""
    store, prepared = Store(tmp_path, RECORDS), Key("first", {}, ("holdfast.core.survival",))
    store.prepare([prepared, Key("without source", {}, ("no_such_module",))])
    monkeypatch.setattr("holdfast.core.fingerprint._statements", lambda m: pytest.fail(f"{m} is read again"))
    assert store.load(prepared) is None
    assert store.save(prepared, RECORD)["error"] == 0.25


def test_a_scratch_store_lies_in_the_folder_and_leaves_nothing(tmp_path):
    store = Store(tmp_path / "results", RECORDS)
    with store.scratch() as scratch:
        scratch.save(key(), {"error": 0.25})
        assert scratch.load(key()) == {"error": 0.25}
        assert scratch.folder.parent == store.folder
        assert store.load(key()) is None
    assert list(store.folder.iterdir()) == []
