"""Without the folder of the kernel the library computes the same by XLA alone."""

import subprocess
import sys

import numpy as np

from holdfast import Settings
from holdfast.sensing import execute

ABSENT = """
import sys
sys.modules["holdfast.sensing.kernel"] = None  # any import of it, or of what is in it, fails
import numpy as np
from holdfast import Settings
from holdfast.sensing import execute
from holdfast.sweeps.store.naming import computed_by
assert computed_by().startswith("XLA on ")
np.save(sys.argv[1], execute(Settings(dimension=20, steps=20, every=10, seeds=2)).values["distance"])
"""


def test_a_simulation_without_the_kernel(tmp_path):
    path = tmp_path / "distance.npy"
    subprocess.run([sys.executable, "-c", ABSENT, str(path)], check=True)
    with_kernel = execute(Settings(dimension=20, steps=20, every=10, seeds=2)).values["distance"]
    np.testing.assert_allclose(np.load(path), with_kernel, rtol=1e-5)
