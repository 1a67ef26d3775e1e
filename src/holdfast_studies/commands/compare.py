"""`holdfast compare`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.apps.cli.command import Command
from holdfast.sweeps.engines.local import EngineOptions

QUICK_SEEDS = 3


@dataclass(frozen=True)
class CompareArguments:
    """Run methods for invariant prediction over public tests and write comparison.html.

    What was computed before with the same code and packages is reused, so an interrupted run resumes where it stopped,
    and several commands with the same folder share the work. Exit code 1 if a method failed on a test.

    Examples:

        holdfast compare --list
        holdfast compare --quick --out look
        holdfast compare --recompute --dask scheduler.json --out results
    """

    engine: EngineOptions
    tests: tuple[str, ...] = ()
    """Tests to run; all of them if none is named."""
    methods: tuple[str, ...] = ()
    """Methods to run; all of them if none is named."""
    data_seeds: int | None = None
    """Seeds of each test, instead of its own number; a real table has no more than its folds."""
    out: Path = Path("results")
    """Folder for comparison.html, comparison.json, comparison.md and the cells that the next call reuses."""
    format: Literal["table", "json"] = "table"
    """What to print: readable tables, or JSON."""
    quick: bool = False
    """3 seeds of each test: a quick look, with wide intervals."""
    recompute: bool = False
    """Compute also the recorded cells that come with the package: hours on two cores, minutes on a GPU."""
    record: Path | None = None
    """Write the errors of those cells to this file, in the form that comes with the package; needs --recompute."""
    side_by_side: int | None = None
    """Seeds that a method with many draws fits at once: by default one on a CPU, and all on a GPU."""
    only_cached: bool = False
    """Compute nothing; show and write what was computed so far."""
    list: bool = False
    """Name the tests and methods and stop."""


def execute(arguments: CompareArguments) -> int:
    """Compare, print and write, or name what can be compared."""
    if arguments.list:
        return _list()
    if arguments.record is not None and not arguments.recompute:
        raise ValueError("record needs recompute, or the file would hold what the package has already")
    engine = arguments.engine.engine()

    from holdfast.apps.cli.terminal.progress import work_bar
    from holdfast.core.writing import check_output_folder, write_text
    from holdfast_studies.comparison.recorded import recorded_file
    from holdfast_studies.comparison.rendering import show_comparison, to_html, to_json, to_markdown
    from holdfast_studies.comparison.runner import compare
    from holdfast_studies.comparison.summary import summarize

    check_output_folder(arguments.out)
    with work_bar("comparing") as report:
        comparison = compare(
            arguments.tests,
            arguments.methods,
            data_seeds=QUICK_SEEDS if arguments.quick and arguments.data_seeds is None else arguments.data_seeds,
            out=arguments.out,
            recompute=arguments.recompute,
            only_cached=arguments.only_cached,
            side_by_side=arguments.side_by_side,
            engine=engine,
            report=report,
        )
    summary = summarize(comparison)
    files = {
        "comparison.json": to_json(summary) + "\n",
        "comparison.md": to_markdown(summary),
        "comparison.html": to_html(summary, quick=arguments.quick),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.record is not None:
        write_text(arguments.record, recorded_file(comparison))
    for name, text in files.items():
        write_text(arguments.out / name, text)
    if arguments.format == "json":
        print(files["comparison.json"], end="")
    else:
        show_comparison(summary)
        for name in files:
            print(f"wrote {arguments.out / name}")
        for cell, error in summary.failures.items():
            print(f"{cell.method} failed on {cell.test}, seed {cell.seed}: {error}", file=sys.stderr)
    return 1 if summary.failures else 0


def _list() -> int:
    from holdfast_studies.comparison.methods import METHODS
    from holdfast_studies.comparison.public_tests import PUBLIC_TESTS

    for test in PUBLIC_TESTS.values():
        print(f"test    {test.name:28} {test.about}")
    for method in METHODS.values():
        print(f"method  {method.name:28} {method.title}: {method.about}")
    return 0


COMMAND = Command("Results of the papers, and other methods", CompareArguments, execute)
