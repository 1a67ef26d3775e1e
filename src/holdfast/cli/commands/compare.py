"""`holdfast compare`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

QUICK_SEEDS = 3


@dataclass(frozen=True)
class CompareArguments:
    """Run methods for invariant prediction over public tests and write comparison.html.

    What was already computed with the same code and packages is reused, so an interrupted run goes on where it was.
    Exit code 1 if a method failed on a test.
    """

    tests: tuple[str, ...] = ()
    """Tests to run; all of them if none is named."""
    methods: tuple[str, ...] = ()
    """Methods to run; all of them if none is named."""
    data_seeds: int | None = None
    """Draws of each test, instead of the number that each test asks for; a real table has no more than its folds."""
    out: Path = Path("results")
    """Folder for comparison.html, comparison.json, comparison.md and the cells that are kept for the next call."""
    format: Literal["table", "json"] = "table"
    """What to print: tables for people, or JSON."""
    quick: bool = False
    """3 draws of each test: a look, with wide intervals."""
    recompute: bool = False
    """Compute also what is shipped as recorded: hours on two cores."""
    only_kept: bool = False
    """Compute nothing; show and write what was computed so far."""
    list: bool = False
    """Name the tests and methods and stop."""


def execute(arguments: CompareArguments) -> int:
    """Compare, print and write, or name what can be compared."""
    from holdfast.comparison import METHODS, PUBLIC_TESTS

    if arguments.list:
        for test in PUBLIC_TESTS.values():
            print(f"test    {test.name:28} {test.about}")
        for method in METHODS.values():
            print(f"method  {method.name:28} {method.title}: {method.about}")
        return 0

    from rich.console import Console

    from holdfast.cli import terminal
    from holdfast.comparison import compare
    from holdfast.comparison.markdown import markdown
    from holdfast.comparison.page import page
    from holdfast.comparison.summary import summary, versions
    from holdfast.comparison.table import LEGEND, blocks, terminal_table

    with terminal.progress("comparing") as progress:
        comparison = compare(
            arguments.tests,
            arguments.methods,
            data_seeds=QUICK_SEEDS if arguments.quick and arguments.data_seeds is None else arguments.data_seeds,
            out=arguments.out,
            recompute=arguments.recompute,
            only_kept=arguments.only_kept,
            progress=progress,
        )
    told = json.dumps(summary(comparison), indent=1, allow_nan=False)
    files = {
        "comparison.json": told + "\n",
        "comparison.md": markdown(comparison),
        "comparison.html": page(comparison, versions=versions(), quick=arguments.quick),
    }
    for name, text in files.items():
        (arguments.out / name).write_text(text, encoding="utf-8")
    if arguments.format == "json":
        print(told)
        return 1 if comparison.failures else 0
    console = Console()
    for block in blocks(comparison):
        console.print(terminal_table(block))
    console.print(LEGEND, style="dim")
    for name in files:
        console.print(f"wrote {arguments.out / name}", highlight=False, markup=False, soft_wrap=True)
    errors = Console(stderr=True)
    for (where, who, seed), error in comparison.failures.items():
        errors.print(f"{who} failed on {where}, seed {seed}: {error}", highlight=False, markup=False, soft_wrap=True)
    return 1 if comparison.failures else 0
