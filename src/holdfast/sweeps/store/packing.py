"""The form of a result on disk: one file with a checksum, a head in JSON, and arrays as plain bytes."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from holdfast.core.cell_result import CellResult

if TYPE_CHECKING:
    import xarray as xr


Value = TypeVar("Value")

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


@dataclass(frozen=True)
class Codec(Generic[Value]):
    """How values of one kind become arrays and plain JSON values, and back.

    Attributes:
        encode: value -> what its file holds.
        decode: the other way.
        equal: whether the value that was read is the one that was written; None: not compared.

    Example:
        >>> lengths: Codec[int] = Codec(lambda value: Packed(value, {}), lambda packed: packed.head)
        >>> lengths.decode(lengths.encode(3))
        3
    """

    encode: Callable[[Value], Packed]
    decode: Callable[[Packed], Value]
    equal: Callable[[Value, Value], bool] | None = None


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
    if content is None or not is_intact(name, content):
        return None
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


_COORDINATE = "coordinate "  # before the name of an array that is no variable


def _pack_cell(result: CellResult) -> Packed:
    coordinates = {_COORDINATE + name: values for name, values in result.coordinates.items()}
    return Packed([result.dimensions, result.meanings], {**result.values, **coordinates})


def _unpack_cell(packed: Packed) -> CellResult:
    dimensions, meanings = packed.head
    values = {name: packed.arrays[name] for name in dimensions}
    labels = {name.removeprefix(_COORDINATE): each for name, each in packed.arrays.items() if name not in dimensions}
    return CellResult(values, dimensions, labels, meanings)


def _pack_dataset(data: "xr.Dataset") -> Packed:
    described = {str(name): [each.dims, _plain(each.attrs)] for name, each in data.variables.items()}
    head = {"variables": described, "coordinates": list(map(str, data.coords)), "attributes": _plain(data.attrs)}
    return Packed(head, {str(name): each.values for name, each in data.variables.items()})


def _unpack_dataset(packed: Packed) -> "xr.Dataset":
    import xarray as xr

    variables = {
        name: (dims, packed.arrays[name].copy(), attrs) for name, (dims, attrs) in packed.head["variables"].items()
    }
    coordinates = {name: variables.pop(name) for name in packed.head["coordinates"]}
    return xr.Dataset(variables, coordinates, packed.head["attributes"])


def _plain(attributes: Any) -> dict[str, Any]:
    """Attributes as JSON can hold them; what JSON does not know becomes text."""
    plain = {str(name): value.tolist() if hasattr(value, "tolist") else value for name, value in attributes.items()}
    return json.loads(json.dumps(plain, default=str))


def _same_dataset(read: "xr.Dataset", written: "xr.Dataset") -> bool:
    return read.equals(written)


def _pack_record(record: dict[str, float | str]) -> Packed:
    return Packed(record, {})


def _unpack_record(packed: Packed) -> dict[str, float | str]:
    return dict(packed.head)


def _same_record(read: dict[str, float | str], written: dict[str, float | str]) -> bool:
    # NaN is the one number that is not equal to itself.
    return read.keys() == written.keys() and all(read[name] == each or each != each for name, each in written.items())


CELLS: Codec[CellResult] = Codec(_pack_cell, _unpack_cell)
"""Cells of sweeps."""

DATASETS: "Codec[xr.Dataset]" = Codec(_pack_dataset, _unpack_dataset, _same_dataset)
"""Labelled data sets; attributes that JSON does not know become text."""

RECORDS: Codec[dict[str, float | str]] = Codec(_pack_record, _unpack_record, _same_record)
"""Flat dictionaries of numbers and strings."""
