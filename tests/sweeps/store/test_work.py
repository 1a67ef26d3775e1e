"""The loop: what is missing is computed once, whoever else works on it, and whatever fails."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.core.run import Algorithm, Run, run
from holdfast.core.worker import StoppedError, working
from holdfast.sweeps.engines import Finished, RefusedWorkerError, ThreadEngine
from holdfast.sweeps.engines.remote import LostClusterError
from holdfast.sweeps.store.leases import Lease
from holdfast.sweeps.store.naming import Cell
from holdfast.sweeps.store.work import CellBatches, CellWork, SaveError, compute, compute_each


class MemoryStore:
    """Results in the memory of one process, by the labels of their cells."""

    def __init__(self):
        self.saved, self.failed, self.leased = {}, {}, set()
        self._lock = threading.Lock()

    def missing(self, cells):
        return (cell for cell in cells if cell.name not in self.saved)

    @contextmanager
    def lease(self, name):
        with self._lock:
            state = Lease.FINISHED if name in self.saved else Lease.BUSY if name in self.leased else Lease.TAKEN
            if state is Lease.TAKEN:
                self.leased.add(name)
        try:
            yield state
        finally:
            if state is Lease.TAKEN:
                self.leased.remove(name)

    def save(self, name, value, seconds):
        self.saved[name] = value

    def fail(self, name, reason):
        self.failed[name] = reason


def cells_of(labels):
    return [Cell(label, label) for label in labels]


def test_all_missing_cells_are_computed_once_and_none_a_second_time():
    store, calls = MemoryStore(), Counter()
    labels = [(i, j) for i in range(20) for j in range(5)]

    def function(index):
        calls[index] += 1
        return sum(index)

    outcome = compute(store, cells_of(labels), function, ThreadEngine(2))
    assert store.saved == {index: sum(index) for index in labels}
    assert set(calls.values()) == {1}
    assert (outcome.computed, outcome.computed_elsewhere, outcome.failed) == (100, 0, 0)
    assert compute(store, cells_of(labels), function, ThreadEngine(2)).computed == 0
    assert calls.total() == 100


def _at(function, line):
    """The place of a line of a function, counted from 0, as reasons of failures begin with it."""
    return f"test_work.py:{function.__code__.co_firstlineno + line}: "


def test_a_cell_that_fails_is_noted_and_does_not_stop_the_others():
    store = MemoryStore()

    def function(index):
        if index in "bc":
            raise FileNotFoundError("no such file")  # an OSError, but not one of the folder of results
        return index.upper()

    outcome = compute(store, cells_of("abcd"), function, ThreadEngine(2))
    assert store.saved == {"a": "A", "d": "D"}
    reason = f"{_at(function, 2)}FileNotFoundError: no such file"
    assert store.failed == dict.fromkeys("bc", reason)
    assert {reason: sorted(failed) for reason, failed in outcome.failures.items()} == {reason: ["b", "c"]}
    assert store.leased == set()


def test_each_cell_comes_once_with_the_reason_if_it_failed_and_the_outcome_at_the_end():
    def function(index):
        return {"a": 1, "b": 2}[index]

    each, ended = compute_each(CellWork(MemoryStore(), function), cells_of("abc"), ThreadEngine(1)), []
    while True:
        try:
            ended.append(next(each))
        except StopIteration as end:
            outcome = end.value
            break
    reason = f"{_at(function, 1)}KeyError: 'c'"
    assert ended == [("a", None), ("b", None), ("c", reason)]
    assert (outcome.computed, outcome.failures) == (2, {reason: ["c"]})


def test_the_place_of_a_failure_is_the_innermost_in_code_of_the_user():
    store = MemoryStore()

    def inner():
        return json.loads("[")  # raises in the standard library

    compute(store, cells_of("a"), lambda index: inner(), ThreadEngine(1))
    assert store.failed["a"].startswith(f"{_at(inner, 1)}JSONDecodeError: Expecting value")
    compute(store, cells_of("a"), int, ThreadEngine(1))  # no code of the user's at all
    assert store.failed["a"].startswith("ValueError: invalid literal")


def test_a_result_of_the_wrong_form_is_a_failure_and_a_full_disk_stops_all():
    class Strict(MemoryStore):
        def save(self, name, value, seconds):
            if value < 0:
                raise ValueError("values must not be negative")
            if value == 5:
                raise OSError(28, "No space left on device")
            super().save(name, value, seconds)

    outcome = compute(Strict(), cells_of([(-1,), (0,), (1,)]), lambda index: index[0], ThreadEngine(1))
    ((reason, failed),) = outcome.failures.items()
    assert reason.endswith(": ValueError: values must not be negative")
    assert (reason.partition(":")[0], failed) == (Path(__file__).name, [(-1,)])

    store, cells = Strict(), cells_of([(number,) for number in range(1000)])
    with pytest.raises(SaveError, match=r"of \(5,\) cannot .*No space left.*; 5 cells saved, and the same command"):
        compute(store, cells, lambda index: index[0], ThreadEngine(1))
    assert len(store.saved) < 10
    assert store.leased == set()


class _LosingEngine:
    """Its worker is lost, so that the loop itself notes the failure."""

    name = "losing"

    def run(self, work, items):
        yield from (Finished(item, None, "LostWorkerError: gone") for item in items)


@pytest.mark.parametrize(("engine", "reason"), [(ThreadEngine(1), "ValueError: a"), (_LosingEngine(), "LostWorker")])
def test_a_full_disk_while_a_failure_is_noted_stops_with_both_reasons(engine, reason):
    class Full(MemoryStore):
        def fail(self, name, reason):
            raise OSError(28, "No space left on device")

    def function(index):
        raise ValueError(index)

    both = rf"of a cannot be saved: OSError: .*No space left on device \(it had failed: .*{reason}.*; 0 cells saved"
    with pytest.raises(SaveError, match=both):
        compute(Full(), cells_of("a"), function, engine)


def test_two_loops_share_the_cells():
    store, cells, calls = MemoryStore(), cells_of([(number,) for number in range(30)]), Counter()

    def function(index):
        calls[index] += 1
        time.sleep(0.002)
        return index[0]

    outcomes = []
    loop = lambda: outcomes.append(compute(store, cells, function, ThreadEngine(2)))  # noqa: E731
    loops = [threading.Thread(target=loop) for _ in "ab"]
    for each in loops:
        each.start()
    for each in loops:
        each.join()
    assert len(store.saved) == 30
    assert set(calls.values()) == {1}
    assert sum(outcome.computed for outcome in outcomes) == 30
    assert all(outcome.computed + outcome.computed_elsewhere <= 30 for outcome in outcomes)


def test_a_cell_that_another_process_has_is_asked_for_until_it_is_finished_or_free(monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.store.work.FIRST_WAIT", 0.01)
    store = MemoryStore()
    store.leased |= {(1,), (2,)}
    asked = Counter()
    lease = store.lease

    def counted(index):
        asked[index] += 1
        if asked[index] == 3 and index == (1,):
            store.saved[index] = "by the other process"
        if asked[index] == 3 and index == (2,):
            store.leased.remove(index)  # the other process died, and its lease has expired
        return lease(index)

    monkeypatch.setattr(store, "lease", counted)
    outcome = compute(store, cells_of([(0,), (1,), (2,)]), lambda index: "by us", ThreadEngine(2))
    assert store.saved == {(0,): "by us", (1,): "by the other process", (2,): "by us"}
    assert (outcome.computed, outcome.computed_elsewhere) == (2, 1)
    assert asked == {(0,): 1, (1,): 3, (2,): 3}


def test_an_interrupt_releases_leases_and_the_next_call_computes_the_rest():
    store, cells, started = MemoryStore(), cells_of([(number,) for number in range(100)]), []

    class Interrupted:
        """An engine that is interrupted, as by Ctrl-C, after some results."""

        name = "interrupted"

        def run(self, work, items):
            for number, finished in enumerate(ThreadEngine(2).run(work, items)):
                yield finished
                if number == 9:
                    raise KeyboardInterrupt

    def function(index):
        started.append(index)
        return index[0]

    with pytest.raises(KeyboardInterrupt):
        compute(store, cells, function, Interrupted())
    assert store.leased == set()
    assert store.failed == {}
    assert 10 <= len(store.saved) == len(started) < 20
    compute(store, cells, function, ThreadEngine(2))
    assert len(store.saved) == len(started) == 100


def test_a_run_ends_at_its_next_report_when_its_worker_is_stopped():
    reports = []

    def build(shared, parameters):
        return Run(Algorithm(lambda: jnp.ones(()), lambda key, x, number: 0.5 * x), lambda x: {"x": x})

    with working(stopped=lambda: len(reports) >= 3), pytest.raises(StoppedError):
        run(build, None, {"scale": np.ones(1)}, [0], steps=10**6, every=10, progress=lambda *done: reports.append(done))
    assert len(reports) == 3


def test_a_stopped_cell_is_neither_saved_nor_a_failure():
    store = MemoryStore()

    def function(index):
        if index == "a":
            raise StoppedError
        raise ValueError("because it was stopped")

    work = CellWork(store, function)
    assert work(cells_of("a"))[0].state == "stopped"
    with working(stopped=lambda: True):
        assert work(cells_of("b"))[0].state == "stopped"
    assert (store.saved, store.failed, store.leased) == ({}, {}, set())
    assert work(cells_of("b"))[0].state == "failed"


@pytest.mark.parametrize("error", [RefusedWorkerError("worker 3 has jax 0.9.0"), LostClusterError("no connection")])
def test_when_an_engine_gives_up_the_error_says_what_is_saved(error):
    class Failing:
        name = "failing"

        def run(self, work, items):
            yield Finished(cells_of("a"), work(cells_of("a")), None)
            raise error

    with pytest.raises(type(error), match=f"{error}; 1 cell saved, and the same command goes on from there"):
        compute(MemoryStore(), cells_of("ab"), str.upper, Failing())


def test_reports_have_what_a_progress_bar_needs(monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.store.work.REPORTING", 0.0)
    reports = []

    def function(index):
        if index == (3,):
            raise ValueError("no")

    cells = cells_of([(number,) for number in range(8)])
    compute(MemoryStore(), cells, function, ThreadEngine(1), lambda *values: reports.append(values), total=8)
    dones, totals, rates, left, failures = zip(*reports, strict=True)
    assert list(dones) == [*range(1, 9), 8]
    assert set(totals) == {8}
    assert all(rate > 0 for rate in rates)
    assert [rate * seconds for rate, seconds in zip(rates, left, strict=True)] == pytest.approx([8 - n for n in dones])
    assert failures[2] == {}
    assert failures[-1] == {f"{_at(function, 2)}ValueError: no": 1}


def test_cells_that_nobody_counted_are_added_to_the_total():
    """Damaged cells are found while others are computed: no report has more done than there are, or negative time."""
    reports = []
    cells = cells_of([(index,) for index in range(6)])
    outcome = compute(MemoryStore(), cells, sum, ThreadEngine(1), lambda *report: reports.append(report), total=2)
    assert outcome.damaged == 4
    assert reports[-1][:2] == (6, 6)
    assert all(done <= total and (left is None or left >= 0) for done, total, _, left, _ in reports)


def test_cells_of_one_kind_are_computed_together_and_saved_one_by_one():
    store, blocks = MemoryStore(), []
    labels = [(i, j) for i in range(7) for j in range(3)]

    def function(block):
        blocks.append(block)
        return [sum(index) for index in block]

    batches = CellBatches(4, lambda index: index[1], function)
    outcome = compute(store, cells_of(labels), sum, ThreadEngine(2), batches=batches)
    assert store.saved == {index: sum(index) for index in labels}
    assert (outcome.computed, outcome.failed) == (21, 0)
    assert sorted(map(len, blocks)) == [3, 3, 3, 4, 4, 4]
    assert all(len({j for _, j in block}) == 1 for block in blocks)


def test_a_block_leaves_out_what_others_have_and_fails_cell_by_cell():
    store = MemoryStore()
    store.leased.add((4,))
    store.saved[5,] = 25

    def function(block):
        assert block == [(0,), (1,), (2,), (3,)]
        raise ZeroDivisionError

    work = CellWork(store, lambda index: 6 // index[0], CellBatches(6, len, function))
    states = [receipt.state for receipt in work(cells_of([(number,) for number in range(6)]))]
    assert states == ["failed", "computed", "computed", "computed", "busy", "finished"]
    assert store.saved == {(1,): 6, (2,): 3, (3,): 2, (5,): 25}
    assert store.failed == {(0,): f"{_at(work.function, 0)}ZeroDivisionError: integer division or modulo by zero"}
    assert store.leased == {(4,)}
