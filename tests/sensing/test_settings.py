import re

import numpy as np
import pytest

from holdfast.sensing.settings import Settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step_size": -0.1}, "step_size must be a positive number, got -0.1"),
        ({"step_size": float("nan")}, "step_size must be a positive number, got nan"),
        ({"step_size": [0.1, 0.0]}, "step_size must be a positive number, got 0.0"),
        ({"step_size": []}, "step_size must hold at least one value"),
        ({"bias": float("inf")}, "bias must be a number between -1e12 and 1e12, got inf"),
        ({"dimension": 0}, "dimension must be a whole number of at least 1, got 0"),
        ({"dimension": 10.5}, "dimension must be a whole number of at least 1, got 10.5"),
        ({"invariant_rank": 101}, "invariant_rank + spurious_rank must be at most dimension, got 101 + 1 > 100"),
        ({"overlap": 1.1}, "overlap must be a number from 0 to 1, got 1.1"),
        ({"condition_number": 0.5}, "condition_number must be a number of at least 1, got 0.5"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"steps": -1}, "steps must be a whole number of at least 0, got -1"),
        ({"seeds": True}, "seeds must be a whole number of at least 1, got True"),
        ({"seed": -1}, "seed must be a whole number from 0 to 2^32 - 1, got -1"),
        ({"seed": 2**32 - 1}, "seed + seeds must be at most 2^32"),
        ({"batching": "mixed"}, "batching must be one of hetero, pooled, full, got 'mixed'"),
        ({"oracle": "population", "noise_variance": 1.0}, "noise_variance must be 0 with the population oracle"),
        ({"oracle": "data", "batch_size": [10, 20]}, "batch_size must be one number"),
        ({"bias": 1e30}, "bias must be a number between -1e12 and 1e12, got 1e+30"),
        ({"dimension": (10, 20)}, "dimension must be one number, got (10, 20)"),
        ({"independent": "no"}, "independent must be True or False, got 'no'"),
        ({"off_diagonal": 1.0}, "off_diagonal must be 0 for spurious_rank 1"),
        ({"oracle": "population", "batch_size": [10, 20]}, "batch_size must be one number"),
        ({"replacement": True}, "replacement needs a fixed data set"),
        ({"samples_per_environment": 10}, "samples_per_environment needs the data oracle"),
        ({"samples_per_environment": 0, "oracle": "data"}, "samples_per_environment must be a whole number"),
        ({"init_scale": 2.0}, "init_scale must be a positive number of at most 1, got 2.0"),
        ({"width": 0}, "width must be a whole number of at least 1, got 0"),
        ({"width": (1, 2), "invariant_rank": 2}, "width must be from invariant_rank = 2 to dimension = 100, got 1"),
        ({"width": 101}, "width must be from invariant_rank = 1 to dimension = 100, got 101"),
        ({"samples_per_environment": 9, "oracle": "data", "bias": [1.0, 2.0]}, "bias must be one number"),
    ],
)
def test_bad_settings_name_the_argument_the_value_and_what_is_allowed(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings(**changes)


def test_numbers_of_numpy_are_welcome():
    settings = Settings(dimension=np.int64(5), step_size=np.float32(0.5), heterogeneity=np.linspace(1, 3, 3))
    assert (settings.dimension, settings.step_size, settings.heterogeneity) == (5, 0.5, (1.0, 2.0, 3.0))
    assert type(settings.dimension) is int


def test_sequences_become_axes_in_the_order_of_the_settings():
    settings = Settings(bias=[0.5, 1.0], step_size=(0.1,))
    assert settings.axes == {"step_size": (0.1,), "bias": (0.5, 1.0)}
    assert hash(settings) == hash(Settings(**settings.asdict()))
