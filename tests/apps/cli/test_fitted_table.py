"""What `holdfast fit` prints: the summary with its advice, and every note once, in the options of the command line."""

import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from holdfast.apps.cli.main import main
from holdfast.apps.cli.terminal.tables import in_options, show_model
from holdfast.estimators import HeteroRegressor
from holdfast.estimators.summary import VERDICTS


@pytest.fixture(scope="module")
def fitted():
    """The pests follow the height, more closely in some gardens."""
    random = np.random.default_rng(0)
    garden = np.arange(4000) % 8
    light, soil = random.standard_normal((2, 4000))
    height = light + random.standard_normal(4000)
    pests = np.linspace(-0.5, 1.5, 8)[garden] * height + random.standard_normal(4000)
    table = pd.DataFrame({"light": light, "pests per square metre of the garden": pests, "soil": soil})
    return HeteroRegressor(pooling=0.5).fit(table, pd.Series(height, name="height"), environments=garden)


def _printed(estimator, capsys, monkeypatch, width, notes=()):
    monkeypatch.setenv("COLUMNS", str(width))
    model = SimpleNamespace(advice=estimator.advice_, notes=(*notes, *estimator.notes_))
    show_model(model, estimator.summary())
    return capsys.readouterr().out.splitlines()


def test_the_most_dangerous_feature_comes_first_and_its_numbers_are_those_of_the_fit(fitted, capsys, monkeypatch):
    lines = _printed(fitted, capsys, monkeypatch, 120)
    assert lines[0].startswith("Regression of height: 4,000 rows, 8 environments. 3 features: 1 dangerous")
    head = next(line for line in lines if " coef " in line)
    words = ["coef", "effect", "[0.025", "0.975]", "between", "I²", "reverse", "±", "danger", "verdict"]
    assert head.split() == words
    body = lines[lines.index(head) + 2 :][:3]
    pests, light = body[0], next(line for line in body if line.startswith("light"))
    assert pests.split()[0] == "pests"
    assert pests.split()[-1] == "dangerous"
    found = fitted.relations_.loc["light"]
    assert light.split()[1:5] == [f"{found[name]:.3g}" for name in ("coefficient", "effect", "low", "high")]
    assert light.split()[-2] == f"{found['danger']:.0%}"


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_advice_and_notes_are_printed_once_and_fit_their_window(fitted, capsys, monkeypatch, width):
    lines = _printed(fitted, capsys, monkeypatch, width, notes=("5 of 4005 rows were left out.",))
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for sentence in in_options([*fitted.advice_, *fitted.notes_, "5 of 4005 rows were left out."]):
        assert text.count(sentence) == 1
    assert "--pooling 0.5 was requested" in text
    assert "pooling=" not in text
    assert "after=" not in text
    assert "--after 'pests per square metre of the garden'" in text
    assert sum(line.startswith("> ") for line in lines) == len(fitted.advice_) <= 3
    assert any(line.split()[-1] in VERDICTS for line in lines)


def test_names_of_columns_are_quoted_as_a_shell_needs_them():
    for name in ("it's", 'a "b"', "a,b", "both ' and \"", "x]"):
        (sentence,) = in_options([f"If so, say after=[{name!r}]; if not, before=[{name!r}]."])
        words = shlex.split(sentence.removeprefix("If so, say ").replace("; if not, ", " ").removesuffix("."))
        assert words == ["--after", name, "--before", name]


def test_a_row_has_the_class_that_it_is_about(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    random = np.random.default_rng(1)
    light, soil = random.standard_normal((2, 1200))
    scores = np.column_stack([light, -light, soil]) + random.gumbel(size=(1200, 3))
    kinds = np.array(["oak", "elm", "ash"])[scores.argmax(1)]
    frame = pd.DataFrame({"light": light, "soil": soil, "kind": kinds, "place": np.arange(1200) % 3})
    frame.to_csv(tmp_path / "trees.csv", index=False)
    assert main(["fit", str(tmp_path / "trees.csv"), "--target", "kind", "--environment", "place"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if " coef " in line).split()[0] == "class"
    rows = [line.split() for line in lines if line.startswith(("light ", "soil "))]
    assert len(rows) == 2
    assert all(row[1] in kinds for row in rows)
