"""What is sent to the page: JSON, one object in each line of a stream."""

import math
from typing import Any

import msgspec
import numpy as np

# Digits of the numbers in charts: more are not seen, and half of the bytes are digits.
DIGITS = 6


def encoded(message: Any) -> bytes:
    r"""A message as one line of JSON: arrays become lists of numbers with six digits, NaN and infinities null.

    Example:
        >>> encoded({"spurious": np.array([0.1234567, np.nan])})
        b'{"spurious":[0.123457,null]}\n'
    """
    return msgspec.json.encode(message, enc_hook=_plain) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a message must hold numbers, texts, lists and arrays, got {type(value).__name__}")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and math.isfinite(value) else value
