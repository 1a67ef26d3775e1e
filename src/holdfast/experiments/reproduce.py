"""Runs experiments: progress, figures, numbers, and the table of claims."""

import json
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from holdfast import terminal
from holdfast.claims import HOLDING, Claim, Verdict
from holdfast.experiments import figure_3, figure_4
from holdfast.plots import save, style
from holdfast.trajectory import versions

EXPERIMENTS: dict[str, ModuleType] = {"figure_3": figure_3, "figure_4": figure_4}


def reproduce_all(names: tuple[str, ...], out: Path, *, quick: bool = False, seeds: int | None = None) -> int:
    """Run experiments by name (all if none is given) and write what they show to a folder.

    Returns:
        0, or 1 if a claim that is recorded as holding does not.
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
    ledger: list[Claim] = []
    counts: dict[str, int] = {}
    for name in names or EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        count = seeds or (experiment.QUICK_SEEDS if quick else experiment.SEEDS)
        counts[name] = count
        with terminal.progress(name) as progress:
            data = experiment.simulate(count, progress)
        with style():
            written = save(experiment.draw(data), out, name)
        table = out / f"{name}.csv"
        experiment.numbers(data).to_csv(table, index=False)
        console.print(f"[bold]{name}[/bold] {experiment.TITLE} ({count} seeds)", highlight=False)
        for path in (*written, table):
            console.print(f"  wrote {path}", highlight=False)
        ledger += experiment.claims(data)
    path = out / "claims.json"
    ledger_file = {"versions": versions(), "seeds": counts, "claims": [claim.asdict() for claim in ledger]}
    path.write_text(json.dumps(ledger_file, indent=1, allow_nan=False) + "\n")
    console.print(f"  wrote {path}", highlight=False)
    console.print(_table(ledger))
    broken = [claim.id for claim in ledger if claim.broken]
    if broken:
        console.print(f"[red]recorded as holding, but not this time: {', '.join(broken)}[/red]")
    return 1 if broken else 0


def _table(ledger: list[Claim]) -> Table:
    table = Table(title="Claims", title_justify="left", show_lines=True)
    table.add_column("claim", ratio=1)
    table.add_column("measured, 95 % interval")
    table.add_column("verdict")
    for claim in ledger:
        value, low, high = claim.measured
        colour = "green" if claim.verdict in HOLDING else "yellow" if claim.verdict is Verdict.UNDECIDED else "red"
        table.add_row(
            f"{claim.source}: {claim.statement}\n[dim]{claim.why}[/dim]",
            f"{value:.3g}\n[dim]{low:.3g} to {high:.3g}[/dim]",
            f"[{colour}]{claim.verdict}[/{colour}]",
        )
    return table
