"""Simulations: `holdfast simulate`, `window`, `phase` and `jumps`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from holdfast.apps.cli.command import Positional, answer
from holdfast.apps.cli.terminal.progress import note, progress, saving_bar, say, work_bar
from holdfast.completion.settings import CompletionSettings
from holdfast.core.validation import require
from holdfast.core.writing import check_output, checked_folder
from holdfast.sensing.settings import CELLS_OF_A_MAP, LAWS, SEEDS_OF_A_MAP, LawName, OrderName, Settings
from holdfast.sweeps.engines.local import EngineOptions, default_engine
from holdfast.sweeps.store.store import FOLDER

# What a run depends on, besides the strengths.
RUN = ("step_size", "steps", "init_scale")


@dataclass(frozen=True)
class SimulateArguments:
    """Simulate SGD on multi-environment matrix sensing and say what it learned.

    Give a number such as --heterogeneity several values to run them side by side.

    Examples:

        holdfast simulate --heterogeneity 6 --seeds 64
        holdfast simulate --heterogeneity 1 3 5 7 --batching pooled --format json
        holdfast simulate --heterogeneity 7 --order reshuffled --out runs.zarr
    """

    settings: Settings
    out: Path | None = None
    """Write the whole trajectory to this file: NAME.zarr, from which the same command resumes if it was interrupted, or
    NAME.csv."""
    overwrite: bool = False
    """Replace results of other settings."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute_simulate(arguments: SimulateArguments) -> int:
    """Simulate, print, and write the trajectory if a file is named."""
    from holdfast.apps.cli.terminal.simulations import show_trajectory
    from holdfast.sensing.simulation import simulate
    from holdfast.sensing.trajectory import SUFFIXES
    from holdfast.sweeps.running import saved_trajectory

    out, overwrite = arguments.out, arguments.overwrite
    resumed = out if out is not None and out.suffix.lower() == ".zarr" else None
    if out is not None:
        check_output(out, SUFFIXES, overwrite=overwrite or resumed is not None)
    trajectory = _computed("simulating", arguments, resumed, simulate, saved_trajectory)
    answer(arguments.format, trajectory.summary(), lambda: show_trajectory(trajectory))
    if out is not None and resumed is None:
        trajectory.save(out, overwrite=overwrite)
        print(f"wrote {out}", file=sys.stderr)
    return 0


@dataclass(frozen=True)
class WindowArguments:
    """Say at which step sizes heterogeneity washes the spurious signal out, and what to expect at one of them.

    Examples:

        holdfast window --heterogeneity 6 --bias 1
        holdfast window --heterogeneity 6 --bias 1 --batch-size 400
        holdfast window --heterogeneity 3 --bias 1 --format json
        holdfast window --strengths -6 -1 3 8
    """

    heterogeneity: float | None = None
    """Spread M of the spurious strengths around the bias; needed unless strengths are given."""
    bias: float | None = None
    """Mean s of the spurious strengths; needed unless strengths are given."""
    strengths: tuple[float, ...] = ()
    """Spurious strength xi of each of several equally likely environments, instead of heterogeneity and bias."""
    step_size: float = 0.05
    """Step size eta at which the exponent is computed."""
    steps: int = 200
    """Number of steps T."""
    init_scale: float = 1e-3
    """Scale alpha of the starting point."""
    environments: LawName = "two-point"
    """Law of the strengths around the bias, one of `holdfast.sensing.settings.LAWS`."""
    dimension: int = 100
    """Size d of the matrices, which bounds the starting point that is advised."""
    confidence: float = 0.95
    """Wanted probability that the spurious share ends below the tolerance."""
    tolerance: float = 0.01
    """Largest spurious share that counts as washed out."""
    batch_size: int | None = None
    """Measurements m of one environment in each step; without sampling error if not given."""
    noise_variance: float = 0.0
    """Variance of the label noise; needs a batch size."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""

    def __post_init__(self) -> None:
        for name, value in (("heterogeneity", self.heterogeneity), ("bias", self.bias)):
            wanted = "be left out where strengths are" if self.strengths else "be given where no strengths are"
            fits = (value is None) is bool(self.strengths)
            require(fits, f"{name} must {wanted}", "none" if value is None else value)
        # The same numbers are allowed as in a simulation.
        shared = {name: getattr(self, name) for name in (*RUN, "dimension", "noise_variance")}
        Settings(heterogeneity=self.heterogeneity or 0.0, bias=self.bias or 0.0, **shared)


def execute_window(arguments: WindowArguments) -> int:
    """Diagnose and print."""
    import numpy as np

    from holdfast.apps.cli.terminal.simulations import show_diagnosis
    from holdfast.sensing.environments import Environments, table
    from holdfast.theory.diagnosis import diagnose, plain
    from holdfast.theory.window import threshold_heterogeneity

    bias, heterogeneity, threshold = arguments.bias, arguments.heterogeneity, None
    if bias is None or heterogeneity is None:
        environments: Environments = table(np.array(arguments.strengths))
    else:
        law = LAWS[arguments.environments].load()
        environments = law(bias, heterogeneity)
        threshold = threshold_heterogeneity(law, bias, arguments.step_size)
    names = (*RUN, "confidence", "tolerance", "dimension", "batch_size", "noise_variance")
    diagnosis = diagnose(environments, **{name: getattr(arguments, name) for name in names})
    more = {} if threshold is None else {"threshold_heterogeneity": plain(threshold)}
    answer(arguments.format, diagnosis.asdict() | more, lambda: show_diagnosis(diagnosis, threshold))
    return 0


@dataclass(frozen=True)
class PhaseArguments:
    """Map where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable.

    Planes: step_size (and heterogeneity), time (init scale and steps), sampling (batch size and dimension),
    overlap (and heterogeneity). Each is a sweep in the folder .computed: if the command is interrupted, run it again to
    resume; several commands can share one folder, and results of the same cells, seeds and code are reused.

    Examples:

        holdfast phase step_size --out phase
        holdfast phase time overlap --cells 8 --seeds 8 --out look
    """

    engine: EngineOptions
    planes: Annotated[tuple[str, ...], Positional("PLANE")] = ()
    """Planes to map; all of them if none is named."""
    out: Path = Path("phase")
    """Folder for the figures (PNG, SVG) and their numbers (CSV), named after the plane and any non-default options."""
    order: OrderName = "independent"
    """How one environment follows another."""
    cells: int = CELLS_OF_A_MAP
    """Grid points per axis."""
    seeds: int = SEEDS_OF_A_MAP
    """Runs at each grid point."""


def execute_phase(arguments: PhaseArguments) -> int:
    """Map the planes."""
    from functools import partial

    from holdfast.apps.cli.terminal.simulations import show_regions
    from holdfast.apps.cli.terminal.sweeps import show_outcome
    from holdfast.plots.bands import write_figure
    from holdfast.sweeps.phase_diagram import PLANES, draw_phase_diagram, open_phase_diagram, phase_sweep
    from holdfast.sweeps.results import ConflictError, planned
    from holdfast.sweeps.running import run_sweep

    names = tuple(dict.fromkeys(arguments.planes or PLANES))
    engine = arguments.engine.engine() or default_engine()
    chosen: dict[str, Any] = {"order": arguments.order, "cells": arguments.cells, "seeds": arguments.seeds}
    sweeps = {name: phase_sweep(name, **chosen) for name in names}
    folder, diagrams = checked_folder(arguments.out) / FOLDER, {}
    for name, sweep in sweeps.items():
        say(f"[bold]{name}[/bold] {PLANES[name].title}, {arguments.seeds} seeds for each cell")
        file = f"phase_{name}{_suffix(arguments)}"
        path = folder / f"{file}.zarr"
        try:
            planned(sweep, path)
        except ConflictError:  # of holdfast 0.1
            note(f"replaces the results in {path}, which this version cannot resume")
        with work_bar(name) as report:
            outcome = run_sweep(sweep, path, engine, report, overwrite=True)
        show_outcome(sweep, outcome, str(path))
        if outcome.failed:
            return 1
        diagrams[name] = data = open_phase_diagram(name, path)
        numbers = data.to_dataframe().reset_index()
        for written in write_figure(partial(draw_phase_diagram, data), numbers, arguments.out, file):
            note(f"wrote {written}")
    show_regions(diagrams)
    return 0


def _suffix(arguments: PhaseArguments) -> str:
    """The options that are not the defaults, so that no figure overwrites one of other settings."""
    suffix = "" if arguments.order == "independent" else f"_{arguments.order}"
    suffix += "" if arguments.cells == CELLS_OF_A_MAP else f"_{arguments.cells}_cells"
    return suffix + ("" if arguments.seeds == SEEDS_OF_A_MAP else f"_{arguments.seeds}_seeds")


@dataclass(frozen=True)
class JumpsArguments:
    """Complete a matrix with a deep linear network, and say when its rank jumps.

    The defaults are the 2 x 2 example with numbers at which SGD jumps from rank 2 to rank 1.

    Examples:

        holdfast jumps --seeds 64 --offshoots 4
        holdfast jumps --algorithm gradient-descent --steps 5000 --format json
    """

    settings: CompletionSettings
    out: Path | None = None
    """Write the fitted matrices of all runs to NAME.zarr, from which the same command resumes if it was interrupted."""
    overwrite: bool = False
    """Replace results of other settings."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""


def execute_jumps(arguments: JumpsArguments) -> int:
    """Run, find the jumps and print them."""
    from holdfast.apps.cli.terminal.simulations import show_completion
    from holdfast.completion.summary import summarise
    from holdfast.completion.training import simulate_completion
    from holdfast.sweeps.running import saved_completion

    if arguments.out is not None:
        check_output(arguments.out, [".zarr"], overwrite=True)
    summary = summarise(_computed("completing", arguments, arguments.out, simulate_completion, saved_completion))
    answer(arguments.format, summary.asdict(), lambda: show_completion(summary))
    return 0


def _computed(
    label: str, arguments: SimulateArguments | JumpsArguments, resumed: Path | None, compute: Any, save: Any
) -> Any:
    """The results for the settings: of `compute`, or of `save`, which resumes from a file."""
    if resumed is None:
        with progress(label) as report:
            return compute(arguments.settings, progress=report)
    with saving_bar(resumed) as saving:
        return save(arguments.settings, resumed, overwrite=arguments.overwrite, report=saving)
