"""Tables that the workers of a Dask cluster read: the answer of one machine, and what goes wrong in one sentence."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import add

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster

from estimators.chunked import ROWS, agree, cut, plants_table
from holdfast.apps.cli.main import main
from holdfast.estimators import fit_table
from holdfast.sweeps.engines.remote import RefusedWorkerError, Versions
from holdfast.tables import TableModel
from holdfast.tables.frames import TableFrames
from holdfast.tables.passes import Columns, LostWorkerError, Passes
from holdfast.tables.reading import FilePart, open_table


@pytest.fixture(scope="module")
def plants():
    return plants_table()


def test_a_cluster_that_is_not_there_ends_a_fit_in_one_sentence(plants, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.engines.remote.CONNECTING", 0.2)
    plants.to_csv(tmp_path / "plants.csv", index=False)
    arguments = ["fit", str(tmp_path / "plants.csv"), "--target", "grown", "--dask"]
    assert main([*arguments, "tcp://127.0.0.1:9"]) == 1
    assert "no connection to the Dask scheduler at tcp://127.0.0.1:9 for 0.2 s" in capsys.readouterr().err
    file = str(tmp_path / "scheduler.json")
    for address in ("", str(tmp_path)):
        assert main([*arguments, address]) == 2
        assert f"or its scheduler file, got {address!r}" in capsys.readouterr().err
    for address, reason in ((file, ", which does not exist"), ("carrier-pigeon://head", ": unknown address scheme")):
        assert main([*arguments, address]) == 2
        assert f"got {address!r}{reason}" in capsys.readouterr().err


class Gate:
    """Holds back a pass until another one has ended; the workers are threads of this process."""

    waiting, opened = threading.Event(), threading.Event()

    @classmethod
    def count_rows(cls, chunk):
        cls.waiting.set()
        assert cls.opened.wait(60)
        return len(chunk)


def test_two_passes_at_the_same_time_count_their_own_parts(plants):
    table = TableFrames(cut(plants[["light"]], [100]))
    columns = Columns(["light"], (), ROWS)
    slow, quick = [], []
    with (
        LocalCluster(n_workers=1, threads_per_worker=4, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        ThreadPoolExecutor() as threads,
    ):
        first = threads.submit(
            Passes(client).reduce, table, columns, Gate.count_rows, add, lambda *done: slow.append(done)
        )
        assert Gate.waiting.wait(60)
        assert Passes(client).reduce(table, columns, len, add, lambda *done: quick.append(done)) == ROWS
        assert slow == []
        Gate.opened.set()
        assert first.result(60) == ROWS
    assert slow == quick == [(1, 2), (2, 2), (2, 2)]


def test_a_part_that_ends_its_workers_is_named(plants, tmp_path):
    def end_of_many_rows(chunk):  # as a worker does that runs out of memory; inside, so that it travels by value
        if len(chunk) > 500:
            time.sleep(0.3)  # the scheduler has to hear that what came before is done, or blames that
            os._exit(1)
        return len(chunk)

    plants.to_parquet(tmp_path / "plants.parquet")
    partitions = dd.from_pandas(plants[["light"]], npartitions=1)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.comm.retry.count": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", silence_logs=50
        ) as one,
        Client(one, set_as_default=False) as client,
    ):
        for table, part in (
            (open_table(tmp_path / "*.parquet"), "plants.parquet, row groups 0 to 0"),
            (TableFrames(partitions), "partition 0 of the data frame"),
        ):
            words = f"^{part} could not be read: 1 of the workers of tcp://.* ended at it, out of memory or killed"
            with pytest.raises(LostWorkerError, match=words):
                Passes(client).reduce(table, Columns(["light"], (), ROWS), end_of_many_rows, add)


@pytest.mark.slow
def test_workers_of_a_cluster_give_the_answer_of_one_machine(plants, tmp_path, capsys, monkeypatch):
    """A real scheduler and two worker processes, by the command line."""
    frame = plants.drop(columns="tall")
    for number, part in enumerate(np.split(np.arange(ROWS), [250, 260])):
        frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet", row_group_size=60)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("holdfast.tables.reading.PART_ROWS", 100)
    scheduler = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "dask"]
    options = ["--scheduler-file", str(scheduler), "--no-dashboard"]
    processes = [subprocess.Popen([*command, "scheduler", *options, "--port", "0"], stderr=subprocess.DEVNULL)]
    try:
        for _ in range(2):
            elsewhere = tmp_path / "elsewhere"
            elsewhere.mkdir(exist_ok=True)
            worker = [*command, "worker", *options, "--nthreads", "1", "--memory-limit", "1GiB", "--no-nanny"]
            processes.append(subprocess.Popen(worker, cwd=elsewhere, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + 60
        while not scheduler.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        models = {}
        for name, more in {"one machine": [], "cluster": ["--dask", str(scheduler)]}.items():
            out = tmp_path / f"{name}.json"
            arguments = ["fit", "*.parquet", "--target", "grown", "--environment", "age:bins=3,day:year"]
            assert main([*arguments, "--out", str(out), *more]) == 0
            assert "Read the data 3 times." in capsys.readouterr().out
            models[name] = TableModel.load(out)
        agree(models["cluster"], models["one machine"])
        with Client(scheduler_file=str(scheduler), set_as_default=False) as client:
            whole = fit_table(frame, "grown", "site").model
            once = fit_table("*.parquet", "grown", "site", schema=whole, dask=client)
            assert once.estimator.passes_ == 1
            agree(once.model, fit_table("*.parquet", "grown", "site", schema=whole).model)
            on_workers = fit_table(cut(frame, [20, 20, 500]), "grown", "site", dask=client)
            agree(on_workers.model, whole)
            monkeypatch.setattr(FilePart, "split", lambda self: [replace(self, path=lost)])
            lost = tmp_path / "lost.parquet"
            with pytest.raises(ValueError, match=r"data must be readable by every worker .*lost.parquet'"):
                fit_table("*.parquet", "grown", "site", dask=client)
            ours = Versions.installed()._replace(jax="0.0.1")
            monkeypatch.setattr(Versions, "installed", lambda: ours)
            with pytest.raises(RefusedWorkerError, match=r"Dask worker .* has jax .*, we have 0.0.1; install"):
                fit_table(cut(frame, [300]), "grown", "site", dask=client)
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
