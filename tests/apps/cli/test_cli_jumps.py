import json

import numpy as np
import pytest

from holdfast.apps.cli.main import main

SMALL = ["jumps", "--steps", "200", "--every", "50", "--seeds", "3", "--width", "3"]


def test_json_has_ratio_errors_and_jumps_of_every_seed(capsys):
    assert main([*SMALL, "--seed", "4", "--offshoots", "2", "--offshoot-steps", "20", "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["settings"]["depth"] == 3
    assert result["observed"] == 3
    assert [run["seed"] for run in result["runs"]] == [4, 5, 6]
    for run in result["runs"]:
        assert np.isfinite([run["ratio"], run["train_error"], run["test_error"]]).all()
        assert [branch["step"] for branch in run["offshoots"]] == [100, 200]
        assert all(set(jump) == {"step", "before", "after", "stay"} for jump in run["jumps"])


@pytest.mark.parametrize(
    "options",
    [
        "--algorithm gradient-descent --depth 2",
        "--algorithm sde --substeps 2",
        "--algorithm mini-batch --batch-size 3 --problem random --dimension 5 --rank 2 --share 0.7",
        "--algorithm label-noise --noise-variance 0.1 --epsilon 0.5",
        "--depth 1",
        "--ridge 0",
    ],
)
def test_every_part_can_be_chosen(options, capsys):
    assert main([*SMALL, *options.split()]) == 0
    assert "finished 200 steps" in capsys.readouterr().out


def test_the_table_tells_of_jumps(capsys):
    assert (
        main(
            [
                "jumps",
                "--steps",
                "8000",
                "--seeds",
                "6",
                "--ridge",
                "0.0255",
                "--offshoots",
                "1",
                "--offshoot-steps",
                "9",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "2 to 1" in printed
    assert "that stayed at rank 2 for at least" in " ".join(printed.split())


def test_bad_input_is_a_sentence(capsys):
    assert main(["jumps", "--depth", "0"]) == 2
    assert "depth must be a whole number of at least 1, got 0" in capsys.readouterr().err
