import numpy as np
import pandas as pd
import pytest

from estimators.relation_tables import (
    cause_and_consequence,
    found_relations,
    known_moments,
    shifted_rows,
    standard_units_of,
    textbook_regression,
    within_environments,
)
from holdfast.estimators import HeteroClassifier, HeteroRegressor, HeteroSelector, HeteroSplineRegressor
from holdfast.estimators.directions import (
    WithinEnvironments,
)
from holdfast.estimators.relations import _Pooled

NUMBERS = [
    "effect",
    "between",
    "reverse",
    "reverse_between",
    "reliance",
    "price",
    "forward_loss",
    "reverse_loss",
    "danger",
]


def test_the_table_has_the_units_of_the_rows():
    """The reverse slope is of the feature on the response, the effect of the response on the feature."""
    x, y, codes = shifted_rows()
    plain, other = (
        HeteroRegressor().fit(a, b, environments=codes).relations_ for a, b in ((x, y), (x * [1, 10, 1, 1] + 3, 5 * y))
    )
    for column in ("effect", "between", "detectable", "low", "high"):
        np.testing.assert_allclose(other[column], 5 * plain[column] / [1, 10, 1, 1], rtol=1e-6, atol=1e-12)
    for column in ("reverse", "reverse_between"):
        np.testing.assert_allclose(other[column], plain[column] * [1, 10, 1, 1] / 5, rtol=1e-6, atol=1e-12)
    for column in ("danger", "reverse_loss", "forward_loss", "price", "reliance", "reverse_significance"):
        np.testing.assert_allclose(other[column], plain[column], rtol=1e-6, atol=1e-9)
    assert other["verdict"].tolist() == plain["verdict"].tolist()
    own = [
        textbook_regression(x[codes == code, 0], np.column_stack([y, x[:, 1:]])[codes == code])[0][0]
        for code in range(3)
    ]
    assert min(own) < plain["reverse"].iloc[0] < max(own)


def test_the_loss_of_a_reverse_slope_is_that_of_rows_in_which_it_moved():
    """x_j + d y has a reverse slope larger by d, and every other relation as it was."""
    x, y, codes = shifted_rows()
    known = known_moments(x, y, codes)
    table = WithinEnvironments.of(known, known.covariances)
    spread, mean = np.array([0.1, 0.05, 0.2, 0.3]), np.array([1.0, -1.0, -1.0, 1.0])
    found = _Pooled.of(known, table).reverse_loss(spread, mean)
    z, t = standard_units_of(x, y)
    rows = within_environments(z, t, codes)
    w = np.linalg.lstsq(z, t)[0]
    before = np.sum((rows[:, -1] - rows[:, :-1] @ w) ** 2)
    for feature in range(4):
        moved, step = rows.copy(), -mean[feature] * 2.5 * spread[feature]
        moved[:, feature] += step * rows[:, -1]
        loss = np.sum((moved[:, -1] - moved[:, :-1] @ w) ** 2) / before - 1
        assert found[feature] == pytest.approx(max(loss, 0.0), rel=1e-9, abs=1e-12)
    assert (found > 0).any()
    # that this is a move of the slope, and of nothing else
    moved = np.column_stack([z[:, 0] + 0.3 * t, z[:, 1:]])
    other = np.column_stack([t, z[:, 1:]])
    np.testing.assert_allclose(
        textbook_regression(moved[:, 0], other)[0] - textbook_regression(z[:, 0], other)[0], [0.3, 0, 0, 0], atol=1e-12
    )


def test_a_table_loses_what_the_reverse_loss_of_another_table_says():
    """Strengths of a consequence in the next environment: 2.5 standard deviations below their mean."""
    x, y, codes = cause_and_consequence(rows=5000)
    found = found_relations(x, y, codes)
    w = np.linalg.lstsq(*standard_units_of(x.to_numpy(), y))[0]
    strengths = np.linspace(0.2, 1.2, 6)
    random = np.random.default_rng(1)
    cause = np.linspace(0.5, 2.0, 6)[codes] * random.standard_normal(len(codes))
    effect = cause + random.standard_normal(len(codes))
    noise = 0.6 * random.standard_normal(len(codes))
    # the strength belongs to the given cause: follower = strength y + noise has the reverse slope strength
    far = strengths[codes] - 2.5 * strengths.std(ddof=1)
    units = np.append(x.to_numpy().std(0), y.std())
    losses = []
    for strength in (strengths[codes], far):
        z = np.column_stack([cause, strength * effect + noise]) / units[:2]
        rows = within_environments(z, effect / units[2], codes)
        losses.append(np.mean((rows[:, -1] - rows[:, :-1] @ w) ** 2))
    # between is estimated without sampling error; 30,000 rows leave a few percent
    assert found.reverse_loss[1] == pytest.approx(losses[1] / losses[0] - 1, rel=0.1)


def test_reliance_is_the_loss_by_a_permutation():
    """The mean over all cyclic shifts of an environment, in which a row meets each other row once."""
    x, y, codes = shifted_rows(sizes=(60, 40, 30))
    found, (z, t) = found_relations(x, y, codes), standard_units_of(x, y)
    rows, w = within_environments(z, t, codes), np.linalg.lstsq(z, t)[0]
    for feature in range(4):
        before = after = 0.0
        for code in range(3):
            own = rows[codes == code]
            before += np.sum((own[:, -1] - own[:, :-1] @ w) ** 2)
            shifted = own[:, :-1] * np.ones((len(own), 1, 1))
            shifted[:, :, feature] = [np.roll(own[:, feature], shift) for shift in range(len(own))]
            after += np.sum((own[:, -1] - shifted @ w) ** 2) / len(own)
        assert found.reliance[feature] == pytest.approx(max(after / before - 1, 0.0), rel=1e-9)


def test_the_price_is_that_of_another_fit_without_the_feature():
    x, y, codes = shifted_rows()
    found = found_relations(x, y, codes)
    for feature in range(4):
        errors = []
        for columns in (np.arange(4), np.delete(np.arange(4), feature)):
            design = np.column_stack([x[:, columns], np.ones(len(y))])
            errors.append(np.sum((y - design @ np.linalg.lstsq(design, y)[0]) ** 2))
        assert found.price[feature] == pytest.approx(errors[1] / errors[0] - 1, rel=1e-5)


def test_a_cause_holds_and_a_consequence_is_dangerous():
    """Eight tables, with rows enough to tell; of few rows, the cause is not accused, though it may be in doubt."""
    for seed in range(8):
        x, y, codes = cause_and_consequence(seed)
        few = HeteroRegressor().fit(x, y, environments=codes).relations_["verdict"]
        assert few["dose"] in ("holds", "cannot be told")
        assert few["marker"] == "dangerous"
        x, y, codes = cause_and_consequence(seed, rows=10_000)
        model = HeteroRegressor().fit(x, y, environments=codes)
        assert model.relations_["verdict"].to_dict() == {"dose": "holds", "marker": "dangerous"}
        assert model.relations_["rank"].to_dict() == {"dose": 2, "marker": 1}
        # the reverse slope of the cause changes, so that this direction alone would accuse it
        assert model.relations_.loc["dose", "reverse_significance"] < 1e-6
        assert model.strict_coef_[1] == 0


def test_equal_relations_hold_in_both_directions():
    random = np.random.default_rng(0)
    codes, x = np.repeat(np.arange(20), 5000), random.standard_normal((100_000, 2))
    y = x[:, 0] + random.standard_normal(100_000)
    x[:, 1] = 0.8 * y + random.standard_normal(100_000)
    for settings in ({}, {"after": [1]}, {"before": [0], "after": [1]}):
        model = HeteroRegressor(**settings).fit(x, y, environments=codes)
        assert model.relations_["verdict"].tolist() == ["holds", "holds"]
        # declared after the response, but shown to hold: it is kept
        np.testing.assert_allclose(model.coef_, textbook_regression(y, x)[0], rtol=1e-6)


@pytest.mark.parametrize("after", [["marker"], [1], "marker", np.array([1]), pd.Index(["marker"])])
def test_what_comes_after_and_does_not_hold_is_left_out(after):
    x, y, codes = cause_and_consequence()
    model = HeteroRegressor(after=after, pooling=1).fit(x, y, environments=codes)
    assert model.coef_[1] == model.pooled_coef_[1] == model.strict_coef_[1] == 0
    assert model.coef_[0] == pytest.approx(textbook_regression(y, x[["dose"]])[0][0], rel=1e-9)
    assert model.findings_.dropped.tolist() == [False, True]
    assert any("it is left out" in sentence for sentence in model.advice_)
    assert not any(sentence.startswith("Could marker") for sentence in model.advice_)
    assert any(note.startswith("Left out, since after y") for note in model.notes_)


def test_what_comes_before_is_judged_by_its_effect():
    x, y, codes = cause_and_consequence()
    free, declared = (
        HeteroRegressor(before=before).fit(x, y, environments=codes).relations_ for before in ([], ["marker", "dose"])
    )
    np.testing.assert_array_equal(declared["danger"], declared["forward_loss"])
    np.testing.assert_array_equal(
        free["danger"], np.where(free["verdict"] == "holds", free["forward_loss"], free["reverse_loss"])
    )
    assert declared.loc["marker", "verdict"] == "dangerous"
    assert declared.loc["marker", "forward_loss"] > 0.1 > 0.05 > declared.loc["dose", "forward_loss"]


def test_columns_that_come_after_are_judged_by_their_slope():
    x, y, codes = cause_and_consequence()
    found = HeteroRegressor(after=["dose"]).fit(x, y, environments=codes).relations_
    assert found.loc["dose", "danger"] == found.loc["dose", "reverse_loss"]
    assert found.loc["dose", "verdict"] == "dangerous"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"before": ["dosis"]}, r"before must hold names or numbers of features \(dose, marker\), got 'dosis'"),
        ({"after": [2]}, "after must hold names or numbers .*, got 2"),
        ({"after": [-1]}, "after must hold names or numbers .*, got -1"),
        ({"after": [True]}, "after must hold names or numbers .*, got True"),
        ({"after": 1.5}, "after must hold names or numbers .*, got 1.5"),
        (
            {"before": ["dose", 1], "after": ["marker"]},
            "before and after must not share a feature, got 'marker' in both",
        ),
        ({"before": ["dose"], "rotation": True}, "before and after must be empty with rotation=True"),
    ],
)
def test_other_declarations_are_refused(settings, message):
    x, y, codes = cause_and_consequence(rows=50)
    with pytest.raises(ValueError, match=message):
        HeteroRegressor(**settings).fit(x, y, environments=codes)


def test_a_group_is_declared_by_its_label_and_left_out_whole_with_its_products():
    x, y, codes = cause_and_consequence()
    random = np.random.default_rng(3)
    table = np.column_stack([x, random.standard_normal(len(y)), x["dose"] * x["marker"]])
    groups = ["cause", "late", "late", ("cause", "late")]
    for after in (["late"], [1]):
        model = HeteroRegressor(groups=groups, after=after, pooling=1).fit(table, y, environments=codes)
        np.testing.assert_array_equal(model.coef_[1:], 0.0)
        assert model.coef_[0] == pytest.approx(textbook_regression(y, x[["dose"]])[0][0], rel=1e-9)


def test_class_means_have_no_before_and_after():
    x, y, codes = cause_and_consequence()
    labels = y > 0
    with pytest.raises(ValueError, match=r"before and after must be empty for invariance=.class_means."):
        HeteroClassifier(invariance="class_means", after=["marker"]).fit(x, labels, environments=codes)
    model = HeteroClassifier(after=["marker"]).fit(x, labels, environments=codes)
    assert model.invariance_ == "effects"
    assert model.coef_[0, 1] == 0


def test_of_three_classes_what_comes_after_is_left_out_of_all_scores():
    x, y, codes = cause_and_consequence(environments=3, rows=300)
    model = HeteroClassifier(after=["marker"], invariance="effects").fit(x, np.digitize(y, [-1, 1]), environments=codes)
    np.testing.assert_array_equal(model.coef_[:, 1], 0.0)
    assert (model.coef_[:, 0] != 0).any()
    assert sorted(model.relations_["rank"]) == [1, 2]


@pytest.mark.parametrize("estimator", [HeteroSplineRegressor, HeteroSelector])
def test_curves_and_products_of_what_comes_after_are_left_out(estimator):
    x, y, codes = cause_and_consequence(environments=4, rows=300)
    y = y + 0.5 * x["dose"].to_numpy() ** 2
    model = estimator(after=["marker"], effects="smooth", interactions=True, knots=5).fit(x, y, environments=codes)
    assert model.relations_["verdict"]["marker"] != "holds"
    assert sorted(model.relations_["rank"]) == [1, 2]
    assert not model.invariant_[1]
    if estimator is HeteroSplineRegressor:
        np.testing.assert_allclose(model.predict(x), model.predict(x.assign(marker=7.0)), atol=1e-9)
    with pytest.raises(ValueError, match="after must hold names or numbers"):
        estimator(after=["follower"]).fit(x, y, environments=codes)


def test_a_weight_of_two_is_a_row_twice():
    x, y, codes = shifted_rows()
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = HeteroRegressor().fit(x, y, environments=codes, sample_weight=weights).relations_
    again = [np.repeat(part, weights, axis=0) for part in (x, y, codes)]
    repeated = HeteroRegressor().fit(*again[:2], environments=again[2]).relations_
    np.testing.assert_allclose(weighted[NUMBERS], repeated[NUMBERS], rtol=1e-6, atol=1e-9)
    assert weighted["verdict"].tolist() == repeated["verdict"].tolist()
    labels = y > np.median(y)
    weighted = HeteroClassifier(invariance="effects").fit(x, labels, environments=codes, sample_weight=weights)
    repeated = HeteroClassifier(invariance="effects").fit(again[0], again[1] > np.median(y), environments=again[2])
    np.testing.assert_allclose(weighted.relations_[NUMBERS], repeated.relations_[NUMBERS], rtol=1e-5, atol=1e-7)


def test_chunks_and_partitions_have_the_same_relations():
    dask = pytest.importorskip("dask.dataframe")
    x, y, codes = cause_and_consequence(rows=200)
    whole = HeteroRegressor(after=["marker"]).fit(x, y, environments=codes).relations_
    order = np.random.default_rng(0).permutation(len(y))
    chunks = [(x.iloc[part], y[part], codes[part]) for part in np.array_split(order, 5)]
    frame = dask.from_pandas(x.assign(y=y, place=codes), npartitions=3)
    parted = HeteroRegressor(after=["marker"]).fit(frame[["dose", "marker"]], frame["y"], environments=frame["place"])
    for other in (HeteroRegressor(after=["marker"]).fit_chunks(chunks), parted):
        pd.testing.assert_frame_equal(other.relations_, whole, rtol=1e-7, atol=1e-9, check_dtype=False)


def test_rotated_features_have_relations_of_their_coordinates():
    x, y, codes = shifted_rows()
    model = HeteroRegressor(rotation=True, pooling=0).fit(x, y, environments=codes)
    assert len(model.relations_) == model.directions_.shape[1]
    assert sorted(model.relations_["rank"]) == list(range(1, len(model.relations_) + 1))


def test_one_environment_tells_nothing():
    x, y, _ = cause_and_consequence()
    model = HeteroRegressor().fit(x, y)
    assert model.relations_["verdict"].tolist() == ["cannot be told"] * 2
    assert model.relations_[["between", "reverse_between", "reverse_significance", "detectable"]].isna().all(axis=None)
    np.testing.assert_allclose(model.relations_["effect"], textbook_regression(y, x)[0], rtol=1e-6)
    assert "nothing is known" in model.advice_[0]
    # what is declared to come after has not been shown to hold either
    assert HeteroRegressor(after=["marker"]).fit(x, y).coef_[1] == 0


def test_a_constant_column_changes_nothing_for_the_others():
    x, y, codes = cause_and_consequence()
    plain = HeteroRegressor().fit(x, y, environments=codes).relations_
    other = HeteroRegressor().fit(x.assign(site=3.0), y, environments=codes).relations_
    np.testing.assert_allclose(other.loc[["dose", "marker"], NUMBERS], plain[NUMBERS], rtol=1e-4, atol=1e-6)
    assert other["verdict"].to_dict() == {"dose": "holds", "marker": "dangerous", "site": "cannot be told"}
    assert other.loc["site", ["reliance", "price", "danger"]].tolist() == pytest.approx([0, 0, 0], abs=1e-6)


def test_environments_with_fewer_rows_than_features_share_what_the_other_features_say():
    """With 12 rows in each of 60 environments, the consequence among 20 features still has the largest danger."""
    random = np.random.default_rng(0)
    codes, x = np.repeat(np.arange(60), 12), random.standard_normal((720, 20))
    y = x[:, :3].sum(1) + random.standard_normal(720)
    x[:, 10] = random.uniform(-0.5, 2.5, 60)[codes] * y + 0.3 * random.standard_normal(720)
    found = found_relations(x, y, codes)
    assert np.isfinite(found.danger).all()
    assert found.order[0] == 10
    assert found.reverse.significance[10] < 1e-10
    # the noise features: slopes are not significant more often than chance allows, at the level of 1 % for 16 of them
    noise = np.setdiff1d(np.arange(3, 20), 10)
    assert (found.reverse.significance[noise] > 0.01 / 16).all()


def test_perfectly_collinear_columns_are_survived():
    x, y, codes = shifted_rows()
    found = HeteroRegressor().fit(np.column_stack([x, x[:, 0] + x[:, 1]]), y, environments=codes).relations_
    assert found[["danger", "price", "reliance"]].notna().all(axis=None)
    np.testing.assert_allclose(found["price"].iloc[[0, 1, 4]], 0.0, atol=1e-4)


def test_differences_of_classes_hold_if_they_cannot_lose_half():
    random = np.random.default_rng(0)
    codes, y = np.repeat(np.arange(8), 2000), random.integers(0, 2, 16_000)
    shift = np.column_stack([np.ones(8), np.linspace(-0.5, 2.5, 8)])[codes]
    x = random.standard_normal((16_000, 2)) + y[:, None] * shift
    model = HeteroClassifier(invariance="class_means").fit(x, y, environments=codes)
    found = model.relations_
    assert found["verdict"].tolist() == ["holds", "dangerous"]
    np.testing.assert_allclose(found["danger"], 2.5 * found["between"] / found["effect"].abs(), rtol=1e-9)
    assert found["rank"].tolist() == [2, 1]
