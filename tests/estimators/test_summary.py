import numpy as np
import pandas as pd
import pytest

from holdfast.core import group_rows
from holdfast.core.moments import collect_moments, standardized
from holdfast.estimators import HeteroClassifier, HeteroRegressor
from holdfast.estimators.effects import OwnEffects, describe_effects, squared_effects
from holdfast.estimators.inference import blended_covariance, standard_errors
from holdfast.estimators.printed_summary import WIDTH, shortened
from holdfast.estimators.search.evidence import SquaredEvidence
from holdfast.estimators.summary import TableSummary


def _summary(x, y, codes, *, selected, varies, pooling=0.0, level="common"):
    within = level == "environment"
    known = standardized(collect_moments(x, y, group_rows(codes, len(x))), within=within)
    evidence, units = SquaredEvidence(known), known.scale[-1] / known.scale[:-1]
    strict, pooled = evidence.solve(np.flatnonzero(selected)), evidence.solve(np.arange(x.shape[1]))
    covariance = blended_covariance(evidence, strict, selected, pooled, pooling)
    tables = describe_effects(
        squared_effects(known, selected),
        (1 - pooling) * strict.coefficients + pooling * pooled.coefficients,
        standard_errors(covariance, len(x), 1 + x.shape[1]),
        selected=selected,
        varies=varies,
        names=[f"x{number}" for number in range(x.shape[1])],
        labels=sorted(set(codes)),
        units=units,
    )
    environments = len(set(codes))
    return TableSummary(tables.stability, "regression", len(x), environments, 0.5, 0.6, pooling, level)


def _simpson(seed=0):
    """Within each environment the effect is -1; between their means it is about 1."""
    random = np.random.default_rng(seed)
    codes = np.repeat([0, 1], 500)
    x = random.standard_normal((1000, 1)) + 4 * codes[:, None]
    return x, -x[:, 0] + 8 * codes + 0.5 * random.standard_normal(1000), codes


def test_a_coefficient_outside_of_the_range_of_its_environments_is_explained():
    one, none = np.ones(1, bool), np.zeros(1, bool)
    summary = _summary(*_simpson(), selected=one, varies=none)
    row = summary.table.loc["x0"]
    assert row["coefficient"] > 0 > -0.9 > row["highest_effect"]
    (note,) = (note for note in summary.notes if "outside" in note)
    assert "x0" in note
    assert "Simpson" in note
    assert 'level="environment"' in note
    # a fit that is all pooled is outside for the same reason
    (note,) = (
        note for note in _summary(*_simpson(), selected=none, varies=one, pooling=1.0).notes if "outside" in note
    )
    assert "Simpson" in note
    # each environment about its own mean: the pooled effect is that within environments
    within = _summary(*_simpson(), selected=one, varies=none, level="environment")
    assert within.table.loc["x0", "coefficient"] == pytest.approx(-1, abs=4 * 0.5 / np.sqrt(1000))
    assert not any("outside" in note for note in within.notes)


def test_what_varies_in_its_level_only_is_said_so():
    summary = _summary(*_simpson(), selected=np.zeros(1, bool), varies=np.ones(1, bool))
    assert summary.table.loc["x0", "significance"] > 0.05
    assert any("Varying although the effect within environments is the same: x0." in note for note in summary.notes)


def test_a_verdict_that_the_single_test_contradicts_is_explained():
    x, y, codes = _table()
    x[:, 2] = codes  # constant within environments
    summary = _summary(x, y, codes, selected=np.array([False, True, False]), varies=np.zeros(3, bool))
    assert summary.table.loc["x1", "significance"] < 0.01
    assert any(
        note.startswith("Selected, although the effect by itself") and ": x1. " in note for note in summary.notes
    )
    assert any(note.startswith("No environment identifies") and note.endswith(": x2.") for note in summary.notes)


def test_a_feature_whose_mean_hides_its_effects_is_in_doubt_with_one_intercept_and_left_out_with_several():
    """A consequence c_e y of the response, with a mean that moves from one environment to the next as c_e does.

    About the common mean its gradient is that of its level, which the response does not follow in any environment, so
    that one intercept does not see that the effects within environments differ.
    """
    random = np.random.default_rng(6)
    environments = np.repeat(list("nesw"), 250)
    causes = random.normal([8, 5, 3], [2, 1.5, 1], (1000, 3))
    y = 10 + causes @ [3, 4, 2] + random.normal(0, 5, 1000)
    fruits = np.repeat([0.3, 0.2, 0.1, 0.05], 250) * y + random.normal(0, 1.5, 1000)
    x = pd.DataFrame(np.column_stack([causes, fruits]), columns=["light", "water", "nitrogen", "fruits"])
    common = HeteroRegressor().fit(x, y, environments=environments)
    assert common.invariant_[3]
    assert common.stability_.loc["fruits", "significance"] < 0.001
    (sentence,) = (one for one in common.advice_ if one.startswith("Selected, although"))
    assert "fruits" in sentence
    assert 'level="environment"' in sentence
    assert sentence in common.summary().notes
    within = HeteroRegressor(level="environment").fit(x, y, environments=environments)
    assert within.invariant_.tolist() == [True, True, True, False]
    assert not any(one.startswith("Selected, although") for one in within.advice_)


def _table(seed=0):
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), 200)
    x = random.standard_normal((800, 3))
    return x, x[:, 0] + codes * x[:, 1] / 2 + random.standard_normal(800), codes


def test_the_table_is_of_fixed_width_and_its_numbers_are_those_of_the_frame():
    selected, varies = np.array([True, False, False]), np.array([False, True, False])
    summary = _summary(*_table(), selected=selected, varies=varies)
    lines = str(summary).splitlines()
    rules = [number for number, line in enumerate(lines) if set(line) == {"="}]
    body = lines[rules[0] : rules[1] + 1]
    assert max(map(len, lines)) == len(lines[rules[0]]) <= WIDTH
    assert len({len(line) for line in body if line.startswith(("x", "=", "-"))}) == 1
    words = {line.split()[0]: line.split() for line in body if line.startswith("x")}
    assert list(words) == ["x0", "x1", "x2"]
    row = summary.table.loc["x0"]
    low, high = (f"{row['coefficient'] + sign * 1.963 * row['standard_error']:.3g}" for sign in (-1, 1))
    assert words["x0"][1:5] == [f"{row['coefficient']:.3g}", f"{row['standard_error']:.3g}", low, high]
    assert words["x1"][1:5] == ["0", "-", "-", "-"]
    assert [words[name][-1] for name in words] == ["same", "varies", "needed"]
    assert f"{summary.table.loc['x1', 'i_squared']:.0%}" in words["x1"]
    page = summary._repr_html_()
    assert page.startswith("<p>Regression of y")
    assert all(f"<th>{name}</th>" in page for name in words)
    assert all(f"<td>{cell}</td>" in page for cell in words["x0"][1:5])


def test_a_blend_says_how_it_is_made():
    summary = _summary(*_table(), selected=np.array([True, False, False]), varies=np.zeros(3, bool), pooling=0.25)
    assert any("0.75 times" in note and "0.25 times" in note for note in summary.notes)
    assert (summary.table["standard_error"] > 0).all()


def test_one_environment_and_long_names():
    one, name = np.ones((1, 1)), "a name that is much longer than all " * 2
    own = OwnEffects(one, 0.1 * one, 30 * one)
    stability = describe_effects(
        own, one[0], 0.1 * one[0], selected=one[0] > 0, varies=one[0] < 0, names=[name], labels=["north"]
    ).stability
    text = str(TableSummary(stability, "classification", 50, 1, 0.5, 0.5))
    assert "only one environment" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_an_effect_that_one_environment_measures_is_not_the_same():
    random = np.random.default_rng(3)
    codes, x = np.repeat([0, 1, 2], 200), random.standard_normal((600, 2))
    x[200:, 1] = 1.0  # moves in the first environment alone
    y = x.sum(1) + random.standard_normal(600)
    summary = HeteroRegressor().fit(x, y, environments=codes).summary()
    assert summary.table["verdict"].to_dict() == {"x0": "same", "x1": "one environment only"}
    assert "one environment only" in str(summary)
    assert max(map(len, str(summary).splitlines())) <= 120


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
    assert summary.rows == 1
    assert summary.table[["standard_error", "low", "high", "effect", "between"]].isna().all(axis=None)
    assert not {"same", "varies"} & set(summary.table["verdict"])
    assert any("cannot be compared" in sentence for sentence in estimator.advice_)
    assert not any("do not differ" in sentence or "that change" in sentence for sentence in estimator.advice_)


def test_an_effect_that_no_environment_measures_cannot_be_compared():
    random = np.random.default_rng(0)
    x, codes = random.standard_normal((400, 2)), np.arange(400) % 20
    x[:, 1] = codes  # stands still within environments
    model = HeteroRegressor(pooling=0).fit(x, x.sum(1) + random.standard_normal(400), environments=codes)
    assert model.summary().table["verdict"].to_dict() == {"x0": "same", "x1": "cannot be compared"}


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
    note = next(sentence for sentence in model.summary().notes if "each row shows the one" in sentence)
    assert all(f"x{number}" in note for number in range(7))
    assert "may lie" in model.summary().notes[0]
    assert not any("Simpson" in sentence for sentence in model.summary().notes)
