import html

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from holdfast.core.statistics import random_effects
from holdfast.estimators import HeteroClassifier, HeteroRegressor
from holdfast.estimators.printed_summary import WIDTH, shortened
from holdfast.estimators.summary import COLUMNS


def _simpson(seed=0):
    """Within each environment the effect is -1; between their means it is about 1."""
    random = np.random.default_rng(seed)
    codes = np.repeat([0, 1], 500)
    x = random.standard_normal((1000, 1)) + 4 * codes[:, None]
    return x, -x[:, 0] + 8 * codes + 0.5 * random.standard_normal(1000), codes


def test_the_effect_is_that_within_environments():
    """A fit to all rows mixes it with the relation between their means (Simpson's paradox)."""
    x, y, codes = _simpson()
    row = HeteroRegressor(pooling=1).fit(x, y, environments=codes).summary().table.loc["x0"]
    assert row["coefficient"] > 0 > -0.9 > row["highest_effect"]
    assert row["low"] < -1 < row["high"]
    within = HeteroRegressor(pooling=1, level="environment").fit(x, y, environments=codes).summary()
    assert within.table.loc["x0", "coefficient"] == pytest.approx(-1, abs=4 * 0.5 / np.sqrt(1000))


def test_a_consequence_whose_mean_hides_its_effects_is_found_with_one_intercept_and_with_several():
    """A consequence c_e y of the response, with a mean that moves from one environment to the next as c_e does.

    About the common mean its gradient is that of its level, which the response does not follow in any environment, so
    that with one intercept the search does not see that the effects within environments differ; the verdict does.
    """
    random = np.random.default_rng(6)
    environments = np.repeat(list("nesw"), 250)
    causes = random.normal([8, 5, 3], [2, 1.5, 1], (1000, 3))
    y = 10 + causes @ [3, 4, 2] + random.normal(0, 5, 1000)
    fruits = np.repeat([0.3, 0.2, 0.1, 0.05], 250) * y + random.normal(0, 1.5, 1000)
    x = pd.DataFrame(np.column_stack([causes, fruits]), columns=["light", "water", "nitrogen", "fruits"])
    common = HeteroRegressor().fit(x, y, environments=environments)
    assert common.invariant_[3]
    within = HeteroRegressor(level="environment").fit(x, y, environments=environments)
    assert within.invariant_.tolist() == [True, True, True, False]
    # a fit with one intercept hardly uses it, so that little is lost
    assert common.relations_.loc["fruits", "verdict"] == "varies"
    assert within.relations_.loc["fruits", "verdict"] == "dangerous"
    assert common.relations_["rank"].idxmin() == within.relations_["rank"].idxmin() == "fruits"
    assert any(sentence.startswith("Dangerous: fruits.") for sentence in within.advice_)
    assert any("after=['fruits']" in sentence for sentence in within.advice_)


def _table(seed=0, rows=400):
    """A cause, a consequence that follows the response more closely in some environments, and noise."""
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), rows)
    x = random.standard_normal((4 * rows, 3))
    y = x[:, 0] + random.standard_normal(4 * rows)
    x[:, 1] = np.array([0.2, 0.6, 1.0, 1.4])[codes] * y + 0.5 * x[:, 1]
    return x, y, codes


@pytest.fixture(scope="module")
def model():
    x, y, codes = _table()
    return HeteroRegressor().fit(x, y, environments=codes)


def _body(text):
    """The cells of the table in a text, by feature."""
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if set(line) == {"="}]
    return lines[rules[0] + 1].split(), {line.split()[0]: line for line in lines[rules[0] + 3 : rules[1]]}


def test_the_table_is_of_fixed_width_and_its_numbers_are_those_of_the_frame(model):
    summary = model.summary()
    headings, body = _body(summary.text(WIDTH))
    assert headings == list(COLUMNS)
    assert list(body) == summary.table.sort_values("rank").index.tolist()
    assert next(iter(body)) == "x1"
    for name, line in body.items():
        row = model.relations_.loc[name]
        numbers = [row[column] for column in ("coefficient", "effect", "low", "high", "between")]
        assert line.split()[1:6] == [f"{number:.3g}" for number in numbers]
        assert f" {row['i_squared']:.0%} " in line
        assert f" {row['danger']:.0%} " in line
        assert line.endswith(row["verdict"])
    assert len(set(map(len, body.values()))) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 100, WIDTH])
def test_a_narrow_table_leaves_out_what_is_needed_least(model, width):
    text = model.summary().text(width)
    headings, body = _body(text)
    assert {"effect", "[0.025", "0.975]", "danger", "verdict"} <= set(headings)
    assert len(body) == 3
    widest = max(map(len, text.splitlines()))
    assert widest <= max(width, len(next(iter(body.values()))))
    if width >= 60:
        assert widest <= width
    assert all(sentence.split(".")[0] in " ".join(text.replace("\n", " ").split()) for sentence in model.advice_)


def test_intervals_are_those_of_the_mean_effect(model):
    tables, row = model.effect_tables_, model.relations_
    found = random_effects(*(part.to_numpy() for part in tables[:3]))
    half = t.isf(0.025, found.degrees) * found.error
    np.testing.assert_allclose(row[["low", "high"]].to_numpy().T, [found.mean - half, found.mean + half], rtol=1e-9)
    np.testing.assert_allclose(row["effect_error"], found.error, rtol=1e-9)


def test_advice_says_what_to_rely_on_what_is_dangerous_and_what_it_costs():
    x, y, codes = _table(rows=8000)
    frame = pd.DataFrame(x, columns=["dose", "marker", "noise"])
    model = HeteroRegressor().fit(frame, pd.Series(y, name="height"), environments=codes)
    rely, danger, ask = model.advice_
    row = model.relations_.loc["marker"]
    assert model.relations_["verdict"].tolist() == ["holds", "dangerous", "holds"]
    # the noise holds as well, but its effect is nothing to rely on
    assert rely.startswith("Rely on dose: the relation holds in these environments")
    assert danger.startswith("Dangerous: marker. If its relation to height moves by 2.5 standard deviations")
    assert f"grows by {row['danger']:.0%}, and by {row['reliance']:.0%} if it breaks" in danger
    assert f"leaving it out raises it by {row['price']:.0%} in this table" in danger
    assert ask.startswith("Could marker be recorded after height")
    before = HeteroRegressor(before=["marker"]).fit(frame, pd.Series(y, name="height"), environments=codes)
    assert not any(sentence.startswith("Could marker") for sentence in before.advice_)


def test_few_rows_say_what_they_would_have_shown():
    x, y, codes = _table()
    few = np.arange(0, 1600, 16)
    model = HeteroRegressor().fit(x[few][:, [0, 2]], y[few], environments=codes[few])
    assert model.relations_["verdict"].tolist() == ["cannot be told"] * 2
    shown = model.relations_["detectable"].min()
    assert model.advice_[0].startswith("No clear effect could be shown to hold: 100 rows in 4 environments are too few")
    assert f"a standard deviation of {shown:.2g} between environments, with 80 % power" in model.advice_[0]


def test_a_copy_of_the_response_is_said():
    random = np.random.default_rng(0)
    codes, x = np.arange(900) % 3, random.standard_normal((900, 2))
    y = x[:, 0] + random.standard_normal(900)
    x = np.column_stack([x, 2.54 * y + 1e-3 * random.standard_normal(900)])
    model = HeteroRegressor().fit(x, y, environments=codes)
    assert any(note.startswith("x2 nearly determines y") for note in model.notes_)


def test_html_is_a_table_with_the_advice_and_the_notes():
    x, y, codes = _table()
    frame = pd.DataFrame(x, columns=["<dose>", "a & b", "noise"])
    model = HeteroRegressor().fit(frame, y, environments=codes)
    found = model.summary()._repr_html_()
    shown = pd.read_html(found, index_col=0)[0] if _has_lxml() else None
    if shown is not None:
        assert shown.index.tolist() == model.summary().table.index.tolist()
    assert "<dose>" not in found
    assert "&lt;dose&gt;" in found
    for sentence in (*model.advice_, *model.notes_):
        assert html.escape(sentence) in found
    assert [found.count(f">{verdict}<") for verdict in ("dangerous", "cannot be told")] == [1, 2]


def _has_lxml():
    try:
        import lxml  # noqa: F401
    except ImportError:
        return False
    return True


def test_one_environment_and_long_names():
    name = "a name that is much longer than all " * 2
    x, y, _ = _table()
    model = HeteroRegressor().fit(pd.DataFrame({name: x[:, 0]}), y)
    text = str(model.summary())
    assert "only one environment" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_an_effect_that_one_environment_measures_cannot_be_told():
    random = np.random.default_rng(3)
    codes, x = np.repeat([0, 1, 2], 2000), random.standard_normal((6000, 2))
    x[2000:, 1] = 1.0  # moves in the first environment alone
    y = x.sum(1) + random.standard_normal(6000)
    summary = HeteroRegressor().fit(x, y, environments=codes).summary()
    assert summary.table.loc["x1", "verdict"] == "cannot be told"
    assert np.isnan(summary.table.loc["x1", "between"])
    assert max(map(len, str(summary).splitlines())) <= WIDTH


@pytest.mark.parametrize(
    "estimator",
    [
        HeteroRegressor(),
        HeteroRegressor(pooling=0),
        HeteroClassifier(invariance="effects"),
        HeteroClassifier(invariance="class_means"),
    ],
)
def test_weights_that_sum_to_one_leave_nothing_to_compare(estimator):
    random = np.random.default_rng(0)
    x, environments = random.standard_normal((600, 3)), np.arange(600) % 3
    y = x[:, 0] + random.standard_normal(600)
    y = y if isinstance(estimator, HeteroRegressor) else y > 0
    with pytest.warns(UserWarning, match=r"sample_weight \* 600\) count"):
        estimator.fit(x, y, environments=environments, sample_weight=np.full(600, 1 / 600))
    summary = estimator.summary()
    assert "1 row," in summary.headline
    assert summary.table[["low", "high", "effect", "between"]].isna().all(axis=None)
    assert set(summary.table["verdict"]) == {"cannot be told"}
    assert estimator.advice_ == [
        "No effect is measured in two environments, so nothing is known about which relations hold elsewhere."
    ]


def test_an_effect_that_no_environment_measures_cannot_be_told():
    random = np.random.default_rng(0)
    x, codes = random.standard_normal((400, 2)), np.arange(400) % 20
    x[:, 1] = codes  # stands still within environments
    model = HeteroRegressor(pooling=0).fit(x, x.sum(1) + random.standard_normal(400), environments=codes)
    assert model.relations_.loc["x1", "verdict"] == "cannot be told"
    assert np.isnan(model.relations_.loc["x1", "effect"])


def test_long_names_stay_different():
    names = [f"concentration of nitrate in the soil at depth {k} cm, mean of the season" for k in (10, 20, 30, 40)]
    found = shortened([*names, "light"], 22)
    assert len(set(found)) == 5
    assert max(map(len, found)) <= 22
    assert found[-1] == "light"
    assert shortened(["soil temperature, day", "soil temperature, night"], 12) == ["soil …e, day", "soil … night"]


@pytest.mark.parametrize("invariance", ["effects", "class_means"])
def test_of_four_classes_every_row_says_which_one_it_is_about(invariance):
    random = np.random.default_rng(0)
    x, environments = random.standard_normal((2000, 7)), np.arange(2000) % 4
    y = np.digitize(x.sum(1) + random.standard_normal(2000), [-2, 0, 2])
    model = HeteroClassifier(invariance=invariance).fit(x, y, environments=environments)
    summary, of_class = model.summary(), model.findings_.of_class
    headings, body = _body(summary.text())
    assert headings[0] == "class"
    assert [line.split()[1] for line in body.values()] == [str(of_class[int(name[1:])]) for name in body]
    assert summary.units == {f"x{number}": f"log-odds of {of_class[number]}" for number in range(7)}
    assert ("reverse" in headings) == (invariance == "effects")
    assert sorted(model.relations_["rank"]) == list(range(1, 8))
