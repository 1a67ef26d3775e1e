from dataclasses import replace

import msgspec
import pandas as pd
import pytest

from holdfast.apps.cli.terminal.tables import show_model
from holdfast.estimators.summary import TableSummary
from holdfast.tables import Column, TableModel
from holdfast.tables.models import EnvironmentEffects

STABILITY_COLUMNS = (
    *("coefficient", "standard_error", "effect", "effect_error", "between", "i_squared"),
    *("lowest_effect", "highest_effect", "significance", "varies", "selected"),
)
SAME = (2.0, 0.1, 1.9, 0.2, 0.05, 0.25, 1.8, 2.2, 0.3, False, True)
VARIES = (0.0, 0.0, -1.5, 1.2, 1.4, 0.97, -3.21e-05, 4.0, 1e-9, True, False)
UNMEASURED = (0.0, 0.0, *[None] * 7, False, False)


@pytest.fixture
def model():
    names = ["weeds per square metre of the field", "light", "soil"]
    rows = zip(names, (VARIES, SAME, UNMEASURED), strict=True)
    records = [{"feature": name} | dict(zip(STABILITY_COLUMNS, row, strict=True)) for name, row in rows]
    return TableModel(
        task="regression",
        target="yield",
        environment="field",
        columns=tuple(map(Column, names)),
        coefficients=((0.0, 2.0, 0.0),),
        intercepts=(1.0,),
        stability=tuple(records),
        effects=tuple(EnvironmentEffects(f"field {number}", {}) for number in range(4)),
        advice=("Beware.",),
        rows=100,
    )


def _summary(model):
    stability = pd.DataFrame(model.stability).set_index("feature")
    return TableSummary(stability, "regression", model.rows, len(model.effects), 0.8, 0.8, response=model.target)


def _printed(model, capsys, monkeypatch, width, **changes):
    monkeypatch.setenv("COLUMNS", str(width))
    show_model(model, replace(_summary(model), **changes))
    return capsys.readouterr().out.splitlines()


def test_features_with_the_same_effect_come_first_with_all_their_numbers(model, capsys, monkeypatch):
    lines = _printed(model, capsys, monkeypatch, 140)
    assert "Regression of yield: 100 rows, 4 environments" in lines[0]
    head = next(line for line in lines if "coef" in line)
    words = ["coef", "std", "err", "[0.025", "0.975]", "effect", "between", "I²", "lowest", "highest", "verdict"]
    assert head.split() == words
    body = lines[lines.index(head) + 2 :]
    # the interval is Student's with 98 degrees of freedom, 1.984 standard errors to either side
    assert body[0].split() == ["light", "2", "0.1", "1.8", "2.2", "1.9", "0.05", "25%", "1.8", "2.2", "same"]
    assert body[1].split()[7:] == ["0", "-", "-", "-", "-1.5", "1.4", "97%", "-3.21e-05", "4", "varies"]
    assert body[2].split() == ["soil", "0", *["-"] * 8, "not", "needed"]
    assert lines[-1] == "- Beware."


def test_the_terminal_shows_the_intervals_of_the_summary(model, capsys, monkeypatch):
    """Four intercepts and one coefficient leave Student's law a single degree of freedom of six rows."""
    few = msgspec.structs.replace(model, rows=6)
    light = next(line for line in _printed(few, capsys, monkeypatch, 140, level="environment") if "light" in line)
    assert light.split()[3:5] == ["0.729", "3.27"]


def test_a_row_has_the_class_that_it_is_about(model, capsys, monkeypatch):
    lines = _printed(model, capsys, monkeypatch, 140, task="classification", of_class=("oak", "elm", "ash"))
    assert next(line for line in lines if "light" in line).split()[:2] == ["light", "elm"]


@pytest.mark.parametrize("width", [80, 100])
def test_names_of_features_can_be_told_apart(model, capsys, monkeypatch, width):
    """Other columns give way to 24 characters; longer names are cut in the middle, and never wrapped."""
    names = ["soil=clay with stones", "soil=clay with sand", "weeds per square metre in May", "weeds per square metre"]
    records = [
        {**record, "feature": name} for name, record in zip(names, (*model.stability, *model.stability), strict=False)
    ]
    columns = {"columns": tuple(map(Column, names)), "coefficients": ((0.0, 2.0, 0.0, 1.0),)}
    lines = _printed(msgspec.structs.replace(model, stability=tuple(records), **columns), capsys, monkeypatch, width)
    assert max(map(len, lines)) <= width
    printed = [line for line in lines if line.startswith(("soil=", "weeds"))]
    assert len(printed) == len(names)
    assert all(any(line.strip().startswith(name) for line in printed) for name in (*names[:2], names[3]))
    assert any(line.strip().startswith("weeds per s") and "etre in May " in line for line in printed)


def test_one_environment_is_not_several(model, capsys, monkeypatch):
    one = msgspec.structs.replace(model, effects=model.effects[:1])
    assert "100 rows, 1 environment." in _printed(one, capsys, monkeypatch, 140)[0]


@pytest.mark.parametrize("width", [60, 70, 80, 100])
def test_a_narrow_terminal_shows_whole_numbers(model, capsys, monkeypatch, width):
    lines = _printed(model, capsys, monkeypatch, width)
    assert max(map(len, lines)) <= width
    light = next(line for line in lines if "light" in line)
    assert light.split()[-5:] == ["0.05", "25%", "1.8", "2.2", "same"]
    assert "-3.21e-05" in next(line for line in lines if "varies" in line)
