"""The form of a result on disk: one file with a checksum, a head in JSON, and arrays as plain bytes."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

TEXT = "text"
_MAGIC = b"holdfast 1 "
_BEGIN = len(_MAGIC) + 33  # the checksum in hexadecimal digits, and the end of the line


class Packed(NamedTuple):
    """What a file holds.

    Attributes:
        head: plain JSON values.
        arrays: of numbers, booleans or text, by name.
    """

    head: Any
    arrays: Mapping[str, np.ndarray]


def pack(name: str, packed: Packed) -> bytes:
    """The content of a file; its name is part of the checksum, so that a file under another name counts as damaged.

    Example:
        >>> content = pack("0a1b", Packed({"steps": 10}, {"loss": np.ones(2), "order": np.array(["cyclic"])}))
        >>> head, arrays = unpack("0a1b", content)
        >>> head, arrays["loss"], arrays["order"]
        ({'steps': 10}, array([1., 1.]), array(['cyclic'], dtype=object))
        >>> unpack("0a1c", content) is None, unpack("0a1b", content[:-1]) is None
        (True, True)
    """
    described, parts = [], []
    for each, array in packed.arrays.items():
        if array.dtype.kind in "OUT":
            texts = array.ravel().tolist()
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{each!r} must be numbers, booleans, times or text, got objects")
            described.append([each, TEXT, array.shape, texts])
        else:
            kind = array.dtype.newbyteorder("<")
            described.append([each, kind.str, array.shape])
            parts.append(array.astype(kind, order="C", copy=False).tobytes())
    head = json.dumps([packed.head, described]).encode()
    body = b"".join([head, b"\n", *parts])
    return _MAGIC + _checksum(name, body) + b"\n" + body


def unpack(name: str, content: bytes | None) -> Packed | None:
    """What a file holds; None if there is no file, or if it is damaged."""
    if not is_intact(name, content):
        return None
    assert content is not None
    end = content.index(b"\n", _BEGIN)
    head, described = json.loads(content[_BEGIN:end])
    position, arrays = end + 1, {}
    for each, kind, shape, *texts in described:
        if kind == TEXT:
            arrays[each] = np.array(texts[0], object).reshape(shape)
            continue
        dtype, count = np.dtype(kind), int(np.prod(shape))
        arrays[each] = np.frombuffer(content, dtype, count, position).reshape(shape)
        position += dtype.itemsize * count
    return Packed(head, arrays)


def is_intact(name: str, content: bytes | None) -> bool:
    """Whether a file is there and has the content that was written."""
    return (
        content is not None
        and content.startswith(_MAGIC)
        and content[len(_MAGIC) : _BEGIN - 1] == _checksum(name, content[_BEGIN:])
    )


def _checksum(name: str, body: bytes) -> bytes:
    digest = hashlib.blake2b(name.encode(), digest_size=16)
    digest.update(body)
    return digest.hexdigest().encode()
