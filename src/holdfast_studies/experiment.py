"""The contract of an experiment: a simulation, a figure, numbers and claims that follow from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from holdfast.core.progress import Progress
from holdfast.core.validation import COUNT

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from holdfast_studies.claims import Claim


@dataclass(frozen=True)
class Effort:
    """How much to compute.

    Attributes:
        seeds: of each curve or cell.
        quick: a quick look: few seeds, and in long experiments a part of the steps or cells.

    Example:
        >>> Effort(64).steps(1000, part=5), Effort(4, quick=True).steps(1000, part=5)
        (1000, 200)
    """

    seeds: int
    quick: bool = False

    def steps(self, full: int, part: int) -> int:
        """All steps, or one in `part` of them in a quick look."""
        return full // part if self.quick else full

    @property
    def slab(self) -> int | None:
        """How many runs a compiled program holds: in a quick look those of one cell, so that all cells share it."""
        return self.seeds if self.quick else None


@dataclass(frozen=True)
class Experiment:
    """A figure, theorem or question, with all that it takes to answer it.

    Attributes:
        title: in a few words.
        source: one sentence that says what is tested, and where it comes from.
        left_open: what the source leaves open, and what was chosen instead.
        seeds: in a full run.
        quick_seeds: in a quick look. The interval of a median needs at least 6.
        simulate: (effort, progress) -> the data, an xarray Dataset.
        draw: the figure, a matplotlib Figure, from the data.
        numbers: what the figure shows, a pandas DataFrame.
        claims: what the source says, measured on the data: a list of claims.
        answer: the answer in a few words, with numbers from the data; the report shows it first. None: no question.
        packages: that it needs beyond those of holdfast itself, each with the extra that installs it.

    Example:
        >>> from holdfast_studies import load
        >>> experiment = load("figure_2")
        >>> data = experiment.simulate(Effort(seeds=1000), None)
        >>> {claim.verdict.value for claim in experiment.claims(data)}
        {'holds with our choice'}
    """

    title: str
    source: str
    left_open: tuple[str, ...]
    seeds: int
    quick_seeds: int
    simulate: "Callable[[Effort, Progress | None], xr.Dataset]"
    draw: "Callable[[xr.Dataset], Figure]"
    numbers: "Callable[[xr.Dataset], pd.DataFrame]"
    claims: "Callable[[xr.Dataset], list[Claim]]"
    answer: "Callable[[xr.Dataset], str] | None" = None
    packages: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        COUNT.check("seeds", self.seeds)
        COUNT.check("quick_seeds", self.quick_seeds)

    @property
    def lacks(self) -> str:
        """The packages that are missing and how to install them, in words; empty if none is missing."""
        missing = [package for package in self.packages if find_spec(package) is None]
        extras = ",".join(self.packages[package] for package in missing)
        return f"needs {' and '.join(missing)}: pip install 'holdfast[{extras}]'" if missing else ""

    def effort(self, *, quick: bool = False, seeds: int | None = None) -> Effort:
        """The effort of a full run or a quick look, with another number of seeds if one is given."""
        return Effort(seeds or (self.quick_seeds if quick else self.seeds), quick)
