"""What the computation of one cell of a grid hands back: labelled values for a block of seeds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from holdfast.core.validation import require


@dataclass(frozen=True)
class CellResult:
    """Values for a block of seeds, with the names of their dimensions.

    Attributes:
        values: numbers, booleans or text for each variable, of shape (seeds, ...).
        dimensions: of each variable, the names of its dimensions after the seeds; by default the name of the variable
            with a number.
        coordinates: values along such a dimension, the same in every cell.
        meanings: a line about each variable, for labels of axes.

    Example:
        >>> steps = np.array([0, 50, 100])
        >>> result = CellResult({"loss": np.ones((8, 3))}, {"loss": ("step",)}, {"step": steps}, {"loss": "test loss"})
        >>> result.sizes()
        {'step': 3}
        >>> CellResult({"loss": np.ones((8, 3))}).dimensions
        {'loss': ('loss_1',)}
        >>> CellResult({"loss": np.ones(8), "share": np.ones(4)})
        Traceback (most recent call last):
        ValueError: values must have as many seeds in every variable, got 8 of 'loss' and 4 of 'share'
    """

    values: Mapping[str, np.ndarray]
    dimensions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coordinates: Mapping[str, np.ndarray] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = {name: np.asarray(value) for name, value in self.values.items()}
        arrays = bool(values) and all(value.ndim for value in values.values())
        require(arrays, "values must have one array of shape (seeds, ...) or more", dict(self.values))
        (first, count), *others = ((name, len(value)) for name, value in values.items())
        for name, other in others:
            found = f"{count} of {first!r} and {other} of {name!r}"
            require(other == count, "values must have as many seeds in every variable", found)
        default = {name: tuple(f"{name}_{axis}" for axis in range(1, value.ndim)) for name, value in values.items()}
        dimensions = {name: tuple(self.dimensions.get(name, default[name])) for name in values}
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "coordinates", {name: np.asarray(each) for name, each in self.coordinates.items()})
        sizes = self.sizes()
        for name, coordinate in self.coordinates.items():
            fits = coordinate.shape == (sizes.get(name),)
            require(fits, f"coordinates must fit {sizes}", f"shape {coordinate.shape} for {name!r}")

    @property
    def seeds(self) -> int:
        """How many."""
        return len(next(iter(self.values.values())))

    def sizes(self) -> dict[str, int]:
        """Of the dimensions after the seeds."""
        found: dict[str, int] = {}
        for name, value in self.values.items():
            names = self.dimensions[name]
            contract = f"dimensions must name the {value.ndim - 1} dimensions of {name!r} after the seeds"
            require(len(names) == value.ndim - 1, contract, names)
            for dimension, size in zip(names, value.shape[1:], strict=True):
                known = found.setdefault(dimension, size)
                require(known == size, f"dimension {dimension!r} must have one size", f"{known} and {size}")
        return found
