"""Engines on this machine: every item comes back once, errors are results, items are pulled as they are needed."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from holdfast.core.worker import current_worker
from holdfast.sweeps.engines import DeviceEngine, EngineOptions, Feed, ProcessEngine, RefusedWorkerError, ThreadEngine
from holdfast.sweeps.engines.remote import Payload
from sweeps.store.waiting import wait_until

HERE = [ThreadEngine(), ThreadEngine(3), DeviceEngine()]


@pytest.mark.parametrize("engine", HERE, ids=lambda engine: engine.name)
def test_every_item_comes_back_once_and_errors_are_results(engine):
    def work(item):
        if item % 7 == 0:
            raise ValueError(f"not {item}")
        if item % 7 == 1:
            sys.exit(item)  # must not take the item with it
        return item**2

    finished = list(engine.run(work, iter(range(50))))
    assert sorted(each.item for each in finished) == list(range(50))
    for item, value, error in finished:
        expected = {0: (None, f"ValueError: not {item}"), 1: (None, f"SystemExit: {item}")}
        assert (value, error) == expected.get(item % 7, (item**2, None))


@pytest.mark.parametrize("engine", HERE, ids=lambda engine: engine.name)
def test_items_are_pulled_as_they_are_needed(engine):
    pulled = []
    items = (pulled.append(number) or number for number in range(10**6))
    results = engine.run(abs, items)
    assert pulled == []
    list(itertools.islice(results, 10))
    results.close()
    assert len(pulled) < 30
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("holdfast")]


def test_results_come_in_the_order_in_which_they_finish():
    first_may_end = threading.Event()

    def work(item):
        return first_may_end.wait(10) if item == 0 else first_may_end.set()

    assert [each.item for each in ThreadEngine(2).run(work, range(2))] == [1, 0]


def test_items_may_depend_on_results():
    """An iterator that waits for a result does not block the engine."""
    results = []

    def items():
        yield 1
        while not results:
            yield Feed.WAIT
        yield results[0] + 1

    for finished in ThreadEngine(2).run(lambda item: 10 * item, items()):
        results.append(finished.value)
    assert results == [10, 110]


def test_what_is_running_is_asked_to_stop_and_what_waits_never_starts():
    started, stopped = [], []

    def work(item):
        started.append(item)
        while item and not current_worker().stopped():
            time.sleep(0.01)
        stopped.append(item)

    results = ThreadEngine(2).run(work, range(10))
    assert next(results).item == 0
    results.close()
    assert sorted(stopped) == sorted(started)
    assert len(started) <= 4  # two at a time, of which the first one ended by itself


def test_work_has_one_thread():
    assert {each.value for each in ThreadEngine(2).run(lambda item: current_worker().threads, range(4))} == {1}


def test_threads_work_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert [each.value for each in ThreadEngine(1).run(abs, [-1])] == [1]


def test_processes_are_pinned_and_the_items_of_a_killed_one_are_computed_by_the_next(tmp_path):
    def work(item):
        if item == 4 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if item == 5:
            raise ValueError("not five")
        time.sleep(0.3)  # the next process needs some seconds
        return os.getpid(), os.sched_getaffinity(0)

    pulled = []
    items = (pulled.append(number) or number for number in range(60))
    results = ProcessEngine(2).run(work, items)
    first = next(results)
    assert len(pulled) <= 4  # at most two for each process
    finished = {each.item: each for each in (first, *results)}
    assert sorted(finished) == list(range(60))
    assert (tmp_path / "killed").exists()
    assert finished.pop(5).error == "ValueError: not five"
    cores = dict(each.value for each in finished.values())
    assert len(cores) == 3  # processes: two, and the one that took the place of the killed one
    assert all(len(each) == 1 for each in cores.values())
    assert set.union(*cores.values()) == set(sorted(os.sched_getaffinity(0))[:2])


def test_a_process_that_is_killed_while_it_is_idle_is_replaced():
    found = []

    def items():
        for number in range(3):
            while len(found) < number:
                yield Feed.WAIT
            if found:
                os.kill(found[-1], signal.SIGKILL)
                until = time.monotonic() + 1
                while time.monotonic() < until:  # as for a cell that another command computes
                    yield Feed.WAIT
            yield number

    for finished in ProcessEngine(1).run(lambda item: os.getpid(), items()):
        assert finished.error is None
        found.append(finished.value)
    assert len(set(found)) == 3


def test_nothing_starts_in_processes_after_an_interrupt(tmp_path, monkeypatch):
    def work(item):
        (tmp_path / str(item)).touch()
        while not current_worker().stopped():
            time.sleep(0.01)

    def interrupted(pool, timeout):
        wait_until((tmp_path / "0").exists)  # the first is running, and the second waits in its process
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.sweeps.engines.dask._Workers.finished", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(ProcessEngine(1).run(work, range(10)))
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


@pytest.mark.slow
def test_a_process_whose_memory_grows_goes_on():
    """Compiled programs take hundreds of megabytes, and another process would have to compile them again."""
    grown = []

    def work(item):
        grown.append(np.ones(50_000_000))  # 400 MB
        time.sleep(1.1)  # monitors look once or twice a second
        return os.getpid()

    assert len({each.value for each in ProcessEngine(1).run(work, range(3))}) == 1


@pytest.mark.slow
def test_an_item_that_kills_its_process_again_and_again_fails_and_the_others_do_not():
    def work(item):
        if item == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    finished = list(ProcessEngine(2).run(work, range(8)))
    assert sorted(each.value for each in finished if each.error is None) == [0, 1, 2, 4, 5, 6, 7]
    assert [each.item for each in finished if (each.error or "").startswith("LostWorkerError")] == [3]


SCRIPT = """
import os, time
from pathlib import Path
from holdfast.sweeps.engines import ProcessEngine

folder = Path(__file__).parent


def work(item):
    (folder / f"pid-{os.getpid()}").touch()
    time.sleep(100)


if __name__ == "__main__":
    (folder / "started").touch()
    list(ProcessEngine(2).run(work, range(4)))
"""


def _session(number):
    """The processes of a session that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
            if int(session) == number and state != "Z":
                found.append(path.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.2, 0.6, 1.0, 1.5, 2.0, 3.0, None])
def test_no_process_outlives_a_command_that_is_killed(tmp_path, moment):
    """While the processes start, some seconds after the command, or while all of them work."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, str(script)], start_new_session=True, stderr=subprocess.DEVNULL)
    if moment is None:
        wait_until(lambda: len(list(tmp_path.glob("pid-*"))) == 2)
    else:
        wait_until((tmp_path / "started").exists, every=0.01)
        time.sleep(moment)
    parent.kill()
    parent.wait()
    wait_until(lambda: not _session(parent.pid))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"workers": 1}, "1 thread"),
        ({"processes": 3}, "3 processes"),
        ({"dask": "tcp://head:8786"}, "Dask at tcp://head:8786"),
        ({"devices": True}, DeviceEngine().name),
    ],
)
def test_options_choose_an_engine(options, name):
    assert EngineOptions(**options).engine().name == name
    assert EngineOptions().engine() is None  # each command has its own default


def test_wrong_options_are_refused_with_their_names():
    with pytest.raises(ValueError, match="only one engine may be chosen, got workers and dask"):
        EngineOptions(workers=2, dask="tcp://head:8786").engine()
    with pytest.raises(ValueError, match="processes must be a whole number of at least 1, got 0"):
        EngineOptions(processes=0)
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got -1"):
        ThreadEngine(-1)


class _Reading:
    """Reads a file where it is loaded, as cells read their folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.open, (str(self.path), os.O_RDONLY)


def test_work_is_loaded_once_for_a_run_and_again_for_the_next(tmp_path):
    """Also if the same bytes are sent: the folder may have been deleted and made anew."""
    (tmp_path / "file").touch()
    reading = _Reading(tmp_path / "file")
    first, second = (Payload.of(lambda item: reading) for _ in "ab")
    assert first.content == second.content
    opened = [payload.open("worker 3")(0) for payload in (first, first, second)]
    for number in set(opened):
        os.close(number)
    assert opened[0] == opened[1] != opened[2]


def test_work_of_another_platform_or_version_is_refused_by_name():
    payload = Payload.of(abs)
    with pytest.raises(RefusedWorkerError, match="worker 3 computes on a cpu, we on a gpu; start the command where"):
        payload._replace(platform="gpu").open("worker 3")
    with pytest.raises(RefusedWorkerError, match=r"worker 3 has jax .*, we have 0\.0\.1; install the same"):
        payload._replace(versions=payload.versions._replace(jax="0.0.1")).open("worker 3")
