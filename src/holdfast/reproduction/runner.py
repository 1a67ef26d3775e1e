"""Runs experiments: progress, figures, numbers, the claims and a report. What is already computed is reused."""

import json
import threading
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli import terminal
from holdfast.execution.store import DATASETS, FOLDER, Key, Store
from holdfast.experiments import (
    absorbing,
    algorithm_4,
    collapse,
    exponents,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    isometry,
    jump_rates,
    jump_recovery,
    jumps,
    phase,
    proposition_1,
    sequences,
    theorem_2,
    theorem_3,
    theorem_4,
    theorem_8,
)
from holdfast.reproduction.claims import Claim, Verdict
from holdfast.reproduction.page import Section, page
from holdfast.reproduction.results import computed, written
from holdfast.sensing.trajectory import versions

EXPERIMENTS: dict[str, ModuleType] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_5": figure_5,
    "figure_6": figure_6,
    "theorem_2": theorem_2,
    "theorem_3": theorem_3,
    "theorem_4": theorem_4,
    "algorithm_4": algorithm_4,
    "theorem_8": theorem_8,
    "proposition_1": proposition_1,
    "isometry": isometry,
    "sequences": sequences,
    "exponents": exponents,
    "phase": phase,
    "jumps": jumps,
    "jump_rates": jump_rates,
    "absorbing": absorbing,
    "collapse": collapse,
    "jump_recovery": jump_recovery,
}

# Experiments that are computed at a time: while one compiles, which uses one core, the next has the others.
AT_ONCE = 2
COLOURS = {
    Verdict.HOLDS: "green",
    Verdict.HOLDS_WITH_OUR_CHOICE: "green",
    Verdict.DOES_NOT_HOLD: "red",
    Verdict.OUTSIDE_CONSTANTS: "cyan",
    Verdict.UNDECIDED: "yellow",
}


def reproduce_all(names: tuple[str, ...], out: Path, *, quick: bool = False, seeds: int | None = None) -> int:
    """Run experiments by name (all if none is given) and write what they show to a folder.

    An experiment that raises does not stop the others.

    Args:
        names: of the experiments, keys of `EXPERIMENTS`.
        out: the folder; made if it does not exist.
        quick: few seeds, for a look; the verdicts then do not change the exit code.
        seeds: of each curve, instead of the number that each experiment asks for.

    Returns:
        0, or 1 if an experiment failed or, unless `quick`, a claim that is recorded as holding does not.
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"names must be among {', '.join(EXPERIMENTS)}, got {unknown[0]!r}")
    if seeds is not None and seeds < 6:
        raise ValueError(f"seeds must be at least 6, the fewest that give an interval for a median, got {seeds}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    chosen = {name: EXPERIMENTS[name] for name in names or EXPERIMENTS}
    counts = {name: seeds or (each.QUICK_SEEDS if quick else each.SEEDS) for name, each in chosen.items()}
    sections: list[Section] = []
    errors: dict[str, Exception] = {}
    with _computing(chosen, counts, Store(out / FOLDER, DATASETS)) as under_way:
        for place, (name, experiment) in enumerate(chosen.items(), 1):
            head = f"[dim]{place} of {len(chosen)}[/dim] [bold]{name}[/bold]"
            terminal.say(f"{head} {escape(experiment.TITLE)} ({counts[name]} seeds)")
            try:
                data, said = under_way.pop(name).result()
                for line in said:
                    terminal.say(line)
                section = _shown(name, experiment, data, counts[name], out)
                _check_ids(section, sections)
                sections.append(section)
            except Exception as error:  # whatever it is, the other experiments go on; it is shown at the end
                errors[name] = error
                terminal.say("  [red]failed[/red], see the end")
    ledger = [claim for section in sections for claim in section.claims]
    failures = {name: f"{type(error).__name__}: {error}" for name, error in errors.items()}
    ledger_file = {
        "quick": quick,
        "versions": versions(),
        "seeds": {section.name: section.seeds for section in sections},
        "failed": failures,
        "claims": [claim.asdict() for claim in ledger],
    }
    _write(out / "claims.json", json.dumps(ledger_file, indent=1, allow_nan=False) + "\n")
    _write(out / "report.html", page(sections, versions=versions(), quick=quick, failures=failures))
    if ledger:
        console.print(_table(ledger, quick))
    broken = [claim.id for claim in ledger if claim.broken]
    if broken:
        console.print(f"[red]recorded as holding, but not this time: {', '.join(broken)}[/red]")
        if quick:
            console.print("a quick look is no test: this does not change the exit code")
    _show_errors(errors)
    return 1 if errors or (broken and not quick) else 0


class _Computed(NamedTuple):
    data: xr.Dataset
    said: list[str]


class _StoppedError(Exception):
    """The user interrupted."""


@contextmanager
def _computing(
    chosen: Mapping[str, ModuleType], counts: Mapping[str, int], store: Store[xr.Dataset]
) -> Iterator[dict[str, Future[_Computed]]]:
    """The data sets of experiments on their way, in order, a few at a time."""
    stop = threading.Event()
    with terminal.progress_bars() as bars, ThreadPoolExecutor(AT_ONCE) as pool:

        def compute(name: str) -> _Computed:
            def simulate() -> xr.Dataset:
                with bars(name) as show:

                    def report(done: int, total: int) -> None:
                        if stop.is_set():
                            raise _StoppedError
                        show(done, total)

                    return chosen[name].simulate(counts[name], report)

            key = Key(name, {"seeds": counts[name]}, (chosen[name].__name__,), ("jax", "numpy"))
            said: list[str] = []
            return _Computed(computed(store, key, simulate, said.append), said)

        try:
            yield {name: pool.submit(compute, name) for name in chosen}
        except BaseException:
            stop.set()  # an interrupt ends what is under way at its next report
            pool.shutdown(cancel_futures=True)
            raise


def _shown(name: str, experiment: ModuleType, data: xr.Dataset, seeds: int, out: Path) -> Section:
    """Draw and judge one experiment."""
    paths = written(partial(experiment.draw, data), experiment.numbers(data), out, name)
    (figure,) = (path for path in paths if path.suffix == ".svg")
    return Section(
        name=name,
        title=experiment.TITLE,
        about=(experiment.__doc__ or "").strip().partition("\n")[0],
        seeds=seeds,
        figure=figure.read_text(encoding="utf-8"),
        left_open=experiment.OPEN,
        claims=tuple(experiment.claims(data)),
    )


def _check_ids(section: Section, others: list[Section]) -> None:
    """Refuse a claim whose id is taken: the ledger and the links of the report go by it."""
    taken = {claim.id for other in others for claim in other.claims}
    for claim in section.claims:
        if claim.id in taken:
            raise ValueError(f"ids of claims must be unique, got {claim.id!r} twice")
        taken.add(claim.id)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    terminal.say(f"  wrote {escape(str(path))}")


def _table(ledger: list[Claim], quick: bool) -> Table:
    table = Table(title="Claims (quick look)" if quick else "Claims", title_justify="left", show_lines=True)
    table.add_column("claim", ratio=1)
    table.add_column("measured, 95 % interval")
    table.add_column("verdict")
    for claim in ledger:
        value, low, high = claim.measured
        colour = COLOURS[claim.verdict]
        table.add_row(
            f"{escape(claim.source)}: {escape(claim.statement)}\n[dim]{escape(claim.why)}[/dim]",
            f"{value:.4g}\n[dim]{low:.4g} to {high:.4g}[/dim]",
            f"[{colour}]{claim.verdict}[/{colour}]",
        )
    return table


def _show_errors(errors: dict[str, Exception]) -> None:
    """On stderr, each with where it happened."""
    console = Console(stderr=True)
    for name, error in errors.items():
        console.print("".join(traceback.format_exception(error)), highlight=False, markup=False, soft_wrap=True, end="")
        sentence = escape(f"{type(error).__name__}: {error}")
        console.print(f"[red]{name} failed:[/red] {sentence}", highlight=False, soft_wrap=True)
