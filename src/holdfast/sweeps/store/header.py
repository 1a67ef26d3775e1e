"""What a grid says about itself: layout, variables, and the settings and code that decide its values."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.cell_result import CellResult
from holdfast.core.errors import describe
from holdfast.sweeps.store.coordinates import FEW, Values, chunk_size, chunks, column, describe_values, read_values
from holdfast.sweeps.store.files import Files
from holdfast.sweeps.store.layout import Layout, Positions, compact
from holdfast.sweeps.store.zarr_format import (
    METADATA,
    array_metadata,
    check_name,
    data_type,
    encode_metadata,
    group_metadata,
)

CHECKSUMS = "checksum"
"""The array of checksums; a cell is finished when its chunk of this array is written."""

SECONDS = "seconds"
"""The array of computing times."""

FORMAT = 2
"""Of the files of a grid. In format 1 the checksums of the cells did not cover what decides their values."""

# Of the attributes of the group, the one that is for programs.
_GRID = "grid"
_SEED = "seed"
GRID_NAMES = {CHECKSUMS, SECONDS, "finished", _SEED, _GRID}
"""Names of the result itself, which no axis, variable or dimension may have."""
_MEANINGS = {
    CHECKSUMS: "checksum of the cell, or 0 where it is not finished",
    SECONDS: "computing time of the cell, shared between its seeds (s)",
}


class ConflictError(ValueError):
    """A folder has something else than what is requested, which would be right by itself.

    Example:
        >>> raise ConflictError("program must be 'square' as in the folder (choose another folder), got 'cube'")
        Traceback (most recent call last):
        holdfast.sweeps.store.header.ConflictError: program must be 'square' ...
    """


class Variable(NamedTuple):
    """What all cells have in common: type, dimensions after the seeds with their sizes, and a line for people."""

    kind: str
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    meaning: str


class Variables(NamedTuple):
    """The variables of a grid, in alphabetical order, and the coordinates of their own dimensions."""

    by_name: Mapping[str, Variable]
    coordinates: Mapping[str, Values]

    @classmethod
    def of(cls, recorded: CellResult) -> "Variables":
        """Of the first cell that is saved."""
        found = {}
        for name, values in sorted(recorded.values.items()):
            try:
                kind = data_type(values)
            except ValueError as error:
                raise ValueError(f"variable {name!r}: {error}") from None
            found[name] = Variable(kind, recorded.dimensions[name], values.shape[1:], recorded.meanings.get(name, ""))
        return cls(found, {name: column(name, values.tolist()) for name, values in recorded.coordinates.items()})

    def check(self, other: "Variables") -> None:
        """Raise an error if a later cell has something else."""
        for name in sorted({*self.by_name, *other.by_name}):
            before, now = self.by_name.get(name), other.by_name.get(name)
            if before is None or now is None or before[:3] != now[:3]:
                both = f"got {_described(now)} after {_described(before)}"
                raise ValueError(f"variable {name!r} must be the same in every cell, {both}")
        for name, values in other.coordinates.items():
            if self.coordinates.get(name) != values:
                raise ValueError(f"coordinates of {name!r} must be the same in every cell, got others than before")

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "variables": {name: list(each) for name, each in self.by_name.items()},
            "labels": {
                name: describe_values(values) for name, values in self.coordinates.items()
            },  # xarray has a meaning for "coordinates"
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], files: Files) -> "Variables | None":
        """The variables that `plain` wrote in a folder; None before the first cell."""
        if "variables" not in plain:
            return None
        rows = plain["variables"].items()
        found = {name: Variable(kind, tuple(own), tuple(shape), text) for name, (kind, own, shape, text) in rows}
        remedy = "restore the file from a copy"
        labels = plain["labels"].items()
        return cls(found, {name: _read_values(files, name, described, remedy) for name, described in labels})


@dataclass(frozen=True)
class Header:
    """All metadata of a grid; its files follow from it, so processes that write it at once write the same.

    Attributes:
        layout: all that was ever requested; new values come last.
        positions: of the values that were requested last, in their order.
        seeds: that were requested last.
        identity: what decides the values: program, settings, code. Plain values.
        notes: what is good to know: versions, platform. Plain values.
        variables: None before the first cell is saved.
        chunks: values of a coordinate in one file, by name. Fixed when the grid is new, so that a coordinate that grows
            stays readable by its old description.
    """

    layout: Layout
    positions: tuple[Positions, ...]
    seeds: int
    identity: Mapping[str, Any]
    notes: Mapping[str, Any] = field(default_factory=dict)
    variables: Variables | None = None
    chunks: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: Layout, identity: Mapping[str, Any], notes: Mapping[str, Any]) -> "Header":
        """Of a new grid."""
        positions = tuple(range(axis.size) for axis in layout.axes)
        sizes = {name: axis.size for axis in layout.axes for name in axis.coordinates}
        large = {name: chunk_size(size) for name, size in {**sizes, _SEED: layout.seeds}.items() if size > FEW}
        for name in layout.dimensions[:-1] + tuple(name for axis in layout.axes for name in axis.coordinates):
            _check_name(name, GRID_NAMES)
        for name in (*identity, *notes):
            if name in (_GRID, "coordinates"):
                raise ValueError(f"identity and notes must not have an item of the name {name!r}")
        return cls(layout, positions, layout.seeds, _plain(identity), _plain(notes), chunks=large)

    def extended(self, layout: Layout, identity: Mapping[str, Any]) -> "Header":
        """With a layout that is requested now; refused if something else decides its values."""
        try:  # first, because a setting that becomes an axis is missing among the others
            larger, positions = self.layout.extended(layout)
        except ValueError as error:
            raise ConflictError(str(error)) from error
        difference = _difference(self.identity, _plain(identity))
        if difference is not None:
            raise ConflictError(_refusal(*difference))
        _check_types(self.layout, larger)
        return replace(self, layout=larger, positions=positions, seeds=layout.seeds)

    def with_variables(self, variables: Variables) -> "Header":
        """With the variables of the first cell."""
        names = {name for axis in self.layout.axes for name in (axis.name, *axis.coordinates)}
        for name in (*variables.by_name, *(each for row in variables.by_name.values() for each in row.dimensions)):
            _check_name(name, GRID_NAMES | names)
        overlap = set(variables.by_name) & {each for row in variables.by_name.values() for each in row.dimensions}
        if overlap:
            raise ValueError(f"names of variables and of dimensions must differ, got {overlap.pop()!r} for both")
        return replace(self, variables=variables)

    def recover_variables(self, files: Files) -> "Header":
        """With the variables that an array has but the group, written last, lacks: someone was killed in between."""
        content = files.read(f"{CHECKSUMS}/{METADATA}") if self.variables is None else None
        try:
            attributes = {} if content is None else json.loads(content)["attributes"]
            return replace(self, variables=Variables.from_plain(attributes, files) or self.variables)
        except (ValueError, KeyError, TypeError):  # damaged, and no cell was saved without the group: written again
            return self

    def files(self) -> dict[str, bytes]:
        """Names and contents of everything but the values; the group, which makes them valid, comes last."""
        layout, variables = self.layout, self.variables or Variables({}, {})
        chunk = (*(1 for _ in layout.axes), layout.seeds_per_cell)
        described = {} if self.variables is None else self.variables.plain()
        arrays = {
            name: array_metadata(kind, layout.points, chunk, layout.dimensions, {"long_name": _MEANINGS[name], **more})
            for name, kind, more in ((CHECKSUMS, "uint32", described), (SECONDS, "float32", {}))
        }
        for name, (kind, dimensions, shape, meaning) in variables.by_name.items():
            about = {"long_name": meaning} if meaning else {}
            whole, all_names = (*layout.points, *shape), (*layout.dimensions, *dimensions)
            arrays[name] = array_metadata(kind, whole, (*chunk, *shape), all_names, about)
        found: dict[str, bytes] = {}
        coordinates: list[tuple[str, str, Values | np.ndarray]] = [
            (name, axis.name, values) for axis in layout.axes for name, values in axis.coordinates.items()
        ]
        coordinates += [(name, name, values) for name, values in variables.coordinates.items()]
        for name, dimension, values in [*coordinates, (_SEED, _SEED, np.arange(layout.seeds))]:
            kind, size = data_type(np.asarray(values[:1])), self.chunks.get(name, FEW)
            arrays[name] = array_metadata(kind, [len(values)], [size], [dimension], {})
            found |= chunks(name, values, size)
        # Those that are not named like their dimension; xarray knows the convention.
        others = [name for name, dimension, _ in coordinates if name != dimension]
        convention = {"coordinates": " ".join(others)} if others else {}
        grid = {
            "format": FORMAT,
            "layout": layout.plain(),
            "positions": [len(each) if isinstance(each, range) else each for each in self.positions],
            "seeds": self.seeds,
            "identity": list(self.identity),
            "chunks": self.chunks,
        }
        attributes = {**self.identity, **self.notes, **convention, _GRID: grid}
        found |= {f"{name}/{METADATA}": encode_metadata(array) for name, array in arrays.items()}
        return found | {METADATA: encode_metadata(group_metadata(arrays, attributes))}

    @classmethod
    def read(cls, files: Files, requested: Layout | None = None) -> "Header | None":
        """Of a grid in a folder; None if the folder has none.

        Args:
            files: the folder.
            requested: by a command. Long coordinates are taken from it where it has those of the folder, by
                their checksum, so that a damaged file of theirs is written again.
        """
        content = files.read(METADATA)
        if content is None:
            return None
        try:
            group = json.loads(content)
            attributes = group["attributes"]
            grid = attributes.pop(_GRID)
            if grid.get("format", 1) != FORMAT:
                raise ConflictError(
                    f"the results in {str(files)!r} are of another version of holdfast, whose checksums are not those "
                    f"of this one (format {grid.get('format', 1)}, now {FORMAT}); xarray.open_zarr still opens them, "
                    "and the command that made them computes them anew in another folder"
                )
            arrays = group["consolidated_metadata"]["metadata"]
            identity = {name: attributes.pop(name) for name in grid["identity"]}
            attributes.pop("coordinates", None)
            sizes, positions = grid.get("chunks", {}), grid["positions"]
            known = {} if requested is None else requested.coordinates()
            layout = Layout.from_plain(
                grid["layout"],
                lambda name, described: (
                    _beginning(known.get(name, ()), described)
                    or _read_values(files, name, described, "ask for the same values again", sizes.get(name, FEW))
                ),
            )
            last = tuple(range(each) if isinstance(each, int) else compact(each) for each in positions)
            variables = Variables.from_plain(arrays[CHECKSUMS]["attributes"], files)
        except ConflictError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise ConflictError(
                f"the results in {str(files)!r} cannot be used: their {METADATA} is damaged, or not of holdfast "
                f"({describe(error)}); restore it from a copy, or move the folder away to compute them anew"
            ) from error
        return cls(layout, last, grid["seeds"], identity, attributes, variables, sizes)

    def write(self, files: Files) -> None:
        """Write what is not in the folder yet; whatever does not follow from the rest survives a power failure."""
        labels = {} if self.variables is None else self.variables.coordinates
        long = {name for name, values in {**self.layout.coordinates(), **labels}.items() if len(values) > FEW}
        for name, content in self.files().items():
            if files.read(name) != content:
                array, _, file = name.rpartition("/")
                files.write(name, content, durable=name == METADATA or (array in long and file != METADATA))


def _beginning(values: Values, described: Mapping[str, Any]) -> Values | None:
    """The first of some values, if they are those that a description with a checksum describes."""
    first = values[: described.get("count", 0)]
    return first if first and describe_values(first) == described else None


def _read_values(files: Files, name: str, described: Mapping[str, Any], remedy: str, chunk: int = FEW) -> Values:
    try:
        return read_values(files, name, described, chunk)
    except ValueError as error:
        raise ConflictError(f"{error}; {remedy}, or choose another folder") from error


def _check_types(before: Layout, after: Layout) -> None:
    """Raise an error for integers that would have to become floats, if only their own file has them.

    That file is written before the description of the group. A process that was killed in between would leave bytes of
    another type than the group says.
    """
    for old, new in zip(before.axes, after.axes, strict=True):
        for name, values in old.coordinates.items():
            if len(values) > FEW and type(values[0]) is not type(new.coordinates[name][0]):
                other = new.coordinates[name][len(values)]
                raise ConflictError(
                    f"{name} must be whole numbers as in the folder (choose another folder), got {other!r}"
                )


def _check_name(name: str, taken: set[str]) -> None:
    check_name(name)
    if name in taken:
        whose = "used by the result itself" if name in GRID_NAMES else "an axis already"
        raise ValueError(f"names of axes and variables must be new ones, got {name!r}, which is {whose}")


def _described(variable: Variable | None) -> str:
    if variable is None:
        return "none"
    sizes = [f"{name} = {size}" for name, size in zip(variable.dimensions, variable.shape, strict=True)]
    return f"{variable.kind} ({', '.join(sizes) or 'a number'} per seed)"


def _plain(value: Any) -> Any:
    """A value as it is read from JSON again; numbers that are not finite become text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"identity and notes must be numbers, text, lists and mappings, got {value!r}")


def _refusal(name: str, before: Any, now: Any) -> str:
    if name == "code":  # people cannot choose its checksum
        return (
            "the code of the program, or of the library, must be that with which the folder was begun; it has changed, "
            f"so choose another folder (checksum {before} in the folder, {now} now)"
        )
    return f"{name} must be {before!r} as in the folder (choose another folder), got {now!r}"


def _difference(before: Any, now: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """The first item in which two values differ, by its name with dots, with both values."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for each in {**before, **now}:
            found = _difference(before.get(each), now.get(each), f"{name}.{each}" if name else each)
            if found is not None:
                return found
        return None
    return None if before == now else (name, before, now)
