"""A Dask cluster with real schedulers and workers, which are killed, restarted and added while items are computed."""

import itertools
import os
import time
from collections import Counter
from contextlib import ExitStack

import numpy as np
import pytest

from holdfast.core import CellResult
from holdfast.sweeps.engines import DaskEngine, LostClusterError, ProcessEngine, RefusedWorkerError, Versions
from holdfast.sweeps.engines.remote import Payload
from holdfast.sweeps.store import CELLS, Cell, Store, compute
from holdfast.sweeps.store.naming import cell_name, settings_hash
from sweeps.store.live_cluster import LiveCluster
from sweeps.store.waiting import wait_until

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster(tmp_path):
    with ExitStack() as stack:
        yield LiveCluster(tmp_path, stack)


@pytest.fixture
def local():
    """A scheduler with a worker of two threads, in this process."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", protocol="tcp://", host="127.0.0.1"
    ) as cluster:
        yield cluster


def test_every_item_comes_back_once_and_errors_are_results(local):
    def work(item):
        if item == 7:
            raise ValueError("not seven")
        return item**2

    pulled = []
    items = (pulled.append(number) or number for number in range(10**6))
    results = DaskEngine(local.scheduler_address).run(work, items)
    finished = list(itertools.islice(results, 20))
    results.close()
    assert len(pulled) <= 20 + 8  # at most as many in flight as for the least number of threads
    assert max(Counter(each.item for each in finished).values()) == 1
    for item, value, error in finished:
        assert (value, error) == ((None, "ValueError: not seven") if item == 7 else (item**2, None))


def test_a_scheduler_that_is_not_running_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.engines.remote.CONNECTING", 0.2)
    with pytest.raises(LostClusterError, match=r"no connection to the Dask scheduler at tcp://127\.0\.0\.1:9 for"):
        list(DaskEngine("tcp://127.0.0.1:9").run(abs, [1]))


def test_an_address_may_lack_its_protocol_and_a_file_must_exist(monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.engines.remote.CONNECTING", 0.2)
    with pytest.raises(LostClusterError, match="no connection to the Dask scheduler at localhost:9 for"):
        list(DaskEngine("localhost:9").run(abs, [1]))
    with pytest.raises(ValueError, match=r"dask must be the address of .*, got 'localhost', which does not exist"):
        DaskEngine("localhost")


@pytest.mark.parametrize("name", ["dask", "processes"])
def test_the_work_does_not_travel_with_every_item(local, monkeypatch, name):
    """That of a comparison has all its cells, so that the traffic would be quadratic in their number."""
    sent, content = [], bytes(10**6)

    def counted(payload):
        sent.append(len(payload.content or b""))  # a copy begins without its fields
        return Payload, tuple(payload)

    monkeypatch.setattr(Payload, "__reduce__", counted)
    engine = DaskEngine(local.scheduler_address) if name == "dask" else ProcessEngine(1)
    finished = list(engine.run(lambda item: item + len(content), range(100)))
    assert sorted(each.value for each in finished) == list(range(10**6, 10**6 + 100))
    assert 1 <= sum(size > 10**6 for size in sent) <= 3  # Dask may pickle an argument twice


class _Unmounted:
    """A folder that workers do not see."""

    def __reduce__(self):
        return open, ("/not/mounted/there",)


def test_a_worker_that_cannot_open_the_work_is_refused_by_name(local):
    """It is an OSError, but not one of a lost scheduler, to which the engine would connect again without end."""
    folder = _Unmounted()
    with pytest.raises(RefusedWorkerError, match=r"Dask worker 0 cannot open the work: FileNotFoundError: .*/not"):
        list(DaskEngine(local.scheduler_address).run(lambda item: folder, [1, 2]))


def test_an_item_that_the_cluster_cannot_load_fails_by_itself(local):
    finished = list(DaskEngine(local.scheduler_address).run(lambda item: item, [1, _Unmounted(), 2]))
    assert sorted(each.value for each in finished if each.error is None) == [1, 2]
    assert len(finished) == 3


def test_an_item_that_meets_a_closed_client_is_submitted_again(local, monkeypatch):
    submit, calls = distributed.Client.submit, itertools.count()

    def closing(client, *arguments, **options):
        if next(calls) == 2:  # the scheduler is lost between the look at the client and the submission
            client.close()
        return submit(client, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "submit", closing)
    finished = list(DaskEngine(local.scheduler_address).run(abs, [-1, -2, -3, -4, -5]))
    assert next(calls) > 5
    assert sorted(each.value for each in finished) == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_nothing_is_lost_when_workers_come_and_go_and_the_scheduler_is_restarted(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.store.work.REPORTING", 0.0)
    store = Store(tmp_path / "cells", CELLS)
    cells = [Cell(cell_name(settings_hash({"number": number}), "0" * 16), number) for number in range(80)]

    def function(number):
        time.sleep(0.05)
        return CellResult({"process": np.array([os.getpid()]), "square": np.array([number**2])})

    waiting = {10: "a second worker", 25: "a kill", 40: "a restart"}

    def report(done, total, rate, seconds_left, failures):
        match waiting.pop(done, None):
            case "a second worker":
                cluster.add_worker("second")
                wait_until(lambda: "second" in (tmp_path / "scheduler.log").read_text())
            case "a kill":
                cluster.workers["first"].kill()
                cluster.workers["first"].wait()  # until then it looks alive, and its lease would have to expire
            case "a restart":
                cluster.restart_scheduler()
                cluster.add_worker("third")

    cluster.add_worker("first")
    outcome = compute(store, cells, function, DaskEngine(str(cluster.file)), report)
    assert waiting == {}
    assert outcome.failures == {}
    assert outcome.computed + outcome.computed_elsewhere == 80
    # The answers of a few cells were lost with their worker or scheduler, but not the cells.
    assert outcome.computed_elsewhere <= 8
    assert list(store.missing(cells)) == []
    assert store.running() == []
    results = [store.load(cell.name).values for cell in cells]
    assert [int(each["square"][0]) for each in results] == [number**2 for number in range(80)]
    assert {int(each["process"][0]) for each in results} == {process.pid for process in cluster.workers.values()}


@pytest.mark.slow
def test_a_scheduler_that_does_not_come_back_is_an_error_after_a_while(cluster):
    cluster.add_worker("first")
    results = DaskEngine(cluster.address, patience=1.0).run(abs, itertools.count())
    next(results)
    cluster.scheduler.kill()
    with pytest.raises(LostClusterError, match=f"no connection to the Dask scheduler at {cluster.address} for 1 s"):
        list(itertools.islice(results, 10**4))


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused_by_name(cluster, tmp_path):
    other = tmp_path / "other_version.py"
    other.write_text("import holdfast\nholdfast.__version__ = '0.0.1'\n")
    cluster.add_worker("outdated", "--preload", str(other))
    ours = Versions.installed().holdfast
    with pytest.raises(RefusedWorkerError, match=f"Dask worker outdated has holdfast 0.0.1, we have {ours}; install"):
        list(DaskEngine(cluster.address).run(abs, [1]))


@pytest.mark.slow
def test_a_worker_that_lacks_a_module_of_the_user_is_refused_by_name(cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def work(item):\n    return item\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]

    cluster.add_worker("first")
    refusal = "Dask worker first cannot open the work: ModuleNotFoundError: No module named 'only_here'"
    with pytest.raises(RefusedWorkerError, match=refusal):
        list(DaskEngine(cluster.address).run(only_here.work, [1]))
