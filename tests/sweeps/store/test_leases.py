"""Leases, and the files in which they lie."""

import os
import pickle
import resource
import subprocess
import sys
import threading
import time

import pytest

from holdfast.core.owner import is_gone, owner
from holdfast.sweeps.store.files import LocalFiles, files_at
from holdfast.sweeps.store.leases import Lease, Leases

ELSEWHERE = "0-1"  # a process of another machine
GONE = f"{owner().partition('-')[0]}-{2**22 + 1}"  # one of this machine that has ended


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def ask(folder, **options):
    with Leases(files_at(folder)).take("a.lease", **options) as lease:
        return lease


def write_lease(folder, content, age):
    """A lease that someone wrote, renewed some seconds ago."""
    path = folder / "a.lease"
    path.write_text(content)
    moment = time.time() - age
    os.utime(path, (moment, moment))


@pytest.mark.parametrize(
    ("content", "age", "expected"),
    [
        (ELSEWHERE, 59, Lease.BUSY),
        (ELSEWHERE, 61, Lease.TAKEN),
        ("", 0, Lease.BUSY),  # between making the file and writing to it
        ("", 61, Lease.TAKEN),
        (GONE, 0, Lease.TAKEN),
        (owner(), 0, Lease.BUSY),
    ],
    ids=["held elsewhere", "expired elsewhere", "being written", "never written", "process gone", "ours"],
)
def test_a_lease_is_free_when_it_expired_or_its_process_is_gone(folder, content, age, expected):
    write_lease(folder, content, age)
    assert ask(folder) is expected
    # who took over released it, and what was busy is as it was
    assert [path.read_text() for path in folder.iterdir()] == ([] if expected is Lease.TAKEN else [content])


def test_work_that_was_finished_in_the_meantime_is_not_done_again(folder):
    assert ask(folder, is_finished=lambda: True) is Lease.FINISHED
    assert list(folder.iterdir()) == []


RENEWED = """
import sys, time
from pathlib import Path
from holdfast.sweeps.store import Lease, Leases, leases
from holdfast.sweeps.store.files import files_at

leases.EXPIRES = 0.2
path = Path(sys.argv[1], "a.lease")
with Leases(files_at(sys.argv[1])).take("a.lease") as lease:
    begin, deadline = path.stat().st_mtime, time.monotonic() + 30
    while path.stat().st_mtime <= begin + 0.2 and time.monotonic() < deadline:  # it would have expired by now
        time.sleep(0.01)
    print(lease is Lease.TAKEN, path.stat().st_mtime > begin + 0.2)
"""


def test_a_lease_is_renewed_while_it_is_held(folder):
    found = subprocess.run([sys.executable, "-c", RENEWED, folder], stdout=subprocess.PIPE, text=True, check=True)
    assert found.stdout.split() == ["True", "True"]


def test_a_lease_that_was_lost_is_not_taken_from_the_new_owner(folder):
    with Leases(files_at(folder)).take("a.lease"):
        write_lease(folder, ELSEWHERE, 0)
    assert (folder / "a.lease").read_text() == ELSEWHERE


def test_who_finds_a_free_lease_that_another_took_over_meanwhile_leaves_it(folder, monkeypatch):
    """Between the look at the lease and the claim to it."""
    write_lease(folder, ELSEWHERE, 100)
    create = LocalFiles.create

    def late(files, name, content):
        if name == "a.lease.lease":
            write_lease(folder, "1-2", 0)
        return create(files, name, content)

    monkeypatch.setattr(LocalFiles, "create", late)
    assert ask(folder) is Lease.BUSY
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("a.lease", "1-2")]


def test_who_finds_that_a_free_lease_was_released_meanwhile_takes_it(folder, monkeypatch):
    write_lease(folder, ELSEWHERE, 100)
    create = LocalFiles.create

    def late(files, name, content):
        if name == "a.lease.lease":
            (folder / "a.lease").unlink()
        return create(files, name, content)

    monkeypatch.setattr(LocalFiles, "create", late)
    assert ask(folder) is Lease.TAKEN
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("claimant", "expected"), [(GONE, Lease.TAKEN), (ELSEWHERE, Lease.BUSY)])
def test_a_claim_of_a_process_that_was_killed_holds_nobody_up(folder, claimant, expected):
    write_lease(folder, ELSEWHERE, 100)
    (folder / "a.lease.lease").write_text(claimant)
    assert ask(folder) is Lease.BUSY
    assert ask(folder) is expected


def test_of_many_threads_one_takes_over(folder):
    """All find the same expired lease at once; the others find it busy."""
    for _ in range(100):
        write_lease(folder, ELSEWHERE, 100)
        found, barrier, done = [], threading.Barrier(4), threading.Barrier(4)

        def take(found=found, barrier=barrier, done=done):
            barrier.wait()
            with Leases(files_at(folder)).take("a.lease") as lease:
                found.append(lease)
                done.wait()

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found, key=str) == [Lease.BUSY] * 3 + [Lease.TAKEN]
        assert list(folder.iterdir()) == []


def test_waiting_ends_when_the_lease_is_released(folder):
    order = []
    leases = Leases(files_at(folder))

    def wait():
        with leases.wait("a.lease"):
            order.append("second")

    with leases.wait("a.lease"):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_process_waits_for_a_lease_until_it_is_free(folder, monkeypatch):
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            (folder / "a.lease").unlink()

    write_lease(folder, ELSEWHERE, 0)
    monkeypatch.setattr(time, "sleep", sleep)
    with Leases(files_at(folder)).wait("a.lease"):
        assert waits == [0.2] * 3


def test_object_stores_give_a_lease_to_everyone():
    leases = Leases(files_at("memory://leases"))
    with leases.take("a") as first, leases.take("a") as second:
        assert (first, second) == (Lease.TAKEN, Lease.TAKEN)
    assert leases.is_free("a")


def test_nothing_is_known_of_processes_elsewhere():
    assert not is_gone(owner())
    assert not is_gone(ELSEWHERE)
    assert not is_gone("")


def test_who_cannot_write_can_still_see_how_old_a_lease_is(folder, monkeypatch):
    write_lease(folder, ELSEWHERE, 30)
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "")))
    assert files_at(folder).age("a.lease") == pytest.approx(30, abs=20)


@pytest.mark.parametrize("root", ["local", "memory://files"])
def test_files_are_the_same_everywhere(root, folder):
    files = pickle.loads(pickle.dumps(files_at(folder / "results" if root == "local" else root)))
    assert files.read("a/b") is None
    assert list(files.walk()) == []
    files.delete("a/b")
    for content in (b"first", b"second", b""):
        files.write("a/b", content)
        assert files.read("a/b") == content
    files.write("a/c", b"third")
    files.write("d", b"fourth")
    assert sorted(files.walk()) == ["a/b", "a/c", "d"]
    files.delete("a/b")
    assert sorted(files.walk()) == ["a/c", "d"]


def test_a_file_is_written_whole_or_not_at_all(folder, monkeypatch):
    files = files_at(folder)
    files.write("a", b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "")))
        with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: .*a'"):
            files.write("a", b"after")
    assert files.read("a") == b"before"
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_lease_that_a_full_disk_does_not_take_is_free(folder):
    leases = Leases(files_at(folder))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match="File too large"), leases.take("a.lease"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(folder.iterdir()) == []
    with leases.take("a.lease") as lease:
        assert lease is Lease.TAKEN


def test_what_a_server_refuses_is_an_error_of_the_disk_that_names_the_address(monkeypatch):
    files = files_at("memory://refused")

    def refused(*_):
        raise RuntimeError("Access\nDenied")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.pipe_file", refused)
    with pytest.raises(OSError, match="'memory://refused' cannot be reached: Access Denied"):
        files.write("a", b"content")
    with pytest.raises(ValueError, match="a protocol that fsspec knows, got 'pigeon://results'"):
        files_at("pigeon://results").read("a")
