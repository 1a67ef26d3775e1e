"""`holdfast predict` with a small model: what its table must have, and what its rows get."""

import io
import subprocess
import sys

import pandas as pd
import pytest

from holdfast.apps.cli.main import main


def test_all_missing_columns_are_named_at_once(small_model, tmp_path, capsys):
    small_model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("height\n1\n")
    assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv")]) == 2
    assert "data must have the columns 'light', 'soil'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("light,soil\nhigh,clay\nlow,loam\n", "'light' must hold numbers, as in the fit, got text such as 'high'"),
        ("light,soil\n1,17\n2,18\n", "'soil' must hold categories such as 'clay', as in the fit, got numbers"),
    ],
)
def test_a_column_of_another_kind_is_refused(small_model, tmp_path, capsys, table, words):
    small_model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text(table)
    assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv")]) == 2
    output = capsys.readouterr()
    assert words in output.err
    assert output.out == ""


def test_predictions_carry_the_id_and_say_why_rows_are_empty(small_model, tmp_path, capsys):
    small_model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("key,light,soil\n007,1,clay\n008,,loam\n009,2,peat\n010,3,\n011,x,loam\n")
    out = tmp_path / "predictions.tsv.gz"
    assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv"), "--out", str(out)]) == 0
    written = pd.read_csv(out, sep="\t", dtype={"key": str})
    assert written["key"].tolist() == ["007", "008", "009", "010", "011"]
    assert written["prediction"].isna().tolist() == [False, True, True, True, True]
    assert written["prediction"][0] == 1.5
    said = capsys.readouterr().err
    assert "light has values such as 'x' in 1 of 5 rows, which count as missing." in said
    assert (
        "4 of 5 rows have no prediction: light is missing in 2; soil is missing in 1; soil has categories that the "
        "model does not know in 1, such as 'peat'"
    ) in said


def test_a_killed_prediction_leaves_the_old_file(small_model, tmp_path, monkeypatch):
    out = tmp_path / "predictions.csv"
    out.write_text("old")
    small_model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("key,light,soil\n1,1,clay\n")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    command = ["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv"), "--out", str(out), "--overwrite"]
    assert main(command) == 1
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "new.csv", "predictions.csv"}


def test_prediction_needs_neither_jax_nor_scikit_learn(small_model, tmp_path):
    """They would take longer to import than a small table takes to predict."""
    small_model.save(tmp_path / "model.json")
    (tmp_path / "new.csv").write_text("key,light,soil\n1,1,clay\n")
    script = (
        "import sys\nfrom holdfast.apps.cli.main import main\n"
        f"code = main(['predict', {str(tmp_path / 'model.json')!r}, {str(tmp_path / 'new.csv')!r}])\n"
        "print(code, {'jax', 'sklearn', 'scipy', 'matplotlib', 'xarray'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 set()", done.stderr


def test_a_row_without_a_prediction_is_a_row_of_the_output(small_model, tmp_path, capsys):
    """With an id and without one, the file has as many rows as the table, and an empty cell."""
    small_model.save(tmp_path / "model.json")
    for header, rows in (
        ("key,light,soil", ["k,1,clay", "l,,clay", "m,2,loam"]),
        ("light,soil", ["1,clay", ",clay", "2,loam"]),
    ):
        (tmp_path / "new.csv").write_text("\n".join([header, *rows]) + "\n")
        assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv")]) == 0
        found = pd.read_csv(io.StringIO(capsys.readouterr().out))
        assert found["prediction"].isna().tolist() == [False, True, False]


def test_help_has_no_option_that_is_refused(capsys):
    assert main(["predict", "--help"]) == 0
    words = capsys.readouterr().out.split()
    assert {"--separator", "--decimal", "--encoding", "--id"} <= set(words)
    assert not {"--categories", "--numeric", "--exclude", "--missing"} & set(words)
