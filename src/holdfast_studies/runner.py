"""Runs experiments and writes figures, numbers, claims and a report. Data that was saved before is reused."""

import inspect
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from holdfast.core.fingerprint import COMPUTING
from holdfast.core.progress import Progress
from holdfast.core.writing import checked_folder, write_text
from holdfast.plots.bands import write_figure
from holdfast.sensing.trajectory import versions
from holdfast.sweeps.engines.local import Engine, check_engine
from holdfast.sweeps.store.naming import Key
from holdfast_studies.claims import Claim, Statement, coverage
from holdfast_studies.experiment import Effort, Experiment
from holdfast_studies.page import RecordedSection, Section, page
from holdfast_studies.results import Bars, RemoteError, data_sets, no_bars

# The packages that compute; an experiment may name more.
PACKAGES = (*COMPUTING, "optax", "scikit-learn", "scipy")
# What the functions of an experiment return.
RETURNED = {"simulate": xr.Dataset, "draw": Figure, "numbers": pd.DataFrame, "claims": list, "answer": str}


def _ignore(*_: object) -> None:
    pass


def _print_warning(line: str) -> None:
    print(line, file=sys.stderr)


def _print_errors(errors: Mapping[str, Exception]) -> None:
    for name, error in errors.items():
        _print_warning("".join(traceback.format_exception(error)) + f"{name} failed, see above")


@dataclass(frozen=True)
class Reporter:
    """Functions that a run calls on its way. By default warnings and errors go to stderr, and nothing else is reported.

    Attributes:
        begin: (name, title, seeds, position), before the results of an experiment; the position is like "2 of 5".
        note: (line), what happened, and which files were written.
        warn: (line), what went wrong although the results are complete, such as data that could not be saved.
        bars: progress bars, while experiments are computed.
        claims: (claims, quick), at the end.
        errors: (name -> error), of the experiments that failed, at the end.

    Example, where each line is printed:
        >>> Reporter(note=print).note("computed in 1.0 s")
        computed in 1.0 s
    """

    begin: Callable[[str, str, int, str], None] = _ignore
    note: Callable[[str], None] = _ignore
    warn: Callable[[str], None] = _print_warning
    bars: Callable[[], AbstractContextManager[Bars]] = no_bars
    claims: Callable[[Sequence[Claim], bool], None] = _ignore
    errors: Callable[[Mapping[str, Exception]], None] = _print_errors


ONLY_PROBLEMS = Reporter()
"""Reports warnings and errors, on stderr."""


def reproduce(
    experiments: Mapping[str, Experiment],
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    statements: Mapping[str, Statement] | None = None,
    recorded: Sequence[RecordedSection] = (),
    first: Sequence[str] = (),
    engine: Engine | None = None,
    reporter: Reporter = ONLY_PROBLEMS,
) -> int:
    """Run experiments and write their figures, numbers and claims to a folder.

    For each it writes NAME.png, NAME.svg and NAME.csv, and for all of them claims.json and report.html. An experiment
    that raises an error does not stop the others: the error is reported at the end, and is in claims.json["failed"].
    One whose packages are not installed is left out: a warning says what it needs, and so does claims.json["left_out"].

    The data sets that are not in the folder are computed and saved there, one by one, so that the same call resumes
    where it was stopped, and several of them share the work. Each is drawn when it is there, while others are computed;
    those that were there before come last. What is written does not depend on that order.

    Args:
        experiments: by name, see `holdfast_studies.load`; your own as well.
        out: the folder; made if it does not exist.
        quick: a quick look; the verdicts then do not change the exit code.
        seeds: of each curve, instead of the number that each experiment asks for.
        statements: of the sources, by the names that claims give; the report then says which claims test each.
        recorded: results that come with the package; the report shows them and does not count them.
        first: names of experiments to begin with, such as those that take longest.
        engine: where experiments are computed, see `holdfast.sweeps.engines`; by default three at once in threads,
            and each may use all cores. The command takes processes, which do not wait for Python's lock; but a
            script needs `if __name__ == "__main__":` for them, and they import the functions of an experiment, which
            must lie in a module. `ProcessEngine()` chooses them here.
        reporter: where to report; by default warnings and errors go to stderr.

    Returns:
        0, or 1 if an experiment failed, if all of them were left out or, unless `quick`, if a claim is decided
        otherwise than expected or undecided.
        With fewer seeds than an experiment asks for its claims may be undecided.

    Example:
        >>> import tempfile
        >>> from holdfast_studies import load
        >>> reproduce({"figure_2": load("figure_2")}, Path(tempfile.mkdtemp()), quick=True)
        0
    """
    if seeds is not None and seeds < 6:
        raise ValueError(f"seeds must be at least 6, the fewest that give an interval for a median, got {seeds}")
    check_engine(engine)
    checked_folder(out)
    left_out = {name: each.lacks for name, each in experiments.items() if each.lacks}
    experiments = {name: each for name, each in experiments.items() if name not in left_out}
    efforts = {name: each.effort(quick=quick, seeds=seeds) for name, each in experiments.items()}
    drawn: dict[str, Section] = {}
    errors: dict[str, Exception] = {}
    simulations = {name: partial(_simulate, each.simulate, efforts[name]) for name, each in experiments.items()}
    in_turn = sorted(experiments, key=lambda name: first.index(name) if name in first else len(first))
    keys = {name: _key(name, experiments[name], efforts[name]) for name in in_turn}
    with closing(data_sets(simulations, keys, out, engine, reporter.bars)) as sources:
        for number, (name, source) in enumerate(sources, 1):
            experiment, count = experiments[name], efforts[name].seeds
            reporter.begin(name, experiment.title, count, f"{number} of {len(experiments)}")
            try:
                if isinstance(source.data, Exception):
                    raise source.data
                for note in source.notes:
                    reporter.note(note)
                if source.warning is not None:
                    reporter.warn(f"{name}: {source.warning}")
                drawn[name] = _section(name, experiment, source.data, count, out, reporter)
            except Exception as error:  # whatever it is, the other experiments go on; it is reported at the end
                errors[name] = error
                reporter.note("failed, see the end")
    sections: list[Section] = []
    for name in filter(drawn.__contains__, experiments):
        ids = Counter(claim.id for section in (*sections, drawn[name]) for claim in section.claims)
        twice = [each for each, count in ids.items() if count > 1]
        if twice:  # claims.json and the links of the report go by them
            errors[name] = ValueError(f"ids of claims must be unique, got {twice[0]!r} twice")
        else:
            sections.append(drawn[name])
    errors = {name: errors[name] for name in experiments if name in errors}
    claims = [claim for section in sections for claim in section.claims]
    broken = [claim.id for claim in claims if claim.broken]
    full = [section for section in sections if section.seeds >= experiments[section.name].seeds and not quick]
    undecided = [claim.id for section in full for claim in section.claims if claim.undecided]
    failures = {name: _sentence(error) for name, error in errors.items()}
    written = {
        "quick": quick,
        "versions": versions(),
        "seeds": {section.name: section.seeds for section in sections},
        "failed": failures,
        "left_out": left_out,
        "undecided": undecided,
        "claims": [claim.asdict() for claim in claims],
    }
    covered = coverage(statements, claims) if statements else []
    report = page(
        sections, versions=versions(), quick=quick, failures=failures, left_out=left_out, covered=covered,
        recorded=recorded,
    )  # fmt: skip
    for file, text in (("claims.json", json.dumps(written, indent=1, allow_nan=False) + "\n"), ("report.html", report)):
        write_text(out / file, text)
        reporter.note(f"wrote {out / file}")
    reporter.claims(claims, quick)
    if broken:
        reporter.note(f"decided otherwise than expected: {', '.join(broken)}")
    if undecided:
        reporter.note(f"expected to be decided, but undecided this time: {', '.join(undecided)}")
    if broken and quick:
        reporter.note("a quick look is not a test: this does not change the exit code")
    for name, needs in left_out.items():
        reporter.warn(f"not computed: {name} {needs}")
    reporter.errors(errors)
    return 1 if errors or undecided or (broken and not quick) or (left_out and not experiments) else 0


def _key(name: str, experiment: Experiment, effort: Effort) -> Key:
    """The code that counts is that of the simulation: a figure or a claim can change without computing again."""
    function = experiment.simulate
    # Objects that are called hold values that no fingerprint sees; they have no module here, and are not saved.
    home = f"{function.__module__}:{function.__qualname__}" if inspect.isroutine(function) else ""
    settings = {"seeds": effort.seeds, "quick": effort.quick, "platform": versions()["platform"]}
    return Key(name, settings, (home,), (*PACKAGES, *experiment.packages))


def _section(name: str, experiment: Experiment, data: xr.Dataset, seeds: int, out: Path, reporter: Reporter) -> Section:
    """Draw one experiment and test its claims."""
    paths = write_figure(partial(_call, experiment, "draw", data), _call(experiment, "numbers", data), out, name)
    for path in paths:
        reporter.note(f"wrote {path}")
    (figure,) = (path for path in paths if path.suffix == ".svg")
    return Section(
        name=name,
        title=experiment.title,
        about=experiment.source,
        seeds=seeds,
        figure=figure.read_text(encoding="utf-8"),
        left_open=experiment.left_open,
        claims=tuple(_call(experiment, "claims", data)),
        answer=_call(experiment, "answer", data) if experiment.answer else "",
    )


def _call(experiment: Experiment, function: str, *arguments: Any) -> Any:
    """What a function of an experiment returns; raises an error that names the function if it is of another type."""
    return _checked(function, getattr(experiment, function)(*arguments))


def _simulate(simulate: Callable[[Effort, Progress], xr.Dataset], effort: Effort, progress: Progress) -> xr.Dataset:
    """The data of an experiment, without what is only needed to draw it: this travels to workers."""
    return _checked("simulate", simulate(effort, progress))


def _checked(function: str, value: Any) -> Any:
    if not isinstance(value, RETURNED[function]):
        raise ValueError(f"{function} must return a {RETURNED[function].__name__}, got {type(value).__name__}")
    return value


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, RemoteError) else f"{type(error).__name__}: {error}"
