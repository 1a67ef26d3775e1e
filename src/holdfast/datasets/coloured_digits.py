"""Images of handwritten digits, of scikit-learn or MNIST, and with a shortcut: a colour, a rotation or a blur.

The shortcut agrees with the label more in some environments than in others.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from holdfast.core.validation import SHARE, require

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


Attribute = Literal["colour", "rotation", "blur"]
"""What is done to an image: its colour, a turn of 45 degrees, or a blur."""
ANGLE = 45.0  # degrees
BLUR_SHARE = 1 / 8  # the width of the blur, as a share of the height of an image
# The label of an image is whether its digit is at least this one.
FIRST_OF_SECOND_CLASS = 5


class ShortcutImages(NamedTuple):
    """Images whose attribute agrees with the label.

    Attributes:
        images: (rows, 2, height, width) with a colour, one channel empty; otherwise (rows, 1, height, width).
        labels: (rows,), 0 and 1, with noise: what is to be predicted.
        environments: (rows,), the number of the environment.
        attribute: (rows,), 0 and 1: the shortcut. No method may see it.
        digits: (rows,).

    Example:
        >>> rows = coloured_digits([0.8, 0.9], seed=0)
        >>> [round(float(np.mean((rows.attribute == rows.labels)[rows.environments == e])), 1) for e in (0, 1)]
        [0.8, 0.9]
    """

    images: np.ndarray
    labels: np.ndarray
    environments: np.ndarray
    attribute: np.ndarray
    digits: np.ndarray


def coloured_digits(
    agreements: Sequence[float],
    *,
    seed: int,
    source: DigitImages | None = None,
    label_noise: float = 0.25,
    attribute: Attribute = "colour",
) -> ShortcutImages:
    """Digits of several environments, in random order, whose attribute agrees with the label in a share of the images.

        label = [digit >= 5], flipped with probability `label_noise`
        attribute = label, flipped with probability 1 - agreement of the environment

    Args:
        agreements: one for each environment, which get equally many images.
        seed: of the order, the noise and the attributes.
        source: images and digits; None: those of scikit-learn.
        label_noise: share of the labels that are flipped.
        attribute: what the shortcut is; an agreement of 0.5 makes it say nothing.

    Reference: M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, Invariant Risk Minimization, arXiv:1907.02893 (2019),
        section 5.2: agreements 0.8 and 0.9 in training, 0.1 in the test.

    Example:
        >>> coloured_digits([0.8, 0.9], seed=0).images.shape
        (1797, 2, 8, 8)
    """
    shares = len(agreements) > 0 and all(0 <= each <= 1 for each in agreements)
    require(shares, "agreements must be numbers from 0 to 1, one for each environment", repr(agreements))
    SHARE.check("label_noise", label_noise)
    source = bundled_digits() if source is None else source
    random = np.random.default_rng(seed)
    rows = len(source.digits)
    order = random.permutation(rows)
    images, digits = source.images[order], source.digits[order]
    environments = np.arange(rows) % len(agreements)
    labels = (digits >= FIRST_OF_SECOND_CLASS) ^ (random.random(rows) < label_noise)
    chosen = labels ^ (random.random(rows) >= np.asarray(agreements)[environments])
    return ShortcutImages(
        _altered(images, chosen, attribute), labels.astype(np.int64), environments, chosen.astype(np.int64), digits
    )


def _altered(images: np.ndarray, chosen: np.ndarray, attribute: str) -> np.ndarray:
    if attribute == "colour":
        return images[:, None] * (chosen[:, None] == np.arange(2))[:, :, None, None].astype(images.dtype)
    from scipy import ndimage

    changed = images[:, None].copy()
    if attribute == "rotation":
        changed[chosen, 0] = ndimage.rotate(images[chosen], ANGLE, axes=(1, 2), reshape=False, order=1)
    elif attribute == "blur":
        width = BLUR_SHARE * images.shape[1]
        changed[chosen, 0] = ndimage.gaussian_filter(images[chosen], (0, width, width))
    else:
        raise ValueError(f"attribute must be colour, rotation or blur, got {attribute!r}")
    return changed
