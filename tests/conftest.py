import os
from pathlib import Path

# Compiled programs are cached between runs and shared by the workers; jax reads this when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

import jax
import numpy as np
import pytest

from holdfast import ensembles
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.environments import table
from holdfast.problems import matrix_sensing


@pytest.fixture(params=["gaussian", "symmetric"])
def ensemble(request):
    return {"gaussian": ensembles.gaussian, "symmetric": ensembles.symmetric_gaussian}[request.param]


@pytest.fixture
def problem():
    """A small problem with everything switched on: overlap, three unequal environments, non-diagonal S(e)."""
    strengths = np.array([[[2.0, 0.5], [0.5, -1.0]], [[-3.0, 0.0], [0.0, 1.0]], [[1.0, -0.3], [-0.3, 4.0]]])
    frame = orthonormal_frame(5, 3, seed=1).astype(np.float32)
    return matrix_sensing(frame, 1, table(strengths, [0.5, 0.3, 0.2]), overlap=0.3)


@pytest.fixture
def fitted():
    """A symmetric matrix that is no solution of anything."""
    factor = np.random.default_rng(2).standard_normal((5, 5)).astype(np.float32)
    return jax.numpy.asarray(factor @ factor.T / 5)
