"""The zarr format, version 3, as far as grids need it, written and read with numpy alone.

Chunks are plain bytes without compression, so writing one costs no more than its file, and zarr itself need not be
installed where the work is done. Metadata of all arrays is repeated in that of their group ("consolidated"), so that a
reader sees a larger grid from one moment to the next.

Reference: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html
"""

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

METADATA = "zarr.json"
"""The name of the file that describes an array or a group."""

TEXT = "string"
"""The type of text, next to the names that numpy has for types."""

_CHUNK = re.compile(r"c(\.[0-9]+)+")
_TYPES = {TEXT, "bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def data_type(values: np.ndarray) -> str:
    """The name of the type of an array in the format.

    Example:
        >>> data_type(np.zeros(3, np.float32)), data_type(np.array(["hetero", "pooled"]))
        ('float32', 'string')
    """
    if values.dtype == object and all(isinstance(each, str) for each in values.flat):
        return TEXT
    name = _type_name(values.dtype)
    if name not in _TYPES:
        raise ValueError(f"values must be real numbers, booleans or text, got {values.dtype}")
    return name


@cache  # numpy composes the name each time, which takes longer than writing a small chunk
def _type_name(dtype: np.dtype) -> str:
    return TEXT if dtype.kind in "UT" else dtype.name


def fill_value(kind: str) -> Any:
    """What stands where nothing was computed: NaN, the smallest integer, False, or an empty string.

    Example:
        >>> fill_value("float32"), fill_value("int32"), fill_value("string")
        (nan, -2147483648, '')
    """
    if kind == TEXT:
        return ""
    if kind == "bool":
        return False
    return math.nan if kind.startswith("float") else int(np.iinfo(kind).min)


def array_metadata(
    kind: str, shape: Sequence[int], chunk: Sequence[int], dimensions: Sequence[str], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """The description of an array.

    Args:
        kind: the type, see `data_type`.
        shape: of the array.
        chunk: the shape of a chunk.
        dimensions: their names.
        attributes: plain JSON values.
    """
    fill = fill_value(kind)
    codec = {"name": "vlen-utf8"} if kind == TEXT else {"name": "bytes", "configuration": {"endian": "little"}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if fill != fill else fill,
        "codecs": [codec],
        "attributes": dict(attributes),
        "dimension_names": list(dimensions),
    }


def group_metadata(arrays: Mapping[str, Mapping[str, Any]], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a group of arrays, with theirs inside."""
    return {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": dict(attributes),
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": dict(arrays)},
    }


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """As a file holds it."""
    return json.dumps(metadata, allow_nan=False).encode()


def chunk_name(array: str, index: Sequence[int]) -> str:
    """The file of a chunk.

    Example:
        >>> chunk_name("loss", (0, 3, 1))
        'loss/c.0.3.1'
    """
    return f"{array}/c.{'.'.join(map(str, index))}"


def chunk_position(name: str) -> tuple[int, ...] | None:
    """The position of the chunk whose file has this name in the folder of its array; None for all other files.

    Example:
        >>> chunk_position("c.0.3.1"), chunk_position("c.0.3.1.lease"), chunk_position("zarr.json")
        ((0, 3, 1), None, None)
    """
    return tuple(map(int, name[2:].split("."))) if _CHUNK.fullmatch(name) else None


def encode_chunk(values: np.ndarray, kind: str) -> bytes:
    r"""The bytes of a chunk.

    Example:
        >>> encode_chunk(np.array([1, 256]), "uint16")
        b'\x01\x00\x00\x01'
        >>> encode_chunk(np.array(["a", ""]), "string")
        b'\x02\x00\x00\x00\x01\x00\x00\x00a\x00\x00\x00\x00'
    """
    if kind != TEXT:
        return values.astype(np.dtype(kind).newbyteorder("<"), order="C", copy=False).tobytes()
    texts = [str(each) for each in values.flat]
    encoded = {text: text.encode() for text in set(texts)}  # a million texts are often a few different ones
    parts = {text: struct.pack("<I", len(content)) + content for text, content in encoded.items()}
    return struct.pack("<I", len(texts)) + b"".join(map(parts.__getitem__, texts))


def decode_chunk(content: bytes, kind: str, shape: Sequence[int]) -> np.ndarray:
    """The values of a chunk.

    Raises:
        ValueError: if the bytes are not those of a chunk of this shape.

    Example:
        >>> decode_chunk(encode_chunk(np.array(["a", "b c"]), "string"), "string", (2,))
        array(['a', 'b c'], dtype=object)
    """
    if kind != TEXT:
        return np.frombuffer(content, np.dtype(kind).newbyteorder("<")).reshape(shape)
    texts, position = [], 4
    try:
        (count,) = struct.unpack_from("<I", content)
        while position < len(content):
            (length,) = struct.unpack_from("<I", content, position)
            texts.append(content[position + 4 : position + 4 + length].decode())
            position += 4 + length
    except struct.error as error:
        raise ValueError(f"the bytes must be those of texts, got {len(content)} that end too early") from error
    if (len(texts), len(content)) != (count, position):
        raise ValueError(f"the bytes must be those of {count} texts, got {len(texts)}")
    return np.array(texts, dtype=object).reshape(shape)


def check_name(name: str) -> None:
    """Raise an error for a name that an array cannot have."""
    if not name or "/" in name or name.startswith((".", "__")) or name == METADATA:
        raise ValueError(f"names of axes and variables must be plain words, got {name!r}")
