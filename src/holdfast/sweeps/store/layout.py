"""Which cells a grid has: axes with their values, and seeds in blocks; a larger layout extends a smaller one."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from holdfast.sweeps.store.coordinates import Values, column, describe_values

Positions = range | tuple[int, ...]
"""Of values along an axis; a range if they are the first ones in order, which a million of them usually are."""


class Axis(NamedTuple):
    """One dimension of a grid: a setting with its values, or points of several settings each.

    Attributes:
        name: of the dimension.
        coordinates: the values along it, by setting.

    Example:
        >>> Axis("step_size", {"step_size": (0.02, 0.05)}).size
        2
        >>> Axis("point", {"step_size": (0.02, 0.05), "batching": ("hetero", "pooled")}).settings(1)
        {'step_size': 0.05, 'batching': 'pooled'}
    """

    name: str
    coordinates: Mapping[str, Values]

    @property
    def size(self) -> int:
        """The number of values, or points."""
        return len(next(iter(self.coordinates.values())))

    def settings(self, position: int) -> dict[str, Any]:
        """The settings at a position."""
        return {name: values[position] for name, values in self.coordinates.items()}


@dataclass(frozen=True)
class Layout:
    """Axes and seeds of a grid; a cell is one point of the grid with one block of seeds.

    Every block has the same number of seeds, so that every cell is the same computation to the last bit, whatever the
    number of seeds. The last block may reach beyond the seeds that were requested.

    Attributes:
        axes: in the order of their dimensions.
        seeds: 0, 1, ..., seeds - 1.
        seeds_per_cell: the size of a block.

    Example:
        >>> layout = Layout.of({"step_size": [0.02, 0.05], "batching": ["hetero", "pooled"]}, seeds=20, most_seeds=8)
        >>> layout.seeds_per_cell, layout.shape, layout.cells
        (7, (2, 2, 3), 12)
        >>> layout.settings((1, 0, 2)), layout.block((1, 0, 2))
        ({'step_size': 0.05, 'batching': 'hetero'}, array([14, 15, 16, 17, 18, 19, 20]))
    """

    axes: tuple[Axis, ...]
    seeds: int
    seeds_per_cell: int

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.seeds_per_cell < 1:
            raise ValueError(f"seeds must be at least 1, got {self.seeds} in blocks of {self.seeds_per_cell}")
        names = [name for axis in self.axes for name in {axis.name: 0, **axis.coordinates}]
        repeated = [name for name, count in Counter([*names, "seed"]).items() if count > 1]
        if repeated:
            raise ValueError(f"axes must have different names, and none that is 'seed', got {repeated[0]!r} twice")
        object.__setattr__(self, "axes", tuple(_checked(axis) for axis in self.axes))

    @classmethod
    def of(cls, axes: Mapping[str, Sequence[Any]] | Sequence[Axis], *, seeds: int, most_seeds: int) -> "Layout":
        """A layout with as few blocks as possible of at most `most_seeds` seeds, all of the same size."""
        if isinstance(axes, Mapping):
            axes = [Axis(name, {name: tuple(values)}) for name, values in axes.items()]
        if seeds < 1 or most_seeds < 1:
            raise ValueError(f"seeds and most_seeds must be at least 1, got {seeds} and {most_seeds}")
        return cls(tuple(axes), seeds, math.ceil(seeds / math.ceil(seeds / most_seeds)))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Names of the dimensions that every variable has."""
        return (*(axis.name for axis in self.axes), "seed")

    @property
    def points(self) -> tuple[int, ...]:
        """The number of values of each axis, and of seeds."""
        return (*(axis.size for axis in self.axes), self.seeds)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each dimension."""
        return (*(axis.size for axis in self.axes), math.ceil(self.seeds / self.seeds_per_cell))

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def coordinates(self) -> dict[str, Values]:
        """The values along all axes, by setting."""
        return {name: values for axis in self.axes for name, values in axis.coordinates.items()}

    def settings(self, index: tuple[int, ...]) -> dict[str, Any]:
        """The settings of a cell that its axes decide."""
        found: dict[str, Any] = {}
        for axis, position in zip(self.axes, index, strict=False):
            found |= axis.settings(position)
        return found

    def block(self, index: tuple[int, ...]) -> np.ndarray:
        """The seeds of a cell."""
        return index[-1] * self.seeds_per_cell + np.arange(self.seeds_per_cell)

    def extended(self, other: "Layout") -> tuple["Layout", tuple[Positions, ...]]:
        """This layout with what the other one has in addition, at the end, and the positions of the other's values.

        Example:
            >>> layout = Layout.of({"step_size": [0.1, 0.3]}, seeds=4, most_seeds=4)
            >>> larger, positions = layout.extended(Layout.of({"step_size": [0.1, 0.2, 0.3]}, seeds=9, most_seeds=4))
            >>> larger.axes[0].coordinates, positions, larger.shape
            ({'step_size': (0.1, 0.3, 0.2)}, ((0, 2, 1),), (3, 3))
        """
        ours = [(axis.name, *sorted(axis.coordinates)) for axis in self.axes]
        theirs = [(axis.name, *sorted(axis.coordinates)) for axis in other.axes]
        if ours != theirs:
            raise ValueError(
                f"axes must be {_names(self)} as in the folder (choose another folder), got {_names(other)}"
            )
        both = [_extended(axis, new) for axis, new in zip(self.axes, other.axes, strict=True)]
        axes = tuple(axis for axis, _ in both)
        return self._with(axes, max(self.seeds, other.seeds)), tuple(found for _, found in both)

    def chosen(self, positions: Sequence[Sequence[int]], seeds: int) -> "Layout":
        """The layout of some of the positions of each axis, in their order, and the first of the seeds."""
        return self._with(tuple(map(_chosen, self.axes, positions)), seeds)

    def _with(self, axes: tuple[Axis, ...], seeds: int) -> "Layout":
        """Itself if nothing changes, since axes of a million values take time to check."""
        if seeds == self.seeds and all(new is axis for new, axis in zip(axes, self.axes, strict=True)):
            return self
        return replace(self, axes=axes, seeds=seeds)

    def plain(self) -> dict[str, Any]:
        """As metadata has it."""
        axes = [
            {"name": axis.name, "coordinates": {name: describe_values(each) for name, each in axis.coordinates.items()}}
            for axis in self.axes
        ]
        return {"axes": axes, "seeds": self.seeds, "seeds_per_cell": self.seeds_per_cell}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], read: Callable[[str, Mapping[str, Any]], Values]) -> "Layout":
        """The layout that `plain` wrote; `read` gets the name and the description of a coordinate."""
        axes = tuple(
            Axis(axis["name"], {name: read(name, described) for name, described in axis["coordinates"].items()})
            for axis in plain["axes"]
        )
        return cls(axes, plain["seeds"], plain["seeds_per_cell"])


def compact(positions: Sequence[int]) -> Positions:
    """Positions as a range, if they are one that begins with 0.

    Example:
        >>> compact([0, 1, 2]), compact([0, 2, 1])
        (range(0, 3), (0, 2, 1))
    """
    whole = range(len(positions))
    return whole if all(map(int.__eq__, positions, whole)) else tuple(positions)


def _checked(axis: Axis) -> Axis:
    sizes = {len(values) for values in axis.coordinates.values()}
    if len(sizes) != 1 or sizes == {0}:
        raise ValueError(f"axis {axis.name!r} must have values, as many of each setting, got {sorted(sizes)}")
    coordinates = {name: column(name, values) for name, values in axis.coordinates.items()}
    own = coordinates.get(axis.name, ())
    if len(set(own)) < len(own):
        twice, _ = Counter(own).most_common(1)[0]
        raise ValueError(f"values of {axis.name!r} must differ, got {twice!r} twice")
    return Axis(axis.name, coordinates)


def _chosen(axis: Axis, positions: Sequence[int]) -> Axis:
    if positions == range(axis.size):
        return axis
    return Axis(axis.name, {name: tuple(values[at] for at in positions) for name, values in axis.coordinates.items()})


def _extended(axis: Axis, new: Axis) -> tuple[Axis, Positions]:
    shorter = min(axis.size, new.size)
    if all(values[:shorter] == new.coordinates[name][:shorter] for name, values in axis.coordinates.items()):
        # One is the beginning of the other. This is fast, also for a random design of a million points.
        found: Positions = range(new.size)
        added: Sequence[int] = range(axis.size, new.size)
    else:
        positions = {key: position for position, key in enumerate(_keys(axis, axis))}
        found = compact([positions.setdefault(key, len(positions)) for key in _keys(new, axis)])
        added = [which for which, position in enumerate(found) if position >= axis.size]
    if not added:
        return axis, found
    coordinates = {
        name: (*values, *(new.coordinates[name][which] for which in added)) for name, values in axis.coordinates.items()
    }
    return _checked(Axis(axis.name, coordinates)), found


def _keys(axis: Axis, order: Axis) -> list[tuple[Any, ...]]:
    """What tells the positions of an axis apart: their values, and how often the same ones were met before."""
    met: Counter[tuple[Any, ...]] = Counter()
    keys = []
    for values in zip(*(axis.coordinates[name] for name in order.coordinates), strict=True):
        keys.append((*values, met[values]))
        met[values] += 1
    return keys


def _names(layout: Layout) -> str:
    return ", ".join(axis.name for axis in layout.axes) or "none"
