"""`holdfast fit` and `holdfast predict` on files."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from holdfast.apps.cli.main import main
from holdfast.estimators.files import fit_table
from holdfast.tables import ReadingOptions, TableModel, predict_table


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """The yield depends on light and soil everywhere; weeds follow the yield, more closely in some environments."""
    random = np.random.default_rng(0)
    rows = 3000
    place = random.choice(["hill", "shore", "wood"], rows)
    light, soil = random.standard_normal(rows), random.choice(["clay", "loam", "sand"], rows)
    grown = light + 2.0 * (soil == "loam") + random.standard_normal(rows)
    weeds = pd.Series(place).map({"hill": 0.2, "shore": 0.8, "wood": 1.6}).to_numpy() * grown + random.standard_normal(
        rows
    )
    frame = pd.DataFrame({"light": light, "soil": soil, "weeds": weeds, "place": place, "yield": grown})
    frame["good"] = np.where(grown + random.standard_normal(rows) > 1, "yes", "no")
    frame.loc[:4, "light"] = np.nan
    path = tmp_path_factory.mktemp("plants") / "plants.csv"
    frame.to_csv(path, index=False)
    return path


def test_fit_then_predict(plants, tmp_path, capsys):
    model, out = tmp_path / "model.json", tmp_path / "predictions.csv"
    fit = ["fit", str(plants), "--target", "yield", "--environment", "place", "--exclude", "good"]
    assert main([*fit, "--out", str(model), "--plots", str(tmp_path / "figures")]) == 0
    printed, noted = capsys.readouterr()
    figures = [str(tmp_path / "figures" / name) for name in ("effects.png", "effects.svg", "danger.png", "danger.svg")]
    assert noted == f"wrote {', '.join(figures)}\nwrote {model}\n"
    assert "Regression of yield: 2,995 rows, 3 environments" in printed
    assert "> Dangerous: weeds." in printed
    assert "5 of 3000 rows were left out" in " ".join(printed.split())
    assert {str(path) for path in (tmp_path / "figures").iterdir()} == set(figures)
    loaded = TableModel.load(model)
    coefficients = dict(zip(loaded.features, loaded.coefficients[0], strict=True))
    assert coefficients["weeds"] == 0
    assert coefficients["light"] == pytest.approx(1, abs=0.1)
    assert main(["predict", str(model), str(plants), "--out", str(out)]) == 0
    predicted = pd.read_csv(out, skip_blank_lines=False)["prediction"]
    frame = pd.read_csv(plants)
    assert len(predicted) == 3000
    assert predicted[:5].isna().all()
    assert np.mean((predicted - frame["yield"])[5:] ** 2) == pytest.approx(1, abs=0.1)


def test_errors_where_it_was_not_fitted(plants, tmp_path, capsys):
    fit = ["fit", str(plants), "--target", "yield", "--environment", "place", "--exclude", "good", "--held-out"]
    assert main([*fit, "--plots", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Mean squared error in an environment that was not fitted" in printed
    assert (tmp_path / "held_out.png").exists()
    assert main([*fit, "--format", "json"]) == 0
    errors = pd.DataFrame(json.loads(capsys.readouterr().out)["held_out"]).set_index("environment")
    assert set(errors.index) == {"hill", "shore", "wood"}
    # weeds mislead most where they hardly follow the yield; without them the error is that of the noise
    assert errors.loc["hill", "pooled"] > 1.3 > 1.2 > errors["hetero"].max()
    assert main(["fit", str(plants), "--target", "yield", "--held-out"]) == 2
    assert "environment must name a column" in capsys.readouterr().err


def test_prediction_asks_only_for_what_it_uses(plants, tmp_path, capsys):
    """Weeds are washed out, so rows need none; a row with a soil that was not in the fit gets no prediction."""
    model, new = tmp_path / "model.json", tmp_path / "new.csv"
    fit = ["fit", str(plants), "--target", "yield", "--environment", "place", "--exclude", "good"]
    assert main([*fit, "--out", str(model)]) == 0
    pd.DataFrame({"light": [0.0, 1.0, 2.0], "soil": ["loam", "peat", "sand"]}).to_csv(new, index=False)
    capsys.readouterr()
    assert main(["predict", str(model), str(new)]) == 0
    printed = capsys.readouterr()
    assert "1 of 3 rows have no prediction: soil has categories that the model does not know in 1, such as 'peat'" in (
        printed.err
    )
    assert len(printed.out.splitlines()) == 4


def test_a_constant_target_is_refused(plants, tmp_path, capsys):
    path = tmp_path / "constant.csv"
    pd.read_csv(plants).assign(same=1.0).to_csv(path, index=False)
    assert main(["fit", str(path), "--target", "same", "--environment", "place"]) == 2
    assert "target must vary, got 'same', which is 1.0 in every row" in capsys.readouterr().err


def test_classification_as_json(plants, tmp_path, capsys):
    model = tmp_path / "model.json"
    arguments = ["fit", str(plants), "--target", "good", "--environment", "place", "--exclude", "yield"]
    assert main([*arguments, "--out", str(model), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["task"] == "classification"
    assert result["classes"] == ["no", "yes"]
    assert main(["predict", str(model), str(plants)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,probability of yes"
    assert len(lines) == 3001


def test_codes_that_look_like_numbers_are_recognised_in_new_files(tmp_path):
    """Soils 01, 02 and x were learned; a new file with digits only must not turn 01 into 1."""
    random = np.random.default_rng(0)
    soil, place = random.choice(["01", "02", "x"], 600), random.choice(["hill", "shore"], 600)
    data, new = tmp_path / "plants.csv", tmp_path / "new.csv"
    pd.DataFrame({"soil": soil, "place": place, "yield": 2.0 * (soil == "02") + random.standard_normal(600)}).to_csv(
        data, index=False
    )
    model, _ = fit_table(data, "yield", "place", chunk_rows=200)
    new.write_text("soil\n01\n02\n")
    (predicted,) = [chunk["prediction"] for chunk in predict_table(model, new)]
    assert predicted[1] - predicted[0] == pytest.approx(2, abs=0.4)


def test_a_target_without_values_is_refused(tmp_path):
    data = tmp_path / "plants.csv"
    data.write_text("light,yield\n1,\n2,\n")
    with pytest.raises(ValueError, match="target must hold values, got 'yield' without any"):
        fit_table(data, "yield")


def test_advice_of_a_table(plants):
    sentences = fit_table(plants, "yield", "place", ReadingOptions(exclude=("good",))).model.advice
    assert len(sentences) <= 3
    assert any(sentence.startswith("Dangerous: weeds.") for sentence in sentences)


def test_advice_takes_the_options_of_a_fit_and_speaks_of_them(plants, capsys):
    command = ["advise", str(plants), "--target", "yield", "--environment", "place", "--exclude", "good"]
    assert main([*command, "--format", "json", "--pooling", "0.5"]) == 0
    advice = json.loads(capsys.readouterr().out)["advice"]
    assert "--pooling 0.5 was requested: coefficients are 50% strict and 50% pooled." in advice
    assert any("say --after " in each for each in advice)
    assert main([*command, "--format", "json", "--tolerance", "3"]) == 0
    said = json.loads(capsys.readouterr().out)["advice"]
    assert any("the search found no effect that varies: they are all used (pooling = 1)." in each for each in said), (
        said
    )


def test_what_comes_after_the_target_is_left_out_and_a_category_is_one_column(plants, tmp_path, capsys):
    """Signs are read off the plants, so that they are a category that follows the yield; weeds vary with the place."""
    frame, random = pd.read_csv(plants).drop(columns="good"), np.random.default_rng(7)
    strength = frame["place"].map({"hill": 0.2, "shore": 1.0, "wood": 3.0})
    shown = strength * frame["yield"] + random.standard_normal(len(frame))
    frame["sign"] = pd.cut(shown, [-np.inf, -1, 1, np.inf], labels=["bare, dry", "green", "lush"]).astype(str)
    path = tmp_path / "plants.csv"
    frame.to_csv(path, index=False)
    fit = ["fit", str(path), "--target", "yield", "--environment", "place", "--format", "json"]
    found, signs = {}, ["sign=bare, dry", "sign=green"]
    for words in (["--after", "weeds,sign"], ["--after", "weeds", "--after", "sign=bare, dry"]):
        assert main([*fit, *words, "--before", "soil"]) == 0
        found = json.loads(capsys.readouterr().out)
        names = [each["feature"] for each in found["relations"]]
        assert names == ["light", "soil=clay", "soil=sand", "weeds", *signs]
        coefficients = dict(zip(names, found["coefficients"][0], strict=True))
        assert [coefficients[name] for name in ("weeds", *signs)] == [0, 0, 0]
        assert coefficients["soil=clay"] == pytest.approx(-2, abs=0.2)
        assert any(note.startswith("Left out") and f"weeds, {', '.join(signs)}" in note for note in found["notes"])
    python = fit_table(path, "yield", "place", before="soil", after=("weeds", "sign")).model
    assert [list(row) for row in python.coefficients] == found["coefficients"]
    for curves in (["--effects", "auto"], ["--held-out"]):
        assert main([*fit, *curves, "--after", "weeds,sign"]) == 0
        assert json.loads(capsys.readouterr().out)["relations"]
    for words in (["--after", "place"], ["--before", "nothing"], ["--after", "yield"]):
        assert main([*fit, *words]) == 2
        assert f"{words[0][2:]} must be one of the columns light, soil, weeds" in capsys.readouterr().err
    assert main([*fit, "--after", "soil", "--before", "soil"]) == 2
    assert "before and after must not share a feature" in capsys.readouterr().err


def test_units_in_which_no_coefficient_is_finite_are_refused(plants, tmp_path, capsys):
    frame = pd.read_csv(plants).drop(columns="good").dropna()
    out, path = tmp_path / "model.json", tmp_path / "plants.csv"
    fit = ["fit", str(path), "--target", "yield", "--environment", "place", "--out", str(out)]
    frame.assign(light=frame["light"] * 3e-309).to_csv(path, index=False)
    assert main(fit) == 2
    assert "got smaller ones only in the column 'light': multiply it" in capsys.readouterr().err
    assert not out.exists()
    frame.assign(light=frame["light"] * 1e-300).to_csv(path, index=False)
    assert main(fit) == 2
    frame.assign(light=frame["light"] * 1e-280).to_csv(path, index=False)
    assert main(fit) == 0
    assert "null" not in json.dumps(json.loads(out.read_text())["coefficients"])
    assert TableModel.load(out).coefficients[0][0] == pytest.approx(1e280, rel=0.1)


def test_a_saved_model_advises_in_python_and_the_terminal_in_options(plants, tmp_path, capsys):
    command = ["fit", str(plants), "--target", "yield", "--environment", "place", "--exclude", "good"]
    command += ["--pooling", "0.5", "--out", str(tmp_path / "model.json"), "--overwrite"]
    assert main(command) == 0
    assert "] --pooling 0.5 was requested" in capsys.readouterr().out
    assert main([*command, "--format", "json"]) == 0
    assert any(each.startswith("--pooling 0.5 was") for each in json.loads(capsys.readouterr().out)["notes"])
    saved = TableModel.load(tmp_path / "model.json")
    fitted, _ = fit_table(plants, "yield", "place", ReadingOptions(exclude=("good",)), pooling=0.5)
    assert (saved.advice, saved.notes) == (fitted.advice, fitted.notes)
    assert any(each.startswith("pooling=0.5 was requested") for each in saved.notes)


@pytest.mark.parametrize("invariance", ["effects", "class_means"])
def test_the_form_of_invariance_can_be_chosen(plants, tmp_path, capsys, invariance):
    command = [
        "fit",
        str(plants),
        "--target",
        "good",
        "--environment",
        "place",
        "--exclude",
        "yield",
        "--format",
        "json",
    ]
    assert main([*command, "--format", "json", "--invariance", invariance]) == 0
    found = json.loads(capsys.readouterr().out)
    selected = {row["feature"]: row["selected"] for row in found["relations"]}
    assert selected["light"]
    assert not selected["weeds"]
    assert next(row["verdict"] for row in found["relations"] if row["feature"] == "weeds") == "dangerous"
    assert ("difference" in " ".join(found["advice"])) == (invariance == "class_means")


def test_one_environment_only_is_said_to_be_of_no_use(plants, capsys):
    assert main(["fit", str(plants), "--target", "yield", "--exclude", "good"]) == 0
    assert "nothing is known about which relations hold elsewhere" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit {data} --target height --environment place", "target must be one of the columns"),
        ("fit {data} --target yield --environment where", "environment must be one of the columns"),
        ("fit {data} --target soil --task regression", "target must hold numbers for a regression"),
        ("fit missing.csv --target yield", "data must be an existing file"),
        ("fit {data} --target yield --out {data}", "out must end in .json"),
        ("fit {data} --target yield --out {data}.json", "(overwrite=True or --overwrite replaces it)"),
        ("fit {data} --target yield --out nowhere/model.json", "out must lie in a folder that exists"),
        ("fit {data} --target yield --plots {data}", "plots must be a folder, got the file"),
        ("fit {data} --target yield --overwrite", "overwrite must be left out if no file is written"),
        ("fit {data} --target yield --separator ;;", "separator must be one character"),
        ("fit {data} --target yield --encoding klingon", "encoding must be known to Python"),
        ("fit {data} --target yield --exclude where", "exclude must be one of the columns"),
        ("fit {data} --target yield --exclude yield", "exclude must not name the target"),
        ("fit {data} --target yield --id yield", "id must be another column than target"),
        ("fit {data} --target yield --categories soil --numeric soil", "categories and numeric must name different"),
        ("fit {data} --target yield --environment place,place", "environment must name each column once"),
        ("fit {data} --target yield --environment light:bins=1", "environment must ask for 2 to 100 bins"),
        ("fit {data} --target yield --environment place:year", "environment must be made of dates such as 2020-01-31"),
        ("fit {data} {data} --target yield", "data must name each file once"),
        ("fit nothing/*.csv --target yield", "data must match at least one file"),
        ("advise {data} --target yield --step-size 0.1", "step_size must be left out for a table, got 0.1"),
        ("advise {data}.npz --decimal ,", "decimal must be left out for measurements"),
        ("advise {data}.npz --pooling 0", "pooling must be left out for measurements in .npz or .zarr, got 0.0"),
        ("fit {data} --target yield --invariance effects", "invariance must be left out for a regression"),
        ("predict {data}.json {data} --missing drop", "options must be known to the command, got --missing"),
        ("predict {data}.json {data} --out predictions.xls", "out must end in .csv or .csv.gz or .tsv or .tsv.gz"),
        ("predict - -", "model and data must not both be standard input"),
        ("fit {data} --target yield --tolerance -1", "tolerance"),
        ("predict {data} {data}", "model must be a file written by `holdfast fit`"),
        ("predict missing.json {data}", "model must be an existing file"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(plants, small_model, capsys, arguments, words):
    small_model.save(plants.with_name(f"{plants.name}.json"))
    try:
        code = main([part.format(data=plants) for part in arguments.split()])
    except SystemExit as stop:  # options that contradict each other end the parser
        code = stop.code
    output = capsys.readouterr()
    assert code == 2
    assert words in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_the_model_is_written_even_if_nobody_reads_what_is_printed(plants, tmp_path, monkeypatch, capsys):
    def closed(*arguments):
        raise OSError("nobody reads this")

    monkeypatch.setattr("holdfast.apps.cli.terminal.tables.show_model", closed)
    options = [
        "--target",
        "yield",
        "--environment",
        "place",
        "--exclude",
        "good",
        "--out",
        str(tmp_path / "model.json"),
    ]
    assert main(["fit", str(plants), *options]) == 1
    assert "nobody reads this" in capsys.readouterr().err
    assert TableModel.load(tmp_path / "model.json").target == "yield"


def test_a_pipe_from_fit_to_predict(plants, tmp_path, monkeypatch, capsys):
    options = ["--target", "yield", "--environment", "place", "--exclude", "good,weeds"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(plants.read_bytes())))
    assert main(["fit", "-", *options, "--out", "-"]) == 0
    model = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(model.encode())))
    assert main(["predict", "-", str(plants)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3001


def test_an_indicator_goes_with_its_column(tmp_path):
    """Where the cost is missing varies with nothing, but is not selected without the cost."""
    random = np.random.default_rng(0)
    rows = 2000
    place = np.arange(rows) % 4
    x = random.standard_normal(rows)
    y = x + random.standard_normal(rows)
    cost = 10 * (y * (1 + place) + random.standard_normal(rows))
    frame = pd.DataFrame({"x": x, "cost": np.where(random.random(rows) < 0.1, np.nan, cost), "place": place, "y": y})
    path = tmp_path / "costs.csv"
    frame.to_csv(path, index=False)
    model = fit_table(path, "y", "place", pooling=0).model
    assert {row["feature"]: row["selected"] for row in model.relations} == {
        "x": True, "cost": False, "cost is missing": False
    }  # fmt: skip
    assert any(sentence.startswith("Dangerous: cost.") for sentence in model.advice)


def test_four_classes_and_class_means_are_explained_in_the_terminal(plants, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    frame = pd.read_csv(plants).assign(size=lambda table: pd.qcut(table["yield"], 4, labels=["s", "m", "l", "xl"]))
    path = tmp_path / "sizes.csv"
    frame.drop(columns=["yield", "good"]).to_csv(path, index=False)
    assert main(["fit", str(path), "--target", "size", "--environment", "place", "--invariance", "class_means"]) == 0
    printed = capsys.readouterr().out
    heads = next(line.split() for line in printed.splitlines() if " coef " in line)
    body = [line.split() for line in printed.splitlines() if line.startswith(("light", "weeds"))]
    assert (heads[0], len(body)) == ("class", 2)
    assert all(words[1] in ("s", "m", "l", "xl") for words in body)
    assert "by itself would have" in " ".join(printed.split())
    assert "next to those" not in printed


def test_files_may_differ_in_columns_that_are_not_used(plants, tmp_path, capsys):
    """Left out of the fit, unknown to the schema, or without a coefficient."""
    frame = pd.read_csv(plants).drop(columns="good").dropna()
    frame[:1500].to_csv(tmp_path / "1.csv", index=False)
    frame[1500:].assign(remark="fine").to_csv(tmp_path / "2.csv", index=False)
    pattern, model = str(tmp_path / "[12].csv"), str(tmp_path / "model.json")
    fit = ["fit", pattern, "--target", "yield", "--environment", "place"]
    assert main(fit) == 2
    assert "got 2.csv, which adds 'remark' compared with 1.csv" in capsys.readouterr().err
    assert main([*fit, "--exclude", "remark", "--out", model]) == 0
    assert main([*fit, "--schema", model]) == 0
    assert "Read the data 1 time." in capsys.readouterr().out
    frame[1500:].drop(columns=["weeds", "place"]).to_csv(tmp_path / "2.csv", index=False)
    assert main(["predict", model, pattern]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(frame)
    frame[1500:].drop(columns="light").to_csv(tmp_path / "2.csv", index=False)
    assert main(["predict", model, pattern]) == 2
    assert "got 2.csv, which lacks 'light' compared with 1.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--pooling", "maybe"], "--pooling must be auto or a number, got 'maybe'"),
        (["--schema", "nope.json"], "schema must be an existing file, got 'nope.json'"),
    ],
)
def test_a_wrong_value_is_named_with_its_option(plants, capsys, option, words):
    try:
        code = main(["fit", str(plants), "--target", "yield", *option])
    except SystemExit as stop:  # of the parser
        code = stop.code
    assert code == 2
    assert words in capsys.readouterr().err
