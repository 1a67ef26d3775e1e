import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest
import zarr

from holdfast.apps.cli.main import main
from holdfast.sensing.trajectory import Trajectory
from sweeps.store.cell_files import cell_files

SMALL = ["simulate", "--dimension", "8", "--batch-size", "60", "--steps", "30", "--every", "10", "--seeds", "3"]


def test_json_has_one_entry_a_seed(capsys):
    assert main([*SMALL, "--format", "json", "--seed", "5"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["settings"]["dimension"] == 8
    assert result["settings"]["seed"] == 5
    assert len(result["outcome"]) == 3
    assert set(result["final"]) == {"invariant", "spurious", "residual", "distance", "pooled_distance"}
    assert all(len(values) == 3 and np.isfinite(values).all() for values in result["final"].values())


def test_the_same_seed_prints_the_same_numbers(capsys):
    outputs = []
    for _ in range(2):
        main([*SMALL, "--format", "json"])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "options",
    [
        "--batching pooled",
        "--batching full --ensemble gaussian",
        "--oracle data",
        "--oracle population --parameterisation signed",
        "--environments gaussian --batching pooled --noise-variance 0.5",
        "--oracle data --samples-per-environment 60 --dtype float64",
        "--oracle data --samples-per-environment 40 --batching pooled --replacement",
    ],
)
def test_every_part_can_be_chosen(options, capsys):
    assert main([*SMALL, *options.split(), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["final"]["invariant"]) == 3


def test_tables_and_a_file(tmp_path, capsys):
    path = tmp_path / "runs.zarr"
    assert main([*SMALL, "--heterogeneity", "1", "2", "--out", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "Medians over seeds after 30 steps" in printed
    assert "order" not in printed
    assert "6 finished" in printed
    assert Trajectory.load(path).data.sizes["heterogeneity"] == 2
    assert main([*SMALL, "--step-size", "5"]) == 0
    assert "diverged at step" in capsys.readouterr().out
    assert main([*SMALL, "--order", "cyclic", "--panel", "3"]) == 0
    assert "Signals after 30 steps, cyclic order, panel of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("simulate --step-size -1", "step_size must be a positive number, got -1"),
        ("simulate --step-size nan", "step_size must be a positive number, got nan"),
        ("simulate --invariant-rank 200", "invariant_rank + spurious_rank must be at most dimension"),
        ("simulate --overlap 2", "overlap must be a number from 0 to 1, got 2"),
        ("simulate --batch-size 0", "batch_size must be a whole number of at least 1, got 0"),
        ("simulate --oracle magic", "--oracle must be one of law, data, population, got 'magic'"),
        ("simulate --colour red", "options must be known to the command, got --colour; --help lists them"),
        ("simulate --order cyclic reshuffled", "--order must be given one value, got 'reshuffled' as well"),
        ("simulate --stepz 3", "got --stepz (perhaps --steps)"),
        ("simulate --dimension ten", "--dimension must be a whole number, got 'ten'"),
        ("simulate --step-size small", "--step-size must be a number, or several of them, got 'small'"),
        ("simulate --step-size 0.1 small", "--step-size must be a number, or several of them, got 'small'"),
        ("simulate --dimension it's", "--dimension must be a whole number, got"),
        ("simulate --dimension", "--dimension must be given a value"),
        ("reproduce --seedz 5", "got --seedz (perhaps --seeds)"),
        ("compare --seeds 3", "options must be known to the command, got --seeds"),
        ("predict", "holdfast predict must be given MODEL"),
        ("reproduce --seeds 1.5", "--seeds must be a whole number, got '1.5'"),
        ("fit", "holdfast fit must be given DATA and --target"),
        ("fit data.csv --targt y", "options must be known to the command, got --targt (perhaps --target)"),
        ("fit data.csv --target y --env e", "got --env (perhaps --environment)"),
        ("fit data.csv --target y --dask head.json", "or its scheduler file, got 'head.json', which does not exist"),
        ("simulate --out runs.xls", "out must end in .zarr or .csv"),
        ("simulate --environments uniform --batching full", "batching must be hetero or pooled for a continuum"),
        ("simulate --seeds 100000000 --every 1", "the records of all runs (fewer seeds, or a larger every, need less)"),
        ("simulate --dimension 1000000 --seeds 1", "must fit into 64 GiB, got"),
        ("reproduce figure_99", "names must be among"),
        ("reproduce figure3", "got 'figure3' (perhaps figure_3 or"),
        ("phase stepsize", "got 'stepsize' (perhaps step_size)"),
        ("bench smal_cells", "got 'smal_cells' (perhaps small_cells)"),
        ("reproduce --seeds 3", "seeds must be at least 6"),
        ("swep spec.toml", "got 'swep' (perhaps sweep)"),
        ("frobnicate", "the command must be one of simulate, window,"),
        ("", "the command must be one of simulate, window,"),
    ],
)
@pytest.mark.parametrize("columns", ["40", "100"])
def test_bad_input_gives_one_sentence_and_exit_code_2(arguments, words, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    try:
        code = main(arguments.split())
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    assert code == 2
    assert words in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("holdfast 0.")


def test_a_late_refusal_is_one_sentence_too(capsys):
    late = [*SMALL, "--oracle", "data", "--samples-per-environment", "40"]
    assert main(late) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_help_does_not_load_the_numerical_core():
    script = (
        "import sys, contextlib, holdfast.apps.cli.main\n"
        "with contextlib.suppress(SystemExit): holdfast.apps.cli.main.main(['simulate', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('jax', 'xarray', 'matplotlib', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--heterogeneity" in done.stdout
    assert "Spread M of the spurious strengths" in done.stdout


@pytest.mark.parametrize("arguments", ["--help", "simulate --help", "reproduce --list"])
def test_a_reader_that_leaves_early_sees_no_traceback(arguments):
    command = [sys.executable, "-m", "holdfast", *arguments.split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 128 + 13  # as if ended by SIGPIPE


def test_the_core_imports_with_jax_and_numpy_alone():
    """On an accelerator machine nothing else may be installed."""
    script = (
        "import sys\n"
        "absent = 'xarray zarr pandas matplotlib sklearn rich cyclopts lazy_loader typing_extensions jinja2'.split()\n"
        "sys.modules.update(dict.fromkeys(absent))\n"
        "from holdfast.sensing.settings import Settings\n"
        "from holdfast.sensing.simulation import execute\n"
        "import holdfast.theory\n"
        "import holdfast.datasets\n"
        "print(execute(Settings(dimension=6, steps=3, seeds=2)).values['invariant'].shape)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "(2, 2)\n", done.stderr


def test_window_refuses_noise_without_a_batch(capsys):
    assert main(["window", "--heterogeneity", "6", "--bias", "1", "--noise-variance", "2"]) == 2
    assert "noise_variance must be 0 without a batch_size" in capsys.readouterr().err


def test_window_as_json(capsys):
    assert main(["window", "--heterogeneity", "6", "--bias", "1", "--step-size", "0.05", "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["lyapunov"] == pytest.approx(0.5 * np.log(1.05**2 - 0.3**2))
    assert result["sharp_window"] == pytest.approx([2 / 35, 0.1485], abs=1e-4)
    assert result["paper_window"] == pytest.approx([24 / 18, 1 / 448])
    assert result["paper_window_empty"] is True
    assert "1536" in result["paper_window_reason"]
    assert result["threshold_heterogeneity"] == pytest.approx(6.40, abs=0.005)
    assert result["median_spurious_at_T"] == pytest.approx(1.2e-5, rel=0.02)
    law = result["log_spurious_at_T"]
    assert law["mean"] == pytest.approx(2 * (np.log(1e-3) + 200 * result["lyapunov"]))
    assert law["quantiles"]["0.1"] < law["quantiles"]["0.5"] < law["quantiles"]["0.9"]
    assert "Advised: step size" in result["advice"]


def test_two_strengths_are_the_two_points_of_a_law(capsys):
    assert main(["window", "--strengths", "-5", "7", "--format", "json"]) == 0
    strengths = json.loads(capsys.readouterr().out)
    assert main(["window", "--heterogeneity", "6", "--bias", "1", "--format", "json"]) == 0
    law = json.loads(capsys.readouterr().out)
    assert strengths["sharp_window"] == pytest.approx(law["sharp_window"], rel=1e-6)
    assert strengths["median_spurious_at_T"] == pytest.approx(law["median_spurious_at_T"], rel=1e-4)


@pytest.mark.parametrize("law", ["two-point", "uniform", "gaussian"])
def test_window_as_a_table(law, capsys):
    assert main(["window", "--heterogeneity", "6", "--bias", "1", "--environments", law]) == 0
    output = capsys.readouterr().out
    assert "sharp window of step sizes" in output
    assert "paper's sufficient window is empty" in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--heterogeneity 0", "nothing can be washed out"),
        ("--heterogeneity 0.5", "never change sign"),
    ],
)
def test_window_says_why_there_is_none(options, words, capsys):
    assert main(["window", "--bias", "1", *options.split(), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["sharp_window"] is None
    assert words in result["advice"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("window --heterogeneity -1 --bias 1", "heterogeneity must be a number of at least 0, got -1.0"),
        ("window --heterogeneity 6", "bias must be given where no strengths are, got none"),
        ("window --strengths 1 2 --bias 1", "bias must be left out where strengths are, got 1.0"),
        ("window --strengths nan 2", "strengths must be finite numbers, got [nan, 2.0]"),
        ("window --heterogeneity 6 --bias 1 --confidence 2", "confidence must be above 0 and at most 0.999, got 2.0"),
        ("advise table.csv", "target must name the column to predict of the table 'table.csv', got none"),
        ("advise none.npz", "data must exist, got 'none.npz'"),
        ("phase nowhere", "plane must be one of step_size, time, sampling, overlap, got 'nowhere'"),
        ("phase --cells 1", "cells must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_arguments_of_the_theory_get_one_sentence(arguments, sentence, capsys):
    with contextlib.suppress(SystemExit):
        assert main(arguments.split()) == 2
    assert capsys.readouterr().err == f"holdfast: {sentence}\n"


@pytest.fixture
def measurements():
    """Two environments of a problem with one invariant and one spurious direction."""
    random = np.random.default_rng(0)
    x = random.standard_normal((800, 6, 6), dtype=np.float32)
    environment = np.repeat(["home", "away"], 400)
    return {"X": x, "y": x[:, 0, 0] + np.where(environment == "home", -4, 6) * x[:, 1, 1], "environment": environment}


def test_advise_reads_both_formats(tmp_path, measurements, capsys):
    np.savez(tmp_path / "data.npz", **measurements)
    group = zarr.open_group(tmp_path / "data.zarr", mode="w")
    for name, values in {**measurements, "environment": np.repeat([0, 1], 400)}.items():
        group.create_array(name, data=values)
    results = []
    for name in ("data.npz", "data.zarr"):
        assert main(["advise", str(tmp_path / name), "--step-size", "0.1", "--format", "json"]) == 0
        results.append(json.loads(capsys.readouterr().out))
    for result in results:
        assert (result["invariant_rank"], result["spurious_rank"]) == (1, 1)
        assert sorted(e["strengths"][0][0] for e in result["environments"]) == pytest.approx([-4, 6], abs=1e-3)
        assert result["lyapunov"] == pytest.approx(0.5 * np.log(0.6 * 1.6), abs=1e-4)
    assert [e["label"] for e in results[0]["environments"]] == ["away", "home"]
    assert main(["advise", str(tmp_path / "data.npz")]) == 0
    output = capsys.readouterr().out
    assert "Assumptions of the paper" in output
    assert "home" in output


def test_advise_on_incomplete_or_damaged_files(tmp_path, measurements, capsys):
    np.savez(tmp_path / "data.npz", X=measurements["X"], y=measurements["y"])
    assert main(["advise", str(tmp_path / "data.npz")]) == 2
    assert "without environment" in capsys.readouterr().err
    (tmp_path / "data.npz").write_bytes(b"not an archive")
    assert main(["advise", str(tmp_path / "data.npz")]) == 2
    assert "can be read" in capsys.readouterr().err


def test_phase_writes_and_reuses(tmp_path, capsys):
    command = ["phase", "time", "--cells", "4", "--seeds", "3", "--out", str(tmp_path)]
    assert main(command) == 0
    assert "4 cells computed in" in capsys.readouterr().out
    name = "phase_time_4_cells_3_seeds"  # what is not by default, so that nothing is overwritten
    assert {path.name for path in tmp_path.glob("phase_*")} == {f"{name}.{end}" for end in ("png", "svg", "csv")}
    assert main(command) == 0
    assert "is up to date" in capsys.readouterr().out
    cell_files(tmp_path / ".computed")[0].unlink()  # as if it had been stopped before this cell
    assert main([*command, "--workers", "1"]) == 0
    resumed = capsys.readouterr().out
    assert "1 cell computed in" in resumed
    assert "replaces" not in resumed


def test_phase_says_that_it_replaces_results_of_an_older_format(tmp_path, capsys):
    command = ["phase", "time", "--cells", "2", "--seeds", "2", "--out", str(tmp_path)]
    group = tmp_path / ".computed" / "phase_time_2_cells_2_seeds.zarr"
    group.mkdir(parents=True)
    (group / "zarr.json").write_text("{}")  # a zarr group without cells, as 0.1 wrote it
    assert main(command) == 0
    said = capsys.readouterr().out
    assert said.replace("\n", "").count("which this version cannot resume") == 1
    assert "2 cells computed in" in said
