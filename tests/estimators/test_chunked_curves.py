"""Curves of tables in chunks, in files and on Dask are those of the same table in one piece."""

import dask
import numpy as np
import pandas as pd
import pytest

from estimators.chunked import agree, cut
from holdfast.estimators import HeteroSplineRegressor, fit_table
from holdfast.tables import TableModel


def curved(rows, seed=0):
    """y = x0^2 + x1 + noise, in environments whose rows lie elsewhere; x2 is a consequence of y that varies."""
    random = np.random.default_rng(seed)
    sites = random.choice(["hill", "plain", "shore"], rows)
    where = pd.Series(sites).map({"hill": -1.0, "plain": 0.0, "shore": 1.0}).to_numpy()
    x = random.standard_normal((rows, 2)) + where[:, None]
    y = x[:, 0] ** 2 + x[:, 1] + random.standard_normal(rows)
    frame = pd.DataFrame(x, columns=["x0", "x1"])
    return frame.assign(x2=(1.5 + where) * y + random.standard_normal(rows), site=sites, y=y)


def test_curves_do_not_depend_on_partitions(monkeypatch):
    """Of fewer rows than are sampled, and of more: on Dask, in chunks, in files, in one piece."""
    frame = curved(3000)
    inputs, cuts = frame[["x0", "x1", "x2"]], [10, 10, 1900]
    parts = np.split(np.arange(len(frame)), cuts)
    chunks = [(inputs.iloc[part], frame["y"].iloc[part], frame["site"].iloc[part]) for part in parts]
    for most in (1 << 17, 1000):
        monkeypatch.setattr("holdfast.estimators.spline.SAMPLED_ROWS", most)
        whole = HeteroSplineRegressor().fit(inputs, frame["y"], environments=frame["site"])
        assert whole.invariant_.tolist() == [True, True, False]
        assert whole.expansion_.curved_.tolist()[:2] == [True, False]
        with dask.config.set(scheduler="synchronous"):
            table = cut(frame, cuts)
            on_dask = HeteroSplineRegressor().fit(table[["x0", "x1", "x2"]], table["y"], environments=table["site"])
            predicted = on_dask.predict(table[["x0", "x1", "x2"]]).compute()
        assert on_dask.passes_ == 3
        np.testing.assert_allclose(predicted, whole.predict(inputs), rtol=1e-8, atol=1e-8)
        for found in (on_dask, HeteroSplineRegressor().fit_chunks(chunks)):
            assert (found.advice_, found.notes_) == (whole.advice_, whole.notes_)
            assert found.feature_names_in_.tolist() == ["x0", "x1", "x2"]
            np.testing.assert_allclose(found.regressor_.coef_, whole.regressor_.coef_, rtol=1e-7, atol=1e-9)
            for one, other in zip(found.curves_["x0"], whole.curves_["x0"], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_curves_of_files_are_those_of_the_estimator(tmp_path):
    """Two ways to the same model: by its file, whose columns have knots, and by the estimator of an array."""
    frame = curved(3000)
    for number, part in enumerate(np.split(np.arange(len(frame)), [1000, 1300])):
        frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet", row_group_size=400)
    found = fit_table(tmp_path / "*.parquet", "y", "site", effects="auto", chunk_rows=700)
    assert found.estimator.passes_ == 3
    expected = HeteroSplineRegressor(interactions=False).fit(
        frame[["x0", "x1", "x2"]].to_numpy(), frame["y"], environments=frame["site"]
    )
    assert expected.invariant_.tolist() == [True, True, False]
    found.model.save(tmp_path / "model.json")
    loaded = TableModel.load(tmp_path / "model.json")
    assert [bool(column.knots) for column in loaded.columns] == expected.expansion_.curved_.tolist()
    wide = frame[["x0", "x1", "x2"]] * 2  # beyond the outer knots, too
    np.testing.assert_allclose(loaded.predict(wide)["prediction"], expected.predict(wide.to_numpy()), rtol=1e-7)
    with dask.config.set(scheduler="synchronous"):
        again = fit_table(cut(frame, [0, 700, 701]), "y", "site", effects="auto", schema=loaded)
    assert again.estimator.passes_ == 2
    agree(again.model, fit_table(frame, "y", "site", effects="auto").model)


def test_curves_go_with_categories_and_missing_values():
    """The levels of a category stay together, an indicator belongs to its column, and a gap costs one pass more."""
    frame = curved(3000)
    random = np.random.default_rng(1)
    frame["soil"] = random.choice(["clay", "sand", "silt"], len(frame), p=[0.6, 0.3, 0.1])
    frame["y"] += frame["soil"].map({"clay": 0.0, "sand": 1.0, "silt": -1.0})
    frame["age"] = random.gamma(2.0, size=len(frame))
    frame.loc[random.random(len(frame)) < 0.2, "age"] = np.nan
    found = fit_table(frame, "y", "site", effects="auto", pooling=0.0)
    assert found.estimator.passes_ == 4
    with dask.config.set(scheduler="synchronous"):
        on_dask = fit_table(cut(frame, [100, 2000]), "y", "site", effects="auto", pooling=0.0, chunk_rows=500)
    agree(on_dask.model, found.model)
    assert on_dask.estimator.passes_ == 4
    verdicts = {record["feature"]: record["selected"] for record in found.model.relations}
    assert verdicts == {
        **{"x0": True, "x1": True, "x2": False, "soil=sand": True, "soil=silt": True},
        **{"age": False, "age is missing": False},
    }
    with pytest.raises(ValueError, match="effects must be linear for a classification, got 'auto'"):
        fit_table(frame, "soil", "site", effects="auto")


def test_chunks_that_can_be_read_once_are_refused():
    with pytest.raises(ValueError, match="chunks must be something that can be read twice, such as a list, got gen"):
        HeteroSplineRegressor().fit_chunks((np.eye(2), np.ones(2)) for _ in range(2))
