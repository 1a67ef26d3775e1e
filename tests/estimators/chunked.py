"""Tables that are cut, and models of them that agree."""

import dask.dataframe as dd
import numpy as np
import pandas as pd

ROWS = 600
# Sums in another order differ by about 1e-16 of their size times the root of their number; the fit makes it no larger
# than by the condition of its normal equations, which is below 1e3 here.
RELATIVE = 1e-10


def agree(found, expected):
    """All numbers of two models, and all words."""
    assert found.classes == expected.classes
    assert found.notes == expected.notes
    assert (found.advice, found.notes) == (expected.advice, expected.notes)
    assert found.columns == expected.columns
    assert found.rows == expected.rows
    for name in ("coefficients", "intercepts"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=RELATIVE, atol=1e-12)
    assert [each.environment for each in found.effects] == [each.environment for each in expected.effects]
    effects = [np.array([list(each.effects.values()) for each in model.effects], float) for model in (found, expected)]
    np.testing.assert_allclose(*effects, rtol=1e-9, atol=1e-9 * np.nanmax(np.abs(effects[1])))


def cut(frame, cuts):
    """A Dask data frame of these partitions, some of which may be empty."""
    parts = np.split(np.arange(len(frame)), sorted(cuts))
    return dd.from_map(frame.iloc.__getitem__, parts, meta=frame.iloc[:0])


def plants_table():
    """Numbers, categories, dates, missing values; a consequence of the response that differs between sites."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"light": random.standard_normal(ROWS) + 1e3, "water": random.exponential(size=ROWS)})
    frame["soil"] = random.choice(["clay", "sand", "silt"], ROWS, p=[0.6, 0.3, 0.1])
    frame["day"] = pd.date_range("2019-03-01", periods=ROWS, freq="D")[random.permutation(ROWS)]
    frame["site"] = random.choice(["field 10", "field 9", "field 1"], ROWS)
    frame["age"] = random.gamma(2.0, size=ROWS)
    grown = frame["light"] + 2 * frame["water"] + (frame["soil"] == "sand") + random.standard_normal(ROWS)
    frame["wilted"] = grown * np.where(frame["site"] == "field 1", 2.0, 0.5) + random.standard_normal(ROWS)
    frame["grown"] = grown
    frame["tall"] = np.select([grown < 1001, grown < 1003], ["low", "middle"], "high")
    frame.loc[random.random(ROWS) < 0.2, "water"] = np.nan
    frame.loc[random.random(ROWS) < 0.01, "site"] = None
    return frame.sort_values("grown", ignore_index=True)  # chunks lie far apart, and lack classes
