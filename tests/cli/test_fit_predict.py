"""`holdfast fit` and `holdfast predict` on files."""

import json

import numpy as np
import pandas as pd
import pytest

from holdfast.cli.main import main
from holdfast.estimators.files import advise_table, fit_table, predict_table
from holdfast.io.models import TableModel


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
    printed = capsys.readouterr().out
    assert "Regression of yield: 2995 rows, 3 environments" in printed
    assert "washed out" in printed
    assert "5 of 3000 rows were left out" in " ".join(printed.split())
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {"effects.png", "survival.png"}
    loaded = TableModel.load(model)
    coefficients = dict(zip(loaded.features, loaded.coefficients, strict=True))
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
    assert errors.loc["hill", "pooled"] > 1.3 > 1.2 > errors["invariant"].max()
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
    assert "1 of 3 rows have no prediction" in printed.err
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
    predicted = next(predict_table(model, new))["prediction"]
    assert predicted[1] - predicted[0] == pytest.approx(2, abs=0.4)


def test_a_target_without_values_is_refused(tmp_path):
    data = tmp_path / "plants.csv"
    data.write_text("light,yield\n1,\n2,\n")
    with pytest.raises(ValueError, match="target must hold values, got 'yield' without any"):
        fit_table(data, "yield")


def test_advice_of_a_table(plants):
    sentences = advise_table(plants, "yield", "place", exclude=["good"])
    assert any("Washed out, because the effect varies: weeds" in sentence for sentence in sentences)


def test_one_environment_only_is_said_to_be_of_no_use(plants, capsys):
    assert main(["fit", str(plants), "--target", "yield", "--exclude", "good"]) == 0
    assert "nothing can be washed out" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit {data} --target height --environment place", "target must be one of the columns"),
        ("fit {data} --target yield --environment where", "environment must be one of the columns"),
        ("fit {data} --target soil --environment place", "target must hold numbers, or two different values"),
        ("fit {data} --target soil --task regression", "target must hold numbers for a regression"),
        ("fit missing.csv --target yield", "data must be an existing file"),
        ("fit {data} --target yield --out {data}", "out must be a new file"),
        ("fit {data} --target yield --tolerance -1", "tolerance"),
        ("predict {data} {data}", "model must be a file written by `holdfast fit`"),
        ("predict missing.json {data}", "model must be an existing file"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(plants, capsys, arguments, words):
    assert main([part.format(data=plants) for part in arguments.split()]) == 2
    output = capsys.readouterr()
    assert words in output.err
    assert output.out == ""


def test_a_model_is_data_and_not_code(plants, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"format": "something else"}))
    with pytest.raises(ValueError, match="written by `holdfast fit`"):
        TableModel.load(path)
