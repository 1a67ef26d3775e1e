"""A quick look at experiments of many runs: few seeds, and a part of the steps or cells."""

# Fewer than `holdfast reproduce --seeds` accepts, so that this number of seeds says that a quick look is meant. One
# number for all: runs of equal shape then share their compiled programs, which take most of the time of a quick look.
SEEDS = 4


def is_meant(seeds: int) -> bool:
    """Whether so few seeds are a quick look."""
    return seeds <= SEEDS


def steps(full: int, seeds: int, part: int) -> int:
    """How many steps to take with so many seeds: all, or in a quick look one part in so many.

    Example:
        >>> steps(1000, SEEDS, 5), steps(1000, 64, 5)
        (200, 1000)
    """
    return full // part if is_meant(seeds) else full


def slab(seeds: int) -> int | None:
    """How many runs a compiled program holds: in a quick look that of one cell, so that all cells share it."""
    return SEEDS if is_meant(seeds) else None
