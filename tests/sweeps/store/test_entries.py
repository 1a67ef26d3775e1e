import pickle
import threading

import pytest

from holdfast.core.owner import owner
from holdfast.sweeps.engines import RefusedWorkerError
from holdfast.sweeps.engines.remote import Payload
from holdfast.sweeps.store import RECORDS, EntryCells, Key, Lease, Store
from holdfast.sweeps.store.work import CellWork

MODULES = ("holdfast.core.statistics",)


@pytest.fixture
def cells(tmp_path):
    keys = {name: Key(f"test/{name}", {"seed": 0}, MODULES) for name in ("a", "b", "c")}
    return EntryCells(Store(tmp_path / "results", RECORDS), keys)


def test_entries_are_missing_until_they_are_saved(cells):
    assert list(cells.missing()) == ["a", "b", "c"]
    with cells.lease("b") as lease, cells.lease("b") as other:
        assert (lease, other) == (Lease.TAKEN, Lease.BUSY)
        cells.save("b", {"error": 0.5})
    assert list(cells.missing()) == ["a", "c"]
    with cells.lease("b") as lease:
        assert lease is Lease.FINISHED
    assert cells.store.load(cells.keys["b"]) == {"error": 0.5}


def test_a_damaged_entry_is_missing(cells):
    cells.save("a", {"error": 0.5})
    cells.store.find(cells.keys["a"]).write_text("{}")
    with cells.lease("a") as lease:
        assert lease is Lease.TAKEN
    assert list(cells.missing()) == ["a", "b", "c"]


def test_failures_are_noted_until_the_entry_is_saved(cells):
    cells.fail("c", "ValueError: no")
    assert [path.read_text() for path in cells.store.folder.rglob("*.failure")] == ["ValueError: no"]
    assert "c" in set(cells.missing())
    cells.save("c", {"error": 0.5})
    assert list(cells.store.folder.rglob("*.failure")) == []


def test_notes_of_other_code_are_deleted_with_its_results(cells, monkeypatch):
    """Whoever was killed left its lease; nobody asks for it again when the code has changed."""
    home, gone = cells.store.folder / "test/a", f"{owner().partition('-')[0]}-{2**22 + 1}"
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.sweeps.store.store.fingerprint", lambda modules: "other code")
        cells.save("a", {"error": 0.5})
        cells.fail("a", "ValueError: no")
        (cells.store.folder / f"{cells.store.stem(cells.keys['a'])}.lease").write_text(gone)
    assert len(list(home.iterdir())) == 3
    cells.save("a", {"error": 0.5})
    assert list(home.iterdir()) == [cells.store.find(cells.keys["a"])]


def test_threads_compute_every_entry_once(cells):
    computed = []

    def work():
        for index in list(cells.missing()):
            with cells.lease(index) as lease:
                if lease is Lease.TAKEN:
                    computed.append(index)
                    cells.save(index, {"error": 1.0})

    cells.store.prepare(cells.keys.values())
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(computed) == ["a", "b", "c"]


def test_entries_are_named(cells):
    with pytest.raises(TypeError, match="the index of an entry must be its name"):
        cells.lease((0, 1))
    with pytest.raises(ValueError, match="index must be among a, b, c, got 'd'"):
        cells.save("d", {})


@pytest.mark.parametrize(
    ("changed", "other", "refusal"),
    [
        ("platform.python_version", lambda: "3.11.99", r"worker 3 has python 3\.11\.99, we have .*; install the same"),
        (
            "holdfast.sweeps.store.store.installed_version",
            lambda name: f"old {name}",
            "worker 3 has scipy old scipy, we have",
        ),
        (
            "holdfast.sweeps.store.store.fingerprint",
            lambda modules: "c0de",
            "worker 3 has code with the digest c0de, we",
        ),
    ],
)
def test_a_worker_that_would_save_under_other_names_is_refused(tmp_path, monkeypatch, changed, other, refusal):
    """Nobody would find its results: names have the versions of packages and of Python, and the code."""
    store, key = Store(tmp_path / "results", RECORDS), Key("test", {}, MODULES, ("scipy",))
    payload = Payload.of(CellWork(EntryCells(store, {"test": key}), lambda index: {"error": 0.5}))
    monkeypatch.setattr(changed, other)
    with pytest.raises(RefusedWorkerError, match=refusal):
        payload.open("worker 3")
    monkeypatch.undo()
    assert [receipt.state for receipt in payload.open("worker 3")(["test"])] == ["computed"]
    assert store.load(key) == {"error": 0.5}


def test_a_worker_gets_a_copy(cells):
    assert list(pickle.loads(pickle.dumps(cells)).missing()) == ["a", "b", "c"]
