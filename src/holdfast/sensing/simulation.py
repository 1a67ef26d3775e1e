"""From settings to results: compose what the settings and the user name, run it, and say what is recorded.

A sweep asks here, too: whether the settings of its points fit together, and for several points as one simulation.
Everything but the label on the result needs jax, numpy and scipy only.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.algorithms.factored import AlgorithmMaker
from holdfast.core.cell_result import CellResult
from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.core.outcome import CODES_IN_WORDS, DIVERGED_AT, outcome_codes
from holdfast.core.progress import Progress
from holdfast.core.run import Records, run
from holdfast.core.validation import require
from holdfast.sensing.batching import BatchingMaker
from holdfast.sensing.builder import Parts, SensingBuilder, Shared
from holdfast.sensing.ensembles import Ensemble
from holdfast.sensing.environments import Environments, Law
from holdfast.sensing.measurements import collect
from holdfast.sensing.oracles.law import OracleMaker
from holdfast.sensing.settings import MEASURED, SWEPT, Settings
from holdfast.sensing.signals import MEANINGS

if TYPE_CHECKING:
    from holdfast.sensing.trajectory import Trajectory

# Runs in one compiled program, at least and at most. On a CPU 12 matrices of 100 x 100 and their temporaries fit into
# the caches of a core, and they take less than the 512 KiB from which on XLA divides a pass over them among threads;
# more than 32 small ones gain little; explicit measurements fill a core with a single run; an accelerator wants to be
# filled, up to its memory.
SLAB_ON_CPU, SLAB_ON_ACCELERATOR, SLAB_OF_MEASUREMENTS = (8, 32), (1, 16384), 1
ENTRIES_ON_CPU, ENTRIES_ON_ACCELERATOR = 12 * 100**2, 2**28  # in all matrices of a slab
_frame = lru_cache(maxsize=8)(orthonormal_frame)  # all cells of a sweep have the same one
# Settings that are no parameter of a run where they are None or zero.
LEFT_OUT = ("width", "noise_variance")
# Numbers in a record next to the singular values, matrices that a step of one run holds, and the most bytes of either.
RECORDED, MATRICES_OF_A_RUN, LARGEST_MEMORY = len(MEANINGS) - 1, 6, 2**36


def simulate(
    settings: Settings,
    *,
    environments: Environments | Law | None = None,
    batching: BatchingMaker | None = None,
    oracle: OracleMaker | None = None,
    algorithm: AlgorithmMaker | None = None,
    ensemble: Ensemble | None = None,
    sweep: Mapping[str, Sequence[float]] | None = None,
    progress: Progress | None = None,
) -> "Trajectory":
    """Simulate SGD on multi-environment matrix sensing.

    Objects of your own replace the parts that the settings name. A function among them identifies the
    compiled program, so define it once and not anew for each call.

    Args:
        settings: what to simulate.
        environments: the environments themselves (see `holdfast.sensing.environments.table`), in which case bias,
            heterogeneity and off_diagonal of the settings have no effect; or a law, which is given those numbers, so
            that they can be swept.
        batching: (environments, batch_size) -> `holdfast.sensing.batching.Batching`.
        oracle: problem -> `holdfast.sensing.oracles.Oracle`.
        algorithm: as `holdfast.algorithms.factored`, perhaps with keyword arguments of its own.
        ensemble: of the measurements.
        sweep: values for keyword arguments of the algorithm; each becomes a dimension of the result. jax traces them.
            Runs with the same seed use the same random numbers, whatever is swept.
        progress: called with (steps done, steps in all), summed over runs.

    Example:
        >>> from holdfast import Settings, simulate
        >>> result = simulate(Settings(dimension=10, steps=200, seeds=4, oracle="population"))
        >>> bool((result.final["invariant"] > 0.9).all())
        True
    """
    from holdfast.sensing.trajectory import Trajectory

    require(isinstance(settings, Settings), "settings must be holdfast.Settings", repr(settings))
    require(sweep is None or isinstance(sweep, Mapping), "sweep must map names to values", repr(sweep))
    require(progress is None or callable(progress), "progress must be a function of (done, total)", repr(progress))
    parts = Parts(environments, batching, oracle, algorithm, sweep or {}, ensemble)
    return Trajectory.of(settings, execute(settings, parts, progress=progress), parts)


def execute(
    settings: Settings,
    parts: Parts | None = None,
    *,
    points: Sequence[tuple[float, ...]] | None = None,
    slab: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Records:
    """As `simulate`, but with plain arrays as the result, one row for each run: needs jax, numpy and scipy only.

    Runs are ordered by the swept settings (first axis slowest), then by the sweep of the parts and then by seed; those
    of `points`, which replace all combinations of swept values, by point and then by seed.

    Example:
        >>> records = execute(Settings(dimension=10, steps=200, seeds=4, oracle="population"))
        >>> records.values["invariant"].shape, bool((records.values["invariant"][:, -1] > 0.9).all())
        ((4, 21), True)
    """
    parts = parts or Parts()
    parts.check(settings)
    if parts.oracle is not None:  # it sees fresh batches of the batch size, as this one does
        settings = replace(settings, oracle="law")
    axes = {**settings.axes, **parts.sweep}
    cells = list(itertools.product(*axes.values()) if points is None else points)
    _check_memory(settings, len(cells))
    build = SensingBuilder.of(settings, parts)
    seeds = np.arange(settings.seed, settings.seed + settings.seeds)
    numbers = {name: getattr(settings, name) for name in SWEPT} | dict(zip(axes, np.array(cells).T, strict=True))
    parameters = {
        name: np.broadcast_to(value, len(cells)).astype(settings.dtype).repeat(len(seeds))
        for name, value in numbers.items()
        if name not in LEFT_OUT or any(settings.values(name))
    }
    parameters["seed"] = np.tile(seeds, len(cells)).astype(np.uint32)
    with jax.enable_x64(settings.dtype == "float64"):
        # Cast by NumPy: jax would compile a program for each shape.
        cast = lambda leaf: jnp.asarray(np.asarray(leaf, settings.dtype))  # noqa: E731
        frame = _frame(settings.dimension, settings.invariant_rank + settings.spurious_rank, settings.problem_seed)
        shared = Shared(cast(frame), jax.tree.map(cast, parts.environments) if build.law is None else None, None)
        if settings.samples_per_environment is not None:
            first = {name: float(values[0]) for name, values in parameters.items()}
            data = collect(
                build.problem(shared, first),
                build.ensemble,
                settings.samples_per_environment,
                noise_variance=first.get("noise_variance", 0.0),
                seed=settings.problem_seed,
            )
            build.rows(data)  # raises an error for a batch larger than the data set
            shared = shared._replace(data=data)
        if any(part is not None for part in (parts.batching, parts.oracle, parts.algorithm)):
            build.check(shared, {name: values[0] for name, values in parameters.items()})
    return run(
        build,
        shared,
        parameters,
        parameters["seed"],
        steps=settings.steps,
        every=settings.every,
        slab=slab or slab_size(settings),
        workers=workers,
        double=settings.dtype == "float64",
        progress=progress,
    )


def _check_memory(settings: Settings, cells: int) -> None:
    """Raise an error for what no machine of today holds, before anything is computed."""
    runs = settings.seeds * cells
    numbers = RECORDED + settings.invariant_rank
    needs = {
        "the records of all runs (fewer seeds, or a larger every, need less)": (
            runs * (settings.steps // settings.every + 2) * numbers
        ),
        "the matrices of one slab (a smaller dimension needs less)": (
            MATRICES_OF_A_RUN * min(slab_size(settings), runs) * settings.dimension**2
        ),
    }
    for what, count in needs.items():
        size = count * np.dtype(settings.dtype).itemsize
        if size > LARGEST_MEMORY:
            raise ValueError(f"{what} must fit into {LARGEST_MEMORY / 2**30:.0f} GiB, got {size / 2**30:,.0f} GiB")


def slab_size(settings: Settings) -> int:
    """How many runs one compiled program holds."""
    if settings.oracle == "data":
        return SLAB_OF_MEASUREMENTS
    on_cpu = jax.default_backend() == "cpu"
    entries = ENTRIES_ON_CPU if on_cpu else ENTRIES_ON_ACCELERATOR
    smallest, largest = SLAB_ON_CPU if on_cpu else SLAB_ON_ACCELERATOR
    return min(largest, max(smallest, entries // settings.dimension**2))


def check_points(shared: Mapping[str, Any], swept: Mapping[str, Sequence[Any]]) -> None:
    """Raise an error if the settings of any point do not fit together.

    Settings of `SWEPT` do not depend on each other, so their values are checked together, not in all combinations.

    Args:
        shared: settings of all points.
        swept: values of settings of `SWEPT`.

    Example:
        >>> check_points({"dimension": 10, "batching": "pooled"}, {"batch_size": (100, 10**7)})
        Traceback (most recent call last):
        ValueError: batch_size must be at most 8388608 for pooled batches, got 10000000
    """
    # One simulation could not have several values of these, but each point of a sweep is a simulation of its own.
    fixed = shared.get("samples_per_environment") is not None
    one_by_one = [*(MEASURED if fixed else ()), *(("batch_size",) if shared.get("oracle", "law") != "law" else ())]
    first: dict[str, Any] = {name: values[0] for name, values in swept.items()}
    together: dict[str, Any] = {name: first[name] if name in one_by_one else swept[name] for name in swept}
    Settings(**shared, **together)
    for name in set(one_by_one) & set(swept):
        for value in swept[name]:
            Settings(**{**shared, **first, name: value})
    if "batch_size" in swept:  # pooled batches have a largest size
        first["batch_size"] = max(swept["batch_size"])
    SensingBuilder.of(Settings(**{**shared, **first}))


def execute_points(points: Sequence[Mapping[str, Any]], seeds: np.ndarray) -> list[Records]:
    """The records of every point, computed as one simulation; the points differ in settings of `SWEPT` only.

    Example:
        >>> shared = {"dimension": 10, "steps": 200, "oracle": "population"}
        >>> points = [{**shared, "bias": 1.0, "heterogeneity": 0.0}, {**shared, "bias": 0.5, "heterogeneity": 6.0}]
        >>> [one.values["spurious"][:, -1].round(1).tolist() for one in execute_points(points, np.arange(2))]
        [[1.0, 1.0], [0.0, 0.0]]
    """
    columns = {name: tuple(point[name] for point in points) for name in points[0]}
    swept = {name: tuple(dict.fromkeys(values)) for name, values in columns.items() if len(set(values)) > 1}
    settings = Settings(**{**points[0], **swept}, seeds=len(seeds), seed=int(seeds[0]))
    records = execute(settings, points=list(zip(*(columns[name] for name in settings.axes), strict=True)))
    rows = [slice(begin, begin + len(seeds)) for begin in range(0, len(points) * len(seeds), len(seeds))]
    return [
        Records(records.steps, {name: each[row] for name, each in records.values.items()}, records.diverged_at[row])
        for row in rows
    ]


def recorded_signals(records: Records) -> CellResult:
    """The signals of runs at every record, with their outcomes and the steps at which they diverged.

    Example:
        >>> recorded = recorded_signals(execute(Settings(dimension=10, steps=200, seeds=4, oracle="population")))
        >>> recorded.values["spurious"].shape, recorded.dimensions["spurious"]
        ((4, 21), ('step',))
    """
    dimensions = {name: ("step", "direction")[: values.ndim - 1] for name, values in records.values.items()}
    values = {**records.values, "outcome": outcome_codes(records), "diverged_at": records.diverged_at}
    meanings = {**MEANINGS, "outcome": CODES_IN_WORDS, "diverged_at": DIVERGED_AT}
    return CellResult(values, {**dimensions, "outcome": (), "diverged_at": ()}, {"step": records.steps}, meanings)


def bytes_of_signals(settings: Mapping[str, Any]) -> int:
    """The size of one record of one run.

    Example:
        >>> bytes_of_signals({"invariant_rank": 1, "dtype": "float64"})
        80
    """
    return (RECORDED + settings["invariant_rank"]) * (8 if settings.get("dtype") == "float64" else 4)
