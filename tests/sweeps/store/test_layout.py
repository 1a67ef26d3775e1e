import json
from functools import partial

import numpy as np
import pytest

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.store.coordinates import read_values
from holdfast.sweeps.store.files import files_at
from holdfast.sweeps.store.layout import Axis, Layout


@pytest.mark.parametrize("seeds", [1, 7, 8, 9, 31, 32, 100])
def test_blocks_are_equal_and_as_few_as_possible(seeds):
    layout = Layout.of({}, seeds=seeds, most_seeds=8)
    blocks = [layout.block(index) for index in np.ndindex(*layout.shape)]
    assert len(blocks) == -(-seeds // 8)
    assert {len(block) for block in blocks} == {layout.seeds_per_cell}
    assert layout.seeds_per_cell <= 8
    np.testing.assert_array_equal(np.concatenate(blocks)[:seeds], np.arange(seeds))
    assert len(blocks) * layout.seeds_per_cell - seeds < layout.seeds_per_cell  # no block is all surplus


def test_a_layout_survives_json(tmp_path):
    axes = [
        Axis("a", {"a": (1.5, float("inf"))}),
        Axis("point", {"b": ("x", "y"), "c": (True, False), "d": (2**60, 1)}),
    ]
    layout = Layout.of(axes, seeds=3, most_seeds=2)
    plain = json.loads(json.dumps(layout.plain(), allow_nan=False))
    assert Layout.from_plain(plain, partial(read_values, files_at(tmp_path))) == layout


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"a": []}, "axis 'a' must have values"),
        ({"a": [1, 1.0]}, "values of 'a' must differ, got 1.0 twice"),
        ({"a": [1, "x"]}, "values of 'a' must be numbers, text or booleans, and not a mixture"),
        ({"a": [True, 2]}, "not a mixture"),
        ({"a": [None]}, "values of 'a' must be numbers"),
        ({"a": [float("nan")]}, "values of 'a' must be numbers, got nan"),
        ({"a": [2**64]}, "whole numbers of 64 bits"),
        ({"seed": [1]}, "none that is 'seed'"),
        ([Axis("a", {"a": (1,)}), Axis("b", {"a": (1,)})], "axes must have different names, .* got 'a' twice"),
        ([Axis("point", {"a": (1, 2), "b": (1,)})], r"as many of each setting, got \[1, 2\]"),
    ],
)
def test_axes_that_make_no_sense_are_refused(axes, message):
    with pytest.raises(ValueError, match=message):
        Layout.of(axes, seeds=1, most_seeds=1)


@pytest.mark.parametrize(("seeds", "most"), [(0, 1), (1, 0)])
def test_a_layout_has_seeds(seeds, most):
    with pytest.raises(ValueError, match="must be at least 1"):
        Layout.of({}, seeds=seeds, most_seeds=most)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "values must have one array"),
        (({"a": np.float64(1)},), "values must have one array"),
        (({"a": np.ones((2, 3))}, {"a": ()}), "dimensions must name the 1 dimensions of 'a'"),
        (({"a": np.ones((2, 3)), "b": np.ones((2, 4))}, {"a": ("x",), "b": ("x",)}), "'x' must have one size"),
        (({"a": np.ones((2, 3))}, {"a": ("x",)}, {"x": np.ones(4)}), r"coordinates must fit .* got shape \(4,\)"),
    ],
)
def test_values_and_their_dimensions_must_agree(arguments, message):
    with pytest.raises(ValueError, match=message):
        CellResult(*arguments)
