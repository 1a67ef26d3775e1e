import json

import pytest

import holdfast_studies.comparison.runner as comparing
from holdfast.apps.cli.main import main
from holdfast_studies.comparison import METHODS, PUBLIC_TESTS


def test_a_method_that_fails_does_not_stop_the_others(monkeypatch, tmp_path, capsys):
    compute = comparing.compute_cells

    def stumble(method, data_sets, seeds):
        if method.name == "eills" and seeds == (1,):
            raise ValueError("no <luck>")
        return compute(method, data_sets, seeds)

    monkeypatch.setattr("holdfast_studies.comparison.runner.compute_cells", stumble)
    names = ["--tests", "structural", "--methods", "eills", "oracle", "--data-seeds", "2"]
    assert main(["compare", *names, "--out", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "eills failed on structural, seed 1: test_compare.py:15: ValueError: no <luck>" in output.err
    assert "no &lt;luck&gt;" in (tmp_path / "comparison.html").read_text()
    assert json.loads((tmp_path / "comparison.json").read_text())["failed"][0]["seed"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--tests Example9", "that `holdfast compare --list` names, got 'Example9' (perhaps Example"),
        ("--methods magic", "that `holdfast compare --list` names, got 'magic'"),
        ("--data-seeds 0", "data_seeds must be at least 1, got 0"),
    ],
)
def test_bad_names_are_refused(arguments, words, capsys, tmp_path):
    assert main(["compare", *arguments.split(), "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_methods_that_fit_none_of_the_tests_are_named(capsys, tmp_path):
    names = ["--tests", "Example2", "--methods", "oracle", "least_squares", "--data-seeds", "1"]
    assert main(["compare", *names, "--out", str(tmp_path)]) == 0
    assert "they are for none of these tests, by kind or by size: least_squares." in capsys.readouterr().out


def test_list_names_everything(capsys):
    assert main(["compare", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f" {name} " in listed for name in (*PUBLIC_TESTS, *METHODS))


def test_the_json_of_the_command_line_can_be_read(capsys, tmp_path):
    arguments = ["compare", "--tests", "toy_0.5_0.2", "--methods", "oracle", "--data-seeds", "1", "--format", "json"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["tests"]["toy_0.5_0.2"]["leaders"] == []
