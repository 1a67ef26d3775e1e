"""Images of handwritten digits: the 1,797 of scikit-learn, or MNIST from the IDX files in a folder."""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.core.validation import require

# The third byte of an IDX file is the type of its numbers; images and labels are unsigned bytes.
UNSIGNED_BYTE = 8
# The files of MNIST by their usual names: training images come first.
FILES = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)


class DigitImages(NamedTuple):
    """Images with their digits.

    Attributes:
        images: (rows, height, width), from 0 to 1.
        digits: (rows,), from 0 to 9.

    Example:
        >>> DigitImages(np.zeros((1, 8, 8)), np.array([7])).images.shape
        (1, 8, 8)
    """

    images: np.ndarray
    digits: np.ndarray


def bundled_digits() -> DigitImages:
    """The 1,797 digits of 8 x 8 pixels that come with scikit-learn.

    Reference: E. Alpaydin, C. Kaynak, Optical recognition of handwritten digits, UCI repository (1998).

    Example:
        >>> bundled_digits().images.shape
        (1797, 8, 8)
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    return DigitImages(found.images / 16, found.target)


def read_mnist(folder: str | Path) -> DigitImages:
    """All 70,000 images of MNIST, 60,000 for training first, from the four IDX files in a folder, packed or not.

    Args:
        folder: with train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k; `.gz` may follow.

    Reference: Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Proc. IEEE 86 (1998).

    Example:
        >>> read_mnist("nowhere")
        Traceback (most recent call last):
        ValueError: folder must hold the IDX files of MNIST, got 'nowhere' without train-images-idx3-ubyte
    """
    parts = [(read_idx(_find(folder, images)), read_idx(_find(folder, labels))) for images, labels in FILES]
    images, digits = (np.concatenate(both) for both in zip(*parts, strict=True))
    return DigitImages(images.astype(np.float32) / 255, digits.astype(np.int64))


def _find(folder: str | Path, name: str) -> Path:
    for path in (Path(folder) / name, Path(folder) / f"{name}.gz"):
        if path.is_file():
            return path
    raise ValueError(f"folder must hold the IDX files of MNIST, got {str(folder)!r} without {name}")


def read_idx(path: str | Path) -> np.ndarray:
    """The array of an IDX file of unsigned bytes.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels"
        >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
        >>> read_idx(path).tolist()
        [7, 2, 1]
    """
    path = Path(path)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    whole = len(raw) >= 4 and raw[:3] == bytes([0, 0, UNSIGNED_BYTE]) and len(raw) >= 4 + 4 * raw[3]
    require(whole, "path must be an IDX file of unsigned bytes", f"{path.name}, which begins with {raw[:4]!r}")
    shape = np.frombuffer(raw, ">u4", raw[3], 4).tolist()
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    count = int(np.prod(shape))
    require(len(values) == count, f"path must hold {count} numbers as its head says", f"{path.name} with {len(values)}")
    return values.reshape(shape)
