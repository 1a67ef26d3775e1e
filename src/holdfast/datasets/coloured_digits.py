"""Digits with a shortcut: a colour, a rotation or a blur that agrees with the label more in some environments."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from holdfast.core.validation import SHARE, require
from holdfast.datasets.digit_images import DigitImages, bundled_digits

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
