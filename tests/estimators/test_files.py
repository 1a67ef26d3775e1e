"""Tables in files: what a fit reports on the way, and what it does with missing values."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression

from holdfast.estimators import HeteroClassifier, HeteroRegressor, HeteroSelector, HeteroSplineRegressor
from holdfast.estimators.baselines import PooledClassifier
from holdfast.estimators.files import fit_table, held_out_table
from holdfast.estimators.held_out import held_out_errors


@pytest.fixture(scope="module")
def plants():
    random = np.random.default_rng(0)
    light, water = random.standard_normal((2, 900))
    grown = light + water + random.standard_normal(900)
    sites = np.repeat(["hill", "shore", "wood"], 300)
    return pd.DataFrame({"light": light, "water": water, "grown": grown, "site": sites})


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather"])
@pytest.mark.parametrize("target", ["grown", "tall"])
def test_progress_of_a_fit_rises_to_the_end(plants, tmp_path, suffix, target):
    frame = plants.assign(tall=np.where(plants["grown"] > 0, "yes", "no")).drop(columns={"grown", "tall"} - {target})
    path = tmp_path / f"plants{suffix}"
    write = {".parquet": frame.to_parquet, ".feather": frame.to_feather}.get(suffix)
    write(path) if write else frame.to_csv(path, index=False)
    seen = []
    fit_table([path], target, "site", chunk_rows=100, progress=lambda *numbers: seen.append(numbers))
    done, totals = np.array(seen).T
    assert (totals == 100).all()
    assert (np.diff(done) >= 0).all()
    assert done[-1] == 100
    assert ((done > 0) & (done < 45)).any()  # the survey of the columns
    assert ((done > 70) & (done < 100)).any()  # the search


@pytest.mark.parametrize("estimator", [HeteroRegressor, HeteroClassifier, HeteroSplineRegressor, HeteroSelector])
def test_verbose_reports_the_search(plants, estimator):
    seen = []
    y = plants["grown"] > 0 if estimator is HeteroClassifier else plants["grown"]
    model = estimator(verbose=lambda *numbers: seen.append(numbers[0] / numbers[1]))
    model.fit(plants[["light", "water"]], y, environments=plants["site"])
    assert seen == sorted(seen)
    assert len(seen) > 5


def test_values_of_an_environment_that_is_held_out_are_not_imputed_from_it(plants, tmp_path):
    """The environments have different medians, so that imputing from all of them would change every error."""
    random = np.random.default_rng(1)
    water = plants["water"] + np.repeat([0.0, 5.0, 20.0], 300)
    frame = plants.assign(water=water.where(random.random(900) > 0.3))
    path = tmp_path / "plants.csv"
    frame.to_csv(path, index=False)
    found = held_out_table(path, "grown", "site", pooling=1)
    for site in ("hill", "shore", "wood"):
        test = (frame["site"] == site).to_numpy()
        imputer = SimpleImputer(strategy="median", add_indicator=True).fit(frame.loc[~test, ["light", "water"]])
        x, y = imputer.transform(frame[["light", "water"]]), frame["grown"].to_numpy()
        predicted = LinearRegression().fit(x[~test], y[~test]).predict(x[test])
        error = np.square(predicted - y[test]).mean()
        np.testing.assert_allclose(found.loc[site], error, rtol=1e-8)


@pytest.mark.parametrize("labels", [["short", "tall"], ["short", "medium", "tall"]])
def test_the_pooled_fit_of_classes_is_the_pooled_classifier_however_many_there_are(plants, tmp_path, labels):
    frame = plants.assign(grown=pd.qcut(plants["grown"], len(labels), labels=labels).astype(str))
    path = tmp_path / "plants.csv"
    frame.to_csv(path, index=False)
    found = held_out_table(path, "grown", "site", invariance="class_means")
    columns = (frame[["light", "water"]], frame["grown"], frame["site"])
    np.testing.assert_allclose(found["pooled"], held_out_errors({"pooled": PooledClassifier()}, *columns)["pooled"])


@pytest.mark.parametrize("target", ["grown", "tall"])
@pytest.mark.parametrize("chunk_rows", [100, 900])
def test_environments_stand_in_the_order_of_a_reader_wherever_their_rows_are(plants, target, chunk_rows):
    frame = plants.assign(tall=np.where(plants["grown"] > 0, "yes", "no"), site=np.tile(["10", "9", "2"], 300))
    frame = frame.drop(columns={"grown", "tall"} - {target})
    found = fit_table(frame, target, "site", chunk_rows=chunk_rows).model
    assert [each.environment for each in found.effects] == ["2", "9", "10"]
