import pytest

from holdfast.comparison import compare


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three methods on two tests with two seeds, and the folder in which they are cached."""
    out = tmp_path_factory.mktemp("compare")
    return compare(("toy_1_1", "Example2"), ("oracle", "least_squares", "irm"), data_seeds=2, out=out), out
