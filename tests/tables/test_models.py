"""Model files: what is saved is loaded, and nothing else is."""

import json
import random

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from fuzzing.generator import mutated
from holdfast.tables import Column, TableModel
from holdfast.tables.models import EnvironmentEffects, read_model

FIRST = {
    "format": "holdfast linear model 1",
    "task": "regression",
    "target": "yield",
    "environment": "site",
    "columns": [{"name": "light", "categories": []}, {"name": "soil", "categories": ["clay", "sand"]}],
    "coefficients": [2.0, 0.5],
    "intercept": 1.0,
    "classes": [],
    "relations": [{"feature": "light", "coefficient": 2.0, "varies": False}],
    "effects": [{"environment": "hill", "light": 2.0, "soil=sand": None}],
    "advice": ["Selected: light."],
    "notes": [],
    "choice": "because",
    "amplification": 3.0,
    "step_size": 0.05,
    "rows": 9,
    "version": "0.1.0",
}


@pytest.fixture
def model():
    return TableModel(
        task="regression",
        target="yield",
        environment="date:year",
        columns=(Column("light", fill=0.5), Column("soil", "category", ("clay", "sand")), Column("day", "date")),
        coefficients=((2.0, 0.25, 0.5, 0.0),),
        intercepts=(1.0,),
        relations=({"feature": "light", "coefficient": 2.0, "verdict": "holds", "reverse": None},),
        effects=(EnvironmentEffects("hill", {"light": 2.0, "soil=sand": None}),),
        advice=("Selected: light.",),
        pooling=0.25,
        rows=9,
    )


@pytest.fixture
def classifier():
    columns = (Column("light"), Column("soil", "category", ("clay", "sand")))
    return TableModel(
        task="classification",
        target="kind",
        columns=columns,
        coefficients=((2.0, 0.5), (0.0, 1.0), (-1.0, 0.0)),
        intercepts=(1.0, 0.0, 0.5),
        classes=("oak", "pine", "yew"),
    )


def test_a_loaded_model_is_the_saved_one(model, classifier, tmp_path):
    for each in (model, classifier):
        each.save(tmp_path / "model.json")
        assert TableModel.load(tmp_path / "model.json") == each
    assert json.loads((tmp_path / "model.json").read_text())["format"] == "holdfast linear model 3"


def test_columns_without_weight_need_not_be_in_the_table(model):
    idle = msgspec.structs.replace(model, coefficients=((2.0, 0.25, 0.0, 0.0),))
    assert idle.predict(pd.DataFrame({"light": [1.0, None]}))["prediction"].tolist() == [3.0, 2.25]
    with pytest.raises(ValueError, match="must have the columns 'light', 'soil'"):
        model.predict(pd.DataFrame({"day": ["2020-01-31"]}))


def test_several_classes_have_probabilities(classifier):
    new = pd.DataFrame({"light": [1.0, -2.0], "soil": ["sand", "clay"]})
    scores = np.array([[3.5, 1.0, -0.5], [-3.0, 0.0, 2.5]])
    predicted = classifier.predict(new)
    assert predicted["prediction"].tolist() == ["oak", "yew"]
    names = [f"probability of {label}" for label in classifier.classes]
    np.testing.assert_allclose(predicted[names], softmax(scores, axis=1), rtol=1e-12)
    two = msgspec.structs.replace(
        classifier, classes=("no", "yes"), coefficients=((2.0, 0.5),), intercepts=(-1.0,)
    ).predict(new)
    assert list(two.columns) == ["prediction", "probability of yes"]
    np.testing.assert_allclose(two["probability of yes"], expit([1.5, -5.0]), rtol=1e-12)


def test_models_of_the_first_format_are_read():
    model = read_model(json.dumps(FIRST).encode(), "model.json")
    assert model.columns == (Column("light"), Column("soil", "category", ("clay", "sand")))
    new = pd.DataFrame({"light": [1.0, 3.0], "soil": ["sand", "clay"]})
    assert model.predict(new)["prediction"].tolist() == [3.5, 7.0]
    assert model.version == "0.1.0"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coefficients": [["much", 0.5, 0, 0]]}, r"Expected `float`, got `str` - at `\$.coefficients\[0\]\[0\]`"),
        ({"coefficients": [[2.0]]}, "1 coefficients for 4 features"),
        ({"coefficients": []}, "0 rows of coefficients and 1 intercepts, not 1"),
        ({"intercepts": [1.0, 2.0]}, "1 rows of coefficients and 2 intercepts, not 1"),
        ({"task": "clustering"}, "Invalid enum value 'clustering'"),
        ({"task": "classification"}, "at least two different classes"),
        ({"classes": ["no", "yes"]}, "a regression has no classes, got 2"),
        ({"columns": [{"categories": []}]}, "missing required field `name`"),
        ({"columns": [{"name": "a", "kind": "category"}]}, "column 'a' is a category with 0 categories"),
        ({"columns": [{"name": "a", "fill": "much"}]}, "column 'a' cannot be filled with 'much'"),
        (
            {"columns": [{"name": "a"}, {"name": "a"}], "coefficients": [[1, 2]]},
            "two columns or features have the same name",
        ),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"pooling": 2}, "Expected `float` <= 1"),
        ({"rows": -1}, "Expected `int` >= 0"),
        ({"format": "something else"}, "the format is not 'holdfast linear model'"),
        ({"format": "holdfast linear model 4"}, "format 4, of a newer holdfast; this one reads 1 to 3"),
    ],
)
def test_a_file_that_is_not_a_model_is_refused_with_the_reason(model, tmp_path, change, words):
    path = tmp_path / "model.json"
    model.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"model must be a file written by `holdfast fit`, got .*" + words):
        TableModel.load(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "1e309"])
def test_numbers_that_are_not_finite_are_refused(model, number):
    content = model.json().replace(b"0.25", number.encode(), 1)
    with pytest.raises(ValueError, match="model must be a file written by `holdfast fit`"):
        read_model(content, "model.json")


def test_a_model_of_the_second_format_predicts_the_same(model, tmp_path):
    """It has `stability`, in words of its own, instead of relations."""
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text())
    del content["relations"]
    content |= {"format": "holdfast linear model 2", "stability": [{"feature": "light", "varies": False}]}
    path.write_text(json.dumps(content))
    assert TableModel.load(path) == msgspec.structs.replace(model, relations=())
    path.write_text(json.dumps(content | {"relations": 1}))
    with pytest.raises(ValueError, match="Expected `array`, got `int`"):
        TableModel.load(path)


@pytest.mark.parametrize("change", [{"coefficients": ((np.inf, 0.25, 0.5, 0.0),)}, {"intercepts": (np.nan,)}])
def test_numbers_that_no_file_can_hold_are_refused(model, change):
    with pytest.raises(ValueError, match="columns must be in units that give finite"):
        msgspec.structs.replace(model, **change)


@pytest.mark.parametrize("opening", [b"[", b'{"format":', b'{"format":"holdfast linear model 3","columns":['])
def test_deep_nesting_is_refused(opening):
    with pytest.raises(ValueError, match="model must be a file written by `holdfast fit`"):
        read_model(opening + b"[" * 100_000, "model.json")
    deep = b'{"format":"holdfast linear model 3","advice":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ValueError, match="model must be a file written by `holdfast fit`"):
        read_model(deep, "model.json")


def _read_or_refuse(content):
    try:
        return read_model(content, "model.json")
    except ValueError as error:
        return str(error)


def test_mutated_models_are_models_or_refused_in_one_sentence(model, classifier):
    """2,000 of them; those that pass can be used and saved."""
    source = random.Random(0)
    contents = [json.loads(model.json()), json.loads(classifier.json()), FIRST]
    table = pd.DataFrame({"light": [1.0, None], "soil": ["sand", "clay"], "day": ["2020-01-31", None]})
    refused = 0
    for number in range(2000):
        content = mutated(source, contents[number % 3])
        loaded = _read_or_refuse(content)
        if isinstance(loaded, str):
            refused += 1
            assert loaded.startswith("model must be a file written by `holdfast fit`, got model.json (")
            assert "\n" not in loaded
            continue
        assert read_model(loaded.json(), "model.json") == loaded
        if all(column.name in table for column in loaded.needed):
            predicted = loaded.predict(table)["prediction"]
            assert len(predicted) == 2
    assert 1000 < refused < 2000
