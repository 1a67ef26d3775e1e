"""The kinds of results that stores hold: cells of sweeps, labelled data sets, and records of numbers."""

import json
from typing import TYPE_CHECKING, Any

from holdfast.core.cell_result import CellResult
from holdfast.sweeps.store.packing import Packed
from holdfast.sweeps.store.store import Codec

if TYPE_CHECKING:
    import xarray as xr

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
    return {str(name): _plain_value(value) for name, value in attributes.items()}


def _plain_value(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value  # arrays and their scalars
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value


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
