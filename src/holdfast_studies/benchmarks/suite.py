"""Runs the benchmarks, prints tables and writes JSON."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path

import jax
from rich.console import Console
from rich.table import Table

from holdfast.core.run import available_workers
from holdfast.core.validation import suggestion
from holdfast.core.writing import check_output, write_text
from holdfast_studies.benchmarks import deep_linear, matrix_sensing, samplers, sweeps, tables

BENCHMARKS = {
    "law_against_data": (
        "Exact law against explicit measurements, d=100",
        matrix_sensing.law_against_data,
    ),
    "cost_against_batch_size": ("Exact law: seconds per trajectory against m", matrix_sensing.cost_against_batch_size),
    "cost_against_dimension": ("Exact law: seconds per trajectory against d", matrix_sensing.cost_against_dimension),
    "quadratic_network": ("One gradient over rank-one measurements", matrix_sensing.quadratic_network),
    "fixed_data": ("One gradient over a fixed data set, d=100", matrix_sensing.fixed_data),
    "deep_linear": ("SGD steps per second over 64 seeds, deep linear networks, 2 x 2", deep_linear.against_torch),
    "table": ("A table of 100 features and 10 environments", tables.against_least_squares),
    "sampler": ("Batches of one environment against a training step, MLP 392-256-1", samplers.against_training),
    "sampler_of_many_rows": ("Sampler of many rows: 5 environments, batches of 16", samplers.many_rows),
    "tables": ("Processor seconds of a fit", tables.fits),
    "small_cells": ("Overhead of a sweep for each small cell", sweeps.store_of_small_cells),
    "long_cells": ("Overhead of a sweep of cells of one second, as a share", sweeps.store_of_long_cells),
    "start": ("Processor seconds before the first cell of a sweep", sweeps.start),
    "two_processes": ("Cells a second of processes that are held to a core", sweeps.two_processes),
}


def report(names: Sequence[str] = (), out: Path | None = None, quick: bool = False) -> int:
    """Run benchmarks one after the other, all of them if none is named; returns the exit code 0."""
    for name in names:
        if name not in BENCHMARKS:
            hint = suggestion(name, BENCHMARKS)
            raise ValueError(f"names must be among {', '.join(BENCHMARKS)}, got {name!r}{hint}")
    if out is not None:
        check_output(out, [".json"], overwrite=True)
    console = Console()
    machine = {
        "backend": jax.default_backend(),
        "device": jax.local_devices()[0].device_kind,
        "workers": available_workers(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "quick": quick,
    }
    console.print(f"{machine['backend']} ({machine['device']}), {machine['workers']} workers, jax {machine['jax']}")
    results: dict = {"machine": machine}
    for name in names or BENCHMARKS:
        title, measure = BENCHMARKS[name]
        try:
            with console.status(title):
                results[name] = measure(quick)
        except ModuleNotFoundError as missing:
            console.print(f"{title}: left out, {missing}")
            continue
        console.print(_table(title, results[name]))
    if out is not None:
        write_text(out, json.dumps(results, indent=1) + "\n")
        console.print(f"wrote {out}", highlight=False)
    return 0


def _table(title: str, result: dict) -> Table:
    """One column of numbers, or one for each entry that is a group of numbers."""
    groups = result if isinstance(next(iter(result.values())), dict) else {"": result}
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in groups:
        table.add_column(name or "measured", justify="right")
    for row in next(iter(groups.values())):
        table.add_row(row.replace("_", " "), *(f"{group[row]:.4g}" for group in groups.values()))
    return table
