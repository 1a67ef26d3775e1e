"""Tables behind addresses: the answer is that of the same files on this machine."""

import builtins
import contextlib
import gzip
import io

import fsspec
import numpy as np
import pandas as pd
import pytest

from holdfast.apps.cli.main import main
from holdfast.estimators import fit_table
from holdfast.tables import TableModel
from holdfast.tables.remote import RemoteFile, writing


def plants(rows=300):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"light": random.standard_normal(rows), "soil": random.choice(["clay", "sand"], rows)})
    frame["grown"] = 2 * frame["light"] + (frame["soil"] == "sand") + random.standard_normal(rows)
    return frame.assign(site=random.choice(["hill", "shore"], rows))


def content(frame, suffix):
    """The bytes of a file."""
    buffer = io.BytesIO()
    if suffix == ".parquet":
        frame.to_parquet(buffer, row_group_size=40)
    elif suffix == ".feather":
        frame.to_feather(buffer)
    else:
        text = frame.to_csv(index=False, float_format="%.17g").encode()
        buffer.write(gzip.compress(text) if suffix.endswith(".gz") else text)
    return buffer.getvalue()


@pytest.fixture
def memory():
    """The file system of fsspec in the memory of this process, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather"])
def test_a_table_behind_an_address_is_that_of_its_files(memory, tmp_path, suffix):
    frame = plants()
    for number, part in enumerate(np.split(np.arange(len(frame)), [70])):
        written = content(frame.iloc[part].reset_index(drop=True), suffix)
        (tmp_path / f"{number}{suffix}").write_bytes(written)
        memory.pipe_file(f"/fields/{number}{suffix}", written)
    done = []
    found = fit_table(
        f"memory://fields/*{suffix}", "grown", "site", chunk_rows=30, progress=lambda *at: done.append(at)
    )
    assert found.model == fit_table(tmp_path / f"*{suffix}", "grown", "site", chunk_rows=30).model
    assert done[-1][0] == done[-1][1]


def test_predictions_are_written_to_an_address_whole_or_not_at_all(memory, tmp_path, capsys):
    frame, model = plants(), tmp_path / "model.json"
    memory.pipe_file("/fields/plants.csv", content(frame, ".csv"))
    assert (
        main(["fit", "memory://fields/plants.csv", "--target", "grown", "--environment", "site", "--out", str(model)])
        == 0
    )
    capsys.readouterr()
    command = ["predict", str(model), "memory://fields/plants.csv", "--out", "memory://fields/predictions.csv.gz"]
    assert main(command) == 0
    written = pd.read_csv(io.BytesIO(gzip.decompress(memory.cat_file("/fields/predictions.csv.gz"))))
    np.testing.assert_allclose(written["prediction"], TableModel.load(model).predict(frame)["prediction"], rtol=1e-12)
    assert main(command) == 2
    assert "out must not exist yet" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    before = memory.cat_file("/fields/predictions.csv.gz")
    with contextlib.suppress(OSError), writing(RemoteFile("memory://fields/predictions.csv.gz")) as path:
        path.write_text("half")
        raise OSError("disk full")
    assert memory.cat_file("/fields/predictions.csv.gz") == before


def test_a_model_behind_an_address_is_that_of_its_file(memory, tmp_path, capsys):
    table = tmp_path / "plants.csv"
    plants().to_csv(table, index=False)
    fit = ["fit", str(table), "--target", "grown", "--environment", "site", "--overwrite", "--out"]
    assert main([*fit, str(tmp_path / "model.json")]) == main([*fit, "memory://models/plants.json"]) == 0
    assert memory.cat_file("/models/plants.json") == (tmp_path / "model.json").read_bytes()
    assert main([*fit, "memory://models/again.json", "--schema", "memory://models/plants.json"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "model.json"), str(table)]) == 0
    expected = capsys.readouterr().out
    assert main(["predict", "memory://models/plants.json", str(table)]) == 0
    assert capsys.readouterr().out == expected
    assert main(["predict", "memory://models/none.json", str(table)]) == 2
    assert "model must be an existing file, got 'memory://models/none.json'" in capsys.readouterr().err


def test_an_address_that_cannot_be_used_is_one_sentence(memory, capsys, monkeypatch):
    def refused(address):
        assert main(["advise", address, "--target", "grown"]) == 2
        return capsys.readouterr().err

    assert "data must be an existing file, got 'memory://nowhere.csv'" in refused("memory://nowhere.csv")
    assert "which matches none" in refused("memory://nowhere/*.csv")
    assert "a protocol that fsspec knows, got 'pigeon://plants.csv'" in refused("pigeon://plants.csv")
    real = builtins.__import__

    def without_fsspec(name, *rest, **options):
        if name.startswith("fsspec"):
            raise ImportError("No module named 'fsspec'")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without_fsspec)
    assert "pip install 'holdfast[cluster]'" in refused("s3://bucket/plants.csv")


@pytest.fixture
def bucket(monkeypatch):
    """A server that speaks the protocol of S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    settings = {"ENDPOINT_URL": f"http://{host}:{port}", "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    for name, value in (settings | {"DEFAULT_REGION": "us-east-1"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    fsspec.filesystem("s3").clear_instance_cache()
    fsspec.filesystem("s3").mkdir("fields")
    yield "s3://fields"
    server.stop()
    fsspec.filesystem("s3").clear_instance_cache()


@pytest.mark.slow
def test_tables_in_an_object_store_and_workers_that_read_them(bucket, tmp_path, capsys, monkeypatch):
    """By the command line: fit with curves by two worker processes, predict into the store, advise."""
    from distributed import LocalCluster

    frame, model = plants(3000), tmp_path / "model.json"
    system = fsspec.filesystem("s3")
    for number, part in enumerate(np.split(np.arange(len(frame)), [1700])):
        system.pipe_file(f"fields/{number}.parquet", content(frame.iloc[part], ".parquet"))
    data = [f"{bucket}/*.parquet", "--target", "grown", "--environment", "site"]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        assert (
            main(["fit", *data, "--effects", "smooth", "--dask", cluster.scheduler_address, "--out", str(model)]) == 0
        )
    assert "Read the data 3 times." in capsys.readouterr().out
    expected = fit_table(frame, "grown", "site", effects="smooth").model
    found = TableModel.load(model)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-7, atol=1e-9)
    assert main(["predict", str(model), f"{bucket}/*.parquet", "--out", f"{bucket}/predictions.csv"]) == 0
    written = pd.read_csv(io.BytesIO(system.cat_file("fields/predictions.csv")))
    np.testing.assert_allclose(written["prediction"], found.predict(frame)["prediction"], rtol=1e-12)
    assert main(["advise", *data]) == 0
    assert main(["advise", "s3://nowhere/plants.csv", "--target", "grown"]) == 2
    assert RemoteFile(f"{bucket}/0.parquet").stat().st_size == system.size("fields/0.parquet")
