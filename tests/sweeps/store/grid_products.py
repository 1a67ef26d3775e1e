"""A grid of products whose values are known, computed cell by cell."""

import numpy as np

from holdfast.core import CellResult
from holdfast.sweeps.store import Lease
from sweeps.store.grid_writer import computed


def fill(cells, function=computed):
    """Compute what is missing; returns how many cells that was."""
    count = 0
    for index in cells.missing():
        with cells.lease(index) as lease:
            assert lease is Lease.TAKEN
            cells.save(index, function(cells.settings(index), cells.block(index)))
        count += 1
    return count


def product(settings, seeds):
    return CellResult(
        {"product": settings["a"] * seeds, "label": np.array([f"{settings['b']}{seed}" for seed in seeds])}
    )


def check_products(data, a, b, seeds):
    """What `product` computes, at the labels and in the order that was asked for."""
    assert data["a"].values.tolist() == a
    assert data["b"].values.tolist() == b
    np.testing.assert_array_equal(data["product"], np.multiply.outer(np.outer(a, np.ones(len(b))), np.arange(seeds)))
    expected = [[[f"{each}{seed}" for seed in range(seeds)] for each in b] for _ in a]
    assert data["label"].values.tolist() == expected
    assert data["finished"].values.all()
