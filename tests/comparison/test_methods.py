import random

import numpy as np
import pytest

from holdfast.comparison import METHODS
from holdfast.comparison.methods.base import environment_errors
from holdfast.comparison.recorded import recorded_error
from holdfast.datasets import linear_unit_test


def test_draws_are_those_of_the_published_code():
    from holdfast.comparison.methods.explicit import AgreementMask, _mask, draws

    chosen = draws(AgreementMask, _mask)
    assert len(chosen) == 20
    assert chosen[0] == AgreementMask(threshold=0.9, step_size=1e-3, weight_decay=0.0)
    random.seed(1007)
    expected = (10 ** random.uniform(-4, 0), 10 ** random.uniform(-5, 0), random.uniform(0.8, 1))
    assert (chosen[7].step_size, chosen[7].weight_decay, chosen[7].threshold) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("test", "method"), [("Example2", "average_risk"), ("Example3", "and_mask_standardized")])
def test_recorded_cells_are_what_the_package_computes(test, method):
    dataset = linear_unit_test(test, 1)
    fitted = METHODS[method].fit(dataset, 1)
    error = environment_errors(fitted.predict(dataset.test.inputs), dataset.test, dataset.kind).mean()
    assert np.isclose(error, recorded_error(test, method, 1), atol=2e-3)


@pytest.mark.parametrize("test", ["Example1", "Example2"])
def test_many_data_sets_at_once_give_what_each_gives_by_itself(test, monkeypatch):
    monkeypatch.setattr("holdfast.comparison.methods.explicit.STEPS", 30)
    data_sets = [linear_unit_test(test, seed) for seed in (0, 1)]
    for name in ("fish", "irm_standardized"):
        together = METHODS[name].fit_all(data_sets, [0, 1])
        for seed, (data_set, fitted) in enumerate(zip(data_sets, together, strict=True)):
            alone = METHODS[name].fit(data_set, seed)
            assert fitted.choice == alone.choice
            np.testing.assert_allclose(fitted.coefficients, alone.coefficients, rtol=1e-4, atol=1e-5)
