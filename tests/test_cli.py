import json
import subprocess
import sys

import numpy as np
import pytest

from holdfast.cli import main
from holdfast.trajectory import Trajectory

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
    shown = capsys.readouterr().out
    assert "Medians over seeds after 30 steps" in shown
    assert "6 finished" in shown
    assert Trajectory.load(path).data.sizes["heterogeneity"] == 2
    assert main([*SMALL, "--step-size", "5"]) == 0
    assert "diverged at step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("simulate --step-size -1", "step_size must be a positive number, got -1"),
        ("simulate --step-size nan", "step_size must be a positive number, got nan"),
        ("simulate --invariant-rank 200", "invariant_rank + spurious_rank must be at most dimension"),
        ("simulate --overlap 2", "overlap must be a number from 0 to 1, got 2"),
        ("simulate --batch-size 0", "batch_size must be a whole number of at least 1, got 0"),
        ("simulate --oracle magic", "invalid choice 'magic' for argument '--oracle'"),
        ("simulate --colour red", "--colour"),
        ("simulate --dimension ten", "--dimension"),
        ("simulate --out runs.xls", "out must end in .zarr or .csv"),
        ("simulate --environments uniform --batching full", "batching must be hetero or pooled for a continuum"),
        ("reproduce figure_99", "names must be among"),
        ("reproduce --seeds 3", "seeds must be at least 6"),
        ("", "simulate"),
    ],
)
def test_bad_input_gives_one_sentence_and_exit_code_2(arguments, words, capsys):
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
        "import sys, contextlib, holdfast.cli\n"
        "with contextlib.suppress(SystemExit): holdfast.cli.main(['simulate', '--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('jax', 'xarray', 'matplotlib', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--heterogeneity" in done.stdout
    assert "Spread M of the spurious strengths" in done.stdout


def test_the_core_imports_with_jax_and_numpy_alone():
    """On an accelerator machine nothing else may be installed."""
    script = (
        "import sys\n"
        "for name in ('xarray', 'zarr', 'pandas', 'matplotlib', 'rich', 'tyro'): sys.modules[name] = None\n"
        "from holdfast.settings import Settings\n"
        "from holdfast.simulation import execute\n"
        "import holdfast.theory\n"
        "print(execute(Settings(dimension=6, steps=3, seeds=2)).values['invariant'].shape)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "(2, 2)\n", done.stderr
