"""Values along a dimension of a grid: checked, and written as a zarr array; metadata repeats them if they are few."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.sweeps.store.files import Files
from holdfast.sweeps.store.zarr_format import chunk_name, decode_chunk, encode_chunk, fill_value

Values = tuple[Any, ...]
"""Of one type: int, float, str or bool."""

FEW = 1024
"""So many values are repeated in the metadata; more are only in the array, with their checksum in the metadata."""
# Values in one file of the array, at most: 8 MiB of numbers.
_MOST_IN_A_CHUNK = 2**20

_TYPES: dict[str, type] = {"bool": bool, "int64": int, "float64": float, "string": str}
_NAMES = {kind: name for name, kind in _TYPES.items()}


def column(name: str, values: Sequence[Any]) -> Values:
    """Values of one type; integers next to floats become floats.

    Example:
        >>> column("step_size", [1, 0.5])
        (1.0, 0.5)
    """
    found = tuple(values)
    types = set(map(type, found))  # a million values are checked in some hundredths of a second
    if not types <= set(_NAMES):
        found = tuple(value.item() if isinstance(value, np.generic) else value for value in found)
        types = set(map(type, found))
    if types == {int, float}:
        found, types = tuple(map(float, found)), {float}
    if len(types) != 1 or not types <= set(_NAMES):
        words = sorted(each.__name__ for each in types)
        raise ValueError(f"values of {name!r} must be numbers, text or booleans, and not a mixture, got {words}")
    if types == {float} and any(map(math.isnan, found)):
        raise ValueError(f"values of {name!r} must be numbers, got nan")
    if types == {int} and not -(2**63) <= min(found) <= max(found) < 2**63:
        raise ValueError(f"values of {name!r} must be whole numbers of 64 bits, got {max(found, key=abs)}")
    return found


def describe_values(values: Values) -> dict[str, Any]:
    """Values as metadata has them; numbers that are not finite, which JSON does not know, become text.

    Example:
        >>> describe_values((0.5, float("inf")))
        {'type': 'float64', 'values': [0.5, 'inf']}
        >>> list(describe_values(tuple(range(2000))))
        ['type', 'count', 'checksum']
    """
    kind = _NAMES[type(values[0])]
    if len(values) > FEW:
        return {"type": kind, "count": len(values), "checksum": zlib.crc32(_encoded(values, kind))}
    if kind == "float64" and not all(map(math.isfinite, values)):
        return {"type": kind, "values": [each if math.isfinite(each) else str(each) for each in values]}
    return {"type": kind, "values": list(values)}


def read_values(files: Files, name: str, description: Mapping[str, Any], chunk: int = FEW) -> Values:
    """The values of which `describe_values` made a description, and `chunks` the files.

    Args:
        files: the folder of the grid.
        name: of the array.
        description: of the values, in the metadata.
        chunk: values in one file.

    Raises:
        ValueError: if the files are damaged.

    Example:
        >>> import tempfile
        >>> from holdfast.sweeps.store.files import files_at
        >>> files, values = files_at(tempfile.mkdtemp()), tuple(range(2000))
        >>> for file, content in chunks("batch_size", values, FEW).items():
        ...     files.write(file, content)
        >>> read_values(files, "batch_size", describe_values(values)) == values
        True
    """
    kind = description["type"]
    if "values" in description:
        return tuple(map(_TYPES[kind], description["values"]))
    found: list[Any] = []
    try:
        for number in range(math.ceil(description["count"] / chunk)):
            found += decode_chunk(files.read(chunk_name(name, (number,))) or b"", kind, (-1,)).tolist()
        values = tuple(found[: description["count"]])
        if len(values) != description["count"] or describe_values(values) != description:
            raise ValueError("got another checksum")
    except ValueError as error:
        raise ValueError(f"the values of {name!r} in {str(files)!r} are damaged ({error})") from error
    return values


def chunk_size(count: int) -> int:
    """Values in one file of an array that begins with so many.

    Example:
        >>> chunk_size(3), chunk_size(5000), chunk_size(10**7)
        (1024, 8192, 1048576)
    """
    return min(max(FEW, 1 << (count - 1).bit_length()), _MOST_IN_A_CHUNK)


def chunks(name: str, values: Values | np.ndarray, chunk: int) -> dict[str, bytes]:
    """The files of an array of one dimension; values that are added later do not move those that it has.

    Example:
        >>> {name: len(content) for name, content in chunks("step_size", (0.1, 0.2), 1024).items()}
        {'step_size/c.0': 8192}
    """
    first = values[0]
    kind = values.dtype.name if isinstance(values, np.ndarray) else _NAMES[type(first)]
    array, found = np.asarray(values, object if kind == "string" else kind), {}
    for number in range(math.ceil(len(array) / chunk)):
        part = array[number * chunk :][:chunk]
        padding = np.full(chunk - len(part), fill_value(kind), array.dtype)
        found[chunk_name(name, (number,))] = encode_chunk(np.concatenate([part, padding]), kind)
    return found


def _encoded(values: Values, kind: str) -> bytes:
    return encode_chunk(np.array(values, object if kind == "string" else kind), kind)
