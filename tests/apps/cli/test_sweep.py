import errno
import json
import re

import numpy as np
import pytest

from holdfast.apps.cli.main import main
from holdfast.apps.cli.terminal.sweeps import duration, show_estimate
from holdfast.sensing.trajectory import Trajectory
from holdfast.sweeps import estimate_sweep, export_sweep, read_sweep, sweep_status
from holdfast.sweeps.engines import DaskEngine, DeviceEngine, ProcessEngine, ThreadEngine
from holdfast.sweeps.results import prepare
from holdfast.sweeps.store.files import LocalFiles
from sweeps.store.cell_files import cell_files

SPEC = """
[settings]
dimension = 6
steps = 20
every = 5
oracle = "population"

[sweep]
step_size = [0.05, 0.1]
heterogeneity = [1.0, 6.0]
seeds = 4
"""
SIMULATE = [
    "simulate", "--dimension", "6", "--steps", "20", "--every", "5", "--oracle", "population", "--seeds", "4",
    "--step-size", "0.05", "0.1", "--format", "json",
]  # fmt: skip


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def test_a_dry_run_says_what_a_sweep_costs_and_writes_nothing(spec, tmp_path, capsys):
    assert main(["sweep", str(spec), "--out", str(tmp_path / "runs"), "--dry-run", "--workers", "1"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "points 4 (step_size 2 x heterogeneity 2) runs 16 (4 seeds for each point) cells 4 (of 4 runs each" in words
    assert re.search(
        r"time about [\w. ]+ s with 1 thread \([\w. ]+ s of computation, [\w. ]+ s to compile\); "
        "an estimate from 20 steps of 1 cell disk",
        words,
    )
    # 16 runs x (9 signals and 1 singular value of 4 bytes + 5), and 4 heads of 1,500 bytes
    assert "disk about 16.4 kB: 6.7 kB of values in 4 files" in words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spec.toml"]


def test_a_dry_run_says_what_is_left_in_a_folder(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    spec.write_text(SPEC.replace("[1.0, 6.0]", "[1.0, 3.0, 6.0]"))
    capsys.readouterr()
    assert main(["sweep", str(spec), "--out", str(runs), "--dry-run"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "cells 6 (of 4 runs each, saved one by one) left 2 cells; the others are finished (not verified)" in words
    assert "3.4 kB of values in 2 files" in words
    spec.write_text(SPEC.replace("dimension = 6", "dimension = 7"))
    assert main(["sweep", str(spec), "--out", str(runs), "--dry-run"]) == 2
    assert "settings.dimension must be 6 as in the folder" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


def test_the_time_is_that_of_the_engine_if_the_number_of_its_workers_is_known(spec, capsys):
    sweep = read_sweep(spec)
    estimate = estimate_sweep(sweep, probe=False)._replace(
        seconds=31.0, compilation=0.5, probed_cells=6, probed_steps=40
    )
    said = {
        ThreadEngine(2): "about 16 s with 2 threads (31 s of computation, 0.5 s to compile)",
        ProcessEngine(3): "about 16 s with 3 processes (31 s of computation, 0.5 s to compile)",  # the 4th cell waits
        DeviceEngine(): f"about 32 s with {DeviceEngine().name} (31 s of computation, 0.5 s to compile)",
        DaskEngine(
            "tcp://head:8786"
        ): "31 s of computation, shared by the workers of Dask at tcp://head:8786, and 0.5 s to compile on each",
    }
    for engine, words in said.items():
        show_estimate(sweep, estimate, engine)
        assert f"time {words}; an estimate from 40 steps of 6 cells" in " ".join(capsys.readouterr().out.split())


def test_a_command_says_what_it_computed_and_what_was_finished(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    for values, words in (
        ("[1.0]", r"2 cells computed in [\w. ]+ of work; result in"),
        ("[1.0, 3.0, 6.0]", r"4 cells computed in [\w. ]+ of work, 2 were finished; result in"),
    ):
        spec.write_text(SPEC.replace("[1.0, 6.0]", values))
        assert main(["sweep", str(spec), "--out", str(runs)]) == 0
        assert re.match(words, capsys.readouterr().out)


def test_a_sweep_in_which_nobody_works_is_said_to_resume(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    for path in cell_files(runs):
        path.unlink()
    capsys.readouterr()
    assert main(["sweep-status", str(runs)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert words == "finished 0 of 4 cells (0.0%) running none; `holdfast sweep` resumes failed 0"
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    assert sweep_status(runs, verify=True)[:3] == (4, 4, 0)


def test_who_works_on_an_object_store_is_not_known(spec, capsys):
    prepare(read_sweep(spec), "memory://unknown/results.zarr")
    assert main(["sweep-status", "memory://unknown"]) == 0
    assert "running not known on an object store" in " ".join(capsys.readouterr().out.split())


def test_damaged_files_are_counted_and_computed_again(spec, tmp_path, capsys):
    runs = tmp_path / "runs"
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    shorter, longer, empty, _ = cell_files(runs)
    shorter.write_bytes(shorter.read_bytes()[:-1])
    longer.write_bytes(longer.read_bytes() + b" ")
    empty.write_bytes(b"")
    capsys.readouterr()
    assert main(["sweep", str(spec), "--out", str(runs), "--dry-run"]) == 0
    assert "left none (not verified)" in " ".join(capsys.readouterr().out.split())
    assert main(["sweep-status", str(runs), "--verify"]) == 1
    words = " ".join(capsys.readouterr().out.split())
    assert "finished 1 of 4 cells (25.0%) damaged 3; `holdfast sweep` computes them again" in words
    assert sweep_status(runs).damaged is None
    assert main(["sweep", str(spec), "--out", str(runs)]) == 0
    assert capsys.readouterr().out.startswith(
        "3 cells had damaged files and had to be computed again\n3 cells computed"
    )
    assert sweep_status(runs, verify=True)[:3] == (4, 4, 0)


def test_a_sweep_its_status_and_its_figures(spec, tmp_path, capsys):
    runs = str(tmp_path / "runs")
    assert main(["sweep", str(spec), "--out", runs]) == 0
    assert "4 cells computed" in capsys.readouterr().out
    assert main(["sweep", str(spec), "--out", runs]) == 0
    assert "is up to date; nothing to compute" in capsys.readouterr().out
    assert main(["sweep-status", runs, "--format", "json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["finished"], status["cells"], status["running"], status["failures"]) == (4, 4, {}, {})
    assert main(["sweep-status", runs]) == 0
    assert "4 of 4 cells (100.0%)" in capsys.readouterr().out
    assert main(["sweep-plot", runs, "--x", "heterogeneity", "--quantity", "invariant", "--at", "step_size=0.09"]) == 0
    assert (
        main(["sweep-plot", runs, "--x", "heterogeneity", "--y", "step_size", "--out", str(tmp_path / "figures")]) == 0
    )
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "spurious_over_heterogeneity_step_size.png",
        "spurious_over_heterogeneity_step_size.svg",
    }
    assert (tmp_path / "runs" / "invariant_over_heterogeneity_at_step_size_0.1.svg").exists()
    # Shares are what they are, whatever statistic is named.
    assert main(["sweep-plot", runs, "--x", "heterogeneity", "--quantity", "diverged", "--over", "mean"]) == 0
    assert (tmp_path / "runs" / "diverged_over_heterogeneity.png").exists()
    scaled = ["--x", "heterogeneity", "--at", "seed=1", "step_size=0.05", "--scale", "log"]
    assert main(["sweep-plot", runs, *scaled]) == 0
    assert (tmp_path / "runs" / "spurious_over_heterogeneity_at_seed_1_at_step_size_0.05_log.png").exists()
    # A zarr group takes no other files.
    group = tmp_path / "runs" / "results.zarr"
    before = set(group.iterdir())
    assert main(["sweep-plot", str(group), "--x", "heterogeneity", "--over", "share", "--threshold", "0.1"]) == 0
    assert set(group.iterdir()) == before
    assert (tmp_path / "runs" / "spurious_over_heterogeneity_share_above_0.1.png").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("dimension", "dimensoin"), "settings must be known to matrix-sensing, got 'dimensoin' (perhaps dimension)"),
        (("[0.05, 0.1]", "[]"), "step_size must hold at least one value, got an empty list"),
        (
            ("seeds = 4", "seeds = 1_000_000_000_000"),
            "seeds must be a whole number of at least 1 and below 1,000,000,000,000, got",
        ),
        (("[1.0, 6.0]", "{start = 1.0, stop = 2.0, count = 1_000_000_000_000}"), "got 8,000,000,000,000"),
    ],
)
def test_a_wrong_specification_is_refused_before_anything_is_written(change, words, spec, tmp_path, capsys):
    spec.write_text(SPEC.replace(*change))
    assert main(["sweep", str(spec), "--out", str(tmp_path / "runs")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sweep SPEC", "out must be given"),
        ("sweep SPEC --out ", "out must be a folder for the result, got ''"),
        ("sweep-plot nothing --x bias --at bias=1 bias=2", "at must fix bias at one value, got 'bias=2' as well"),
        ("sweep-plot nothing --x bias --at bias=1 --at bias=2", "at must fix bias at one value, got 'bias=2' as well"),
        ("sweep nothing.toml --out runs", "which does not exist"),
        ("sweep SPEC --out runs --workers 2 --processes 2", "only one engine may be chosen, got workers and processes"),
        ("sweep SPEC --out runs --dask head.json", "got 'head.json', which does not exist"),
        ("sweep-status nothing", "the folder of the sweep must exist, got 'nothing'"),
        ("sweep-plot nothing --x bias", "the folder of the sweep must exist, got 'nothing'"),
        ("sweep-status .", "the folder must be that of a sweep, with its cells in ./cells, got '.'"),
        ("sweep SPEC --out SPEC", "out must be a folder, got the file"),
        ("sweep SPEC --out FILE", "the folder must have cells, which results of holdfast 0.1 lack; xarray.open_zarr("),
        ("sweep SPEC --out FILE --dry-run", "reads those; choose another folder, got 'other/results.zarr'"),
        ("sweep SPEC --out /proc/runs", "out must lie in a folder that can be written to, got '/proc/runs'"),
        ("sweep-plot nothing --x bias --at bias", "at must be name=value, got 'bias'"),
    ],
)
def test_wrong_arguments(command, words, spec, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.zarr").write_text("no folder")
    assert main(command.replace("SPEC", str(spec)).replace("FILE", "other").split(" ")) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_finished_sweep_in_a_folder_that_takes_no_files_is_finished(spec, tmp_path, capsys, monkeypatch):
    command = ["sweep", str(spec), "--out", str(tmp_path / "runs")]
    assert main(command) == 0

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for target in (
        "tempfile.TemporaryDirectory",
        *(f"holdfast.sweeps.store.files.os.{name}" for name in ("replace", "utime")),
    ):
        monkeypatch.setattr(target, refuse)
    monkeypatch.setattr(LocalFiles, "create", refuse)
    monkeypatch.setattr("holdfast.core.writing.temporary_path", refuse, raising=False)
    capsys.readouterr()
    assert main(command) == 0
    assert "is up to date; nothing to compute" in capsys.readouterr().out
    spec.write_text(SPEC.replace("[0.05, 0.1]", "[0.05, 0.1, 0.2]"))
    refused = f"out must be a folder that can be written to, got '{tmp_path / 'runs'}'"
    assert main(command) == 2
    assert refused in capsys.readouterr().err
    assert main([*command, "--dry-run"]) == 0
    assert "left 2 cells" in " ".join(capsys.readouterr().out.split())
    spec.write_text(SPEC.replace("[0.05, 0.1]", "[0.1]"))
    assert main(command) == 0
    assert "is up to date; nothing to compute" in capsys.readouterr().out
    spec.write_text(SPEC)
    cell_files(tmp_path / "runs")[0].unlink()
    assert main(command) == 2
    assert refused in capsys.readouterr().err


def test_failures_are_counted_by_reason(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picky_program.py").write_text(
        "def picky(settings, seeds):\n    return {'ratio': [1 / settings['scale'] for seed in seeds]}\n"
    )
    (tmp_path / "spec.toml").write_text('program = "picky_program:picky"\n[sweep]\nscale = [0, 1, 2]\nseeds = 2')
    reason = "picky_program.py:2: ZeroDivisionError: division by zero"
    failed = f"1 cell failed: {reason}\n    at scale=0, seeds 0 to 1\n"
    for _ in range(2):
        assert main(["sweep", "spec.toml", "--out", "runs"]) == 1
        assert capsys.readouterr().out.endswith(f"{failed}The same command tries them again.\n")
    assert sweep_status("runs").finished == 2
    assert main(["sweep-status", "runs"]) == 1
    assert capsys.readouterr().out.endswith(f"{failed}`holdfast sweep` tries them again.\n")
    assert main(["sweep-status", "runs", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["failures"] == {reason: 1}
    (tmp_path / "spec.toml").write_text('program = "picky_program:picky"\n[sweep]\nscale = [0]\nseeds = 2')
    for words in ("no cell could be computed\n", failed):
        assert main(["sweep", "spec.toml", "--out", "failing"]) == 1
        assert words in capsys.readouterr().out


def test_failures_are_named_by_settings_and_seeds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd_program.py").write_text(
        "def odd(settings, seeds):\n    assert settings['a'] < 3, 'too large'\n    return {'value': seeds}\n"
    )
    (tmp_path / "spec.toml").write_text(
        'program = "odd_program:odd"\n[settings]\nseed = 10\n'
        "[sweep]\na = [1, 3, 4, 5, 6]\nseeds = 5\nseeds_per_cell = 2"
    )
    assert main(["sweep", "spec.toml", "--out", "runs"]) == 1
    (points,) = sweep_status("runs").failed.values()
    assert points == [{"a": a, "seeds": [10, 14]} for a in (3, 4, 5)]


def test_a_simulation_resumes_where_it_stopped(tmp_path, capsys):
    path = tmp_path / "runs.zarr"
    assert main([*SIMULATE, "--out", str(path)]) == 0
    first = json.loads(capsys.readouterr().out)
    lost, kept = cell_files(tmp_path)
    lost.unlink()  # as if it had been stopped before the second cell
    export_sweep(path)
    with pytest.raises(ValueError, match=r"path must be a finished simulation .* with 4 of 8 runs"):
        Trajectory.load(path)
    old = kept.stat().st_mtime_ns
    assert main([*SIMULATE, "--out", str(path)]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == first
    assert printed.err == f"wrote {path}\n"
    assert main([*SIMULATE, "--out", str(path)]) == 0
    assert capsys.readouterr().err == f"{path} is up to date; nothing to compute\n"
    assert kept.stat().st_mtime_ns == old
    assert main([*SIMULATE, "--bias", "0.5", "--out", str(path)]) == 2
    refused = capsys.readouterr().err
    assert "settings.bias must be 1.0 as in the folder" in refused
    assert "--overwrite replaces" in refused
    assert main([*SIMULATE, "--bias", "0.5", "--out", str(path), "--overwrite"]) == 0
    assert Trajectory.load(path).settings.bias == 0.5
    assert len(cell_files(tmp_path)) == 2


def test_a_simulation_in_a_file_is_the_one_in_memory(tmp_path, capsys):
    assert main([*SIMULATE, "--seed", "7", "--out", str(tmp_path / "runs.zarr")]) == 0
    assert main([*SIMULATE, "--seed", "7"]) == 0
    in_file, in_memory = map(json.loads, capsys.readouterr().out.splitlines())
    assert in_file["settings"] == in_memory["settings"]
    assert in_file["outcome"] == in_memory["outcome"]
    for name, values in in_memory["final"].items():
        np.testing.assert_allclose(in_file["final"][name], values, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("command", [SIMULATE, ["jumps", "--steps", "10", "--every", "5", "--seeds", "2"]])
def test_a_simulation_that_fails_is_no_wrong_input(command, tmp_path, capsys, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError("8 TiB")

    for module in ("sensing.simulation.execute", "completion.training.simulate_completion"):
        monkeypatch.setattr(f"holdfast.{module}", exhausted)
    assert main([*command, "--out", str(tmp_path / "runs.zarr")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("holdfast: the simulation failed: ")
    assert said.endswith("MemoryError: 8 TiB\n")


def test_a_phase_diagram_that_fails_is_no_wrong_input(tmp_path, capsys, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError("8 TiB")

    monkeypatch.setattr("holdfast.sensing.simulation.execute", exhausted)
    assert main(["phase", "time", "--cells", "2", "--seeds", "2", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"2 cells failed: .*MemoryError: 8 TiB\n", said)
    assert said.endswith("The same command tries them again.\n")


def test_jumps_resume_where_they_stopped(tmp_path, capsys):
    command = ["jumps", "--steps", "100", "--every", "50", "--seeds", "3", "--width", "3", "--format", "json"]
    command += ["--offshoots", "1", "--offshoot-steps", "20"]
    assert main(command) == 0
    assert main([*command, "--out", str(tmp_path / "jumps.zarr")]) == 0
    cell_files(tmp_path)[0].write_bytes(b"")  # damage, which is found
    assert main([*command, "--out", str(tmp_path / "jumps.zarr")]) == 0
    in_memory, in_file, again = map(json.loads, capsys.readouterr().out.splitlines())
    assert in_file == again
    for one, other in zip(in_file["runs"], in_memory["runs"], strict=True):
        assert one["jumps"] == other["jumps"]
        assert one["test_error"] == pytest.approx(other["test_error"], rel=1e-4)
        assert one["offshoots"][0]["test_error"] == pytest.approx(other["offshoots"][0]["test_error"], rel=1e-4)


def test_times_are_human_readable():
    assert [duration(each) for each in (0.1234, 59, 61, 3_700, 90_000)] == [
        "0.12 s",
        "59 s",
        "1 min 1 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
