import sys
from pathlib import Path

import numpy as np
import pytest

from holdfast.datasets import bundled_digits
from holdfast.datasets.coloured_digits import read_mnist
from holdfast_studies.comparison import compare

# The scripts that recompute what is recorded, which import each other.
sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "coloured_mnist"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three methods on two tests with two seeds, and the folder in which they are cached."""
    out = tmp_path_factory.mktemp("compare")
    return compare(("toy_1_1", "Example2"), ("oracle", "least_squares", "irm"), data_seeds=2, out=out), out


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory):
    """A folder with the bundled digits, enlarged and written as the IDX files of MNIST."""
    folder = tmp_path_factory.mktemp("mnist")
    images, digits = bundled_digits()
    large = np.kron(images[:, :7, :7], np.ones((4, 4)))
    for part, rows in (("train", slice(1500)), ("t10k", slice(1500, None))):
        _write_idx(folder / f"{part}-images-idx3-ubyte", np.round(255 * large[rows]))
        _write_idx(folder / f"{part}-labels-idx1-ubyte", digits[rows])
    assert np.allclose(read_mnist(folder).images, large, atol=1 / 255)
    return folder


def _write_idx(path, values):
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    path.write_bytes(head + values.astype(np.uint8).tobytes())
