"""Measurements in files: X, y and environment, as .npz or .zarr."""

from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.validation import require

NAMES = ("X", "y", "environment")
# Suffix -> what it stands for.
SUFFIXES = {".npz": "an .npz file", ".zarr": "a .zarr folder"}


def read_measurements(path: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """X (n, d, d), y (n,) and environment (n,) from an .npz file or a .zarr folder.

    The X of a zarr folder stays in the folder; slices of it are read when they are used.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "measurements.npz"
        >>> np.savez(path, X=np.zeros((3, 2, 2)), y=np.zeros(3), environment=np.array([0, 0, 1]))
        >>> [part.shape for part in read_measurements(path)]
        [(3, 2, 2), (3,), (3,)]
    """
    contract = f"data must be {' or '.join(SUFFIXES.values())} with {', '.join(NAMES)}"
    require(path.suffix in SUFFIXES, contract, repr(str(path)))
    require(path.exists(), "data must exist", repr(str(path)))
    arrays = _open(path)
    missing = [name for name in NAMES if name not in arrays]
    require(not missing, f"data must hold {', '.join(NAMES)}", f"{str(path)!r} without {', '.join(missing)}")
    # NumPy refuses arrays that need pickle, which would run code from the file.
    return arrays["X"], np.asarray(arrays["y"]), np.asarray(arrays["environment"])


def _open(path: Path) -> Any:
    try:
        if path.suffix == ".npz":
            return np.load(path, allow_pickle=False)
        import zarr

        return zarr.open_group(path, mode="r")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"data must be {SUFFIXES[path.suffix]} that can be read, got {str(path)!r}: {error}"
        ) from error
