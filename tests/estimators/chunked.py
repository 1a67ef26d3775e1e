"""Tables that are cut, and models of them that agree."""

import dask.dataframe as dd
import numpy as np

# Sums in another order differ by about 1e-16 of their size times the root of their number; the fit makes it no larger
# than by the condition of its normal equations, which is below 1e3 here.
RELATIVE = 1e-10


def agree(found, expected):
    """All numbers of two models, and all words."""
    assert found.classes == expected.classes
    assert found.notes == expected.notes
    assert found.advice == expected.advice
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
