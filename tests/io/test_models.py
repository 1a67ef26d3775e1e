import json
from dataclasses import replace

import pandas as pd
import pytest

from holdfast.io.models import TableModel
from holdfast.io.tables import Column


@pytest.fixture
def model():
    columns = [Column("light"), Column("soil", ["clay", "sand"])]
    tables = {"stability": [], "effects": [], "advice": ["Selected: light."], "notes": [], "choice": ""}
    return TableModel(
        "regression", "yield", "site", columns, [2.0, 0.5], 1.0, [], amplification=3.0, step_size=0.05, rows=9, **tables
    )


def test_a_loaded_model_is_the_saved_one(model, tmp_path):
    model.save(tmp_path / "model.json")
    assert TableModel.load(tmp_path / "model.json") == model


def test_columns_without_weight_need_not_be_in_the_table(model):
    idle = replace(model, coefficients=[2.0, 0.0])
    assert idle.predict(pd.DataFrame({"light": [1.0]}))["prediction"].tolist() == [3.0]
    with pytest.raises(ValueError, match="must have the column 'soil'"):
        model.predict(pd.DataFrame({"light": [1.0]}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coefficients": ["much", 0.5]}, r"Expected `float`, got `str` - at `\$.coefficients\[0\]`"),
        ({"coefficients": [2.0]}, "1 coefficients for 2 features"),
        ({"task": "clustering"}, "Invalid enum value 'clustering'"),
        ({"columns": [{"categories": []}]}, "missing required field `name`"),
        ({"format": "something else"}, "the format is not 'holdfast linear model 1'"),
    ],
)
def test_a_file_that_is_not_a_model_is_refused_with_the_reason(model, tmp_path, change, words):
    path = tmp_path / "model.json"
    model.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"model must be a file written by `holdfast fit`, got .*" + words):
        TableModel.load(path)
