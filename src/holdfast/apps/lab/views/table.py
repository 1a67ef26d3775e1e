"""Your table: effects by environment, what is selected and why, and errors in held-out environments."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.apps.lab.examples import EXAMPLES, example_table
from holdfast.apps.lab.inputs import choice, column, columns, upload
from holdfast.apps.lab.reasons import reason
from holdfast.apps.lab.snippets import literal
from holdfast.apps.lab.tables import TableLook, check_features, look_at
from holdfast.apps.lab.uploads import Upload
from holdfast.apps.lab.view import Context, Snippets, View
from holdfast.core.progress import stages
from holdfast.core.worker import StoppedError, current_worker
from holdfast.tables.options import ReadingOptions

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from holdfast.estimators.files import FittedTable

# Each is left out and three predictors are fitted to the others; more of them would take too long for a page.
MOST_HELD_OUT = 20
# Of the progress bar: this fit, the pooled one, and both rounds of held-out errors.
STAGES = (30, 20, 30, 20)
CONFIDENCE = 0.95
POOLINGS = {
    "auto": "as much as held-out environments ask for",
    "0": "only effects that hold everywhere",
    "1": "least squares on all features",
}
TASKS = {
    "auto": "classes for text and for two values",
    "regression": "the target is a number",
    "classification": "the target names classes",
}


@dataclass(frozen=True)
class TableSettings:
    """Which table, what its columns are, and how it is fitted."""

    upload: str = upload("Your file", group="Table")
    example: str = choice(
        "gardens", "Without a file, an example", {name: each.about for name, each in EXAMPLES.items()}, group="Table"
    )
    target: str = column("Target, to be predicted", group="Columns")
    environment: str = column("Environment", group="Columns")
    exclude: tuple[str, ...] = columns("Features to leave out", group="Columns")
    task: str = choice("auto", "Task", TASKS, group="Fit")
    pooling: str = choice("auto", "Pooling", POOLINGS, group="Fit")
    feature: str = column("Effects of", group="Drawing", empty="the first that varies", display=True)

    @property
    def fitting(self) -> dict[str, Any]:
        """The arguments of `fit_table` that differ from their defaults."""
        task = {} if self.task == "auto" else {"task": self.task}
        return task | ({} if self.pooling == "auto" else {"pooling": float(self.pooling)})


@dataclass(frozen=True)
class _ChosenTable:
    """A table with what its columns are: chosen by the person, or guessed."""

    file: Upload
    look: TableLook
    target: str
    environment: str
    exclude: tuple[str, ...]
    settings: TableSettings

    @property
    def options(self) -> ReadingOptions:
        return ReadingOptions(exclude=self.exclude)


def compute(settings: TableSettings, context: Context) -> dict[str, Any]:
    """The columns first, then the fit, then the held-out errors, which take longest."""
    chosen = _chosen(settings, context)
    context.send("table", _description(chosen))
    context.send("code", _code(chosen)._asdict())
    fitting, pooling, *holding_out = stages(_stoppable(context), STAGES)
    ours = _fit(chosen, fitting, settings.fitting)
    pooled = ours if settings.pooling == "1" else _fit(chosen, pooling, settings.fitting | {"pooling": 1.0})
    context.send("fit", _findings(ours, pooled))
    held_out = _held_out(chosen, len(ours.model.effects), holding_out)
    return {"held_out": held_out, "summary": _summary(ours, held_out)}


def _chosen(settings: TableSettings, context: Context) -> _ChosenTable:
    from holdfast.tables.labels import parse_environment

    file = context.uploaded(settings.upload) if settings.upload else _example(settings.example)
    look = look_at(file)
    target, environment = settings.target or look.target, settings.environment or look.environment
    if not target:
        raise ValueError("target must be chosen: no column of this table looks like one that is to be predicted")
    if environment == target and not settings.environment:
        environment = ""  # the guess is taken by the target
    names = [each.name for each in look.columns]
    used = {target, *(part.name for part in (parse_environment(environment, names) if environment else ()))}
    exclude = tuple(name for name in settings.exclude if name not in used)
    check_features(look, (*exclude, *used))
    return _ChosenTable(file, look, target, environment, exclude, settings)


def _example(name: str) -> Upload:
    return Upload(f"{name}.csv", example_table(name).to_csv(index=False).encode())


def _stoppable(context: Context) -> Callable[[int, int], None]:
    """Fits report their progress often, and can end there."""

    def report(done: int, total: int) -> None:
        if current_worker().stopped():
            raise StoppedError
        context.progress(done, total)

    return report


def _description(chosen: _ChosenTable) -> dict[str, Any]:
    look = chosen.look
    return {
        "name": chosen.file.name,
        "rows": look.rows,
        "columns": [each._asdict() for each in look.columns],
        "environments": look.environments(),
        "target": chosen.target,
        "environment": chosen.environment,
        "guesses": {"target": look.target, "environment": look.environment},
    }


def _fit(chosen: _ChosenTable, progress: Any, arguments: Mapping[str, Any]) -> "FittedTable":
    from holdfast.estimators.files import fit_table

    progress(0, 1)
    with chosen.file.address() as address:
        found = fit_table(
            address, chosen.target, chosen.environment or None, chosen.options, progress=progress, **arguments
        )
    progress(1, 1)
    return found


def _findings(ours: "FittedTable", pooled: "FittedTable") -> dict[str, Any]:
    """What is drawn and listed: features with verdicts and reasons, effects with intervals, and the model itself."""
    model, estimator = ours
    summary = estimator.summary()
    frame = summary.table
    names = list(frame.index)
    tables = estimator.effect_tables_
    low, high = _interval(tables.effects[names], tables.errors[names], tables.degrees[names])
    together = pooled.estimator.summary().table.loc[names]
    records = [_feature(str(name), frame.loc[name], model.pooling or 0.0, len(tables.effects)) for name in names]
    return {
        "task": model.task,
        "rows": model.rows,
        "pooling": model.pooling,
        "explained": summary.explained,
        "explained_by_all": summary.explained_by_all,
        "units": [summary.units[name] for name in names],
        "features": records,
        "environments": [str(label) for label in tables.effects.index],
        "effects": {"value": tables.effects[names].to_numpy(float), "low": low, "high": high},
        "pooled": {each: together[key].to_numpy(float) for each, key in _COEFFICIENT.items()},
        "advice": list(model.advice),
        "notes": list(model.notes),
        "legend": summary.legend,
        "model": model.json().decode(),
    }


_COEFFICIENT = {"value": "coefficient", "low": "low", "high": "high"}


def _feature(name: str, row: "pd.Series", pooling: float, environments: int) -> dict[str, Any]:
    from scipy.stats import t

    half = t.isf((1 - CONFIDENCE) / 2, max(environments - 1, 1)) * row["effect_error"]
    return {
        "name": name,
        "verdict": row["verdict"],
        "reason": reason(row, pooling),
        **{each: float(row[key]) for each, key in _COEFFICIENT.items()},
        "effect": float(row["effect"]),
        "effect_low": float(row["effect"] - half),
        "effect_high": float(row["effect"] + half),
        "between": float(row["between"]),
        "i_squared": float(row["i_squared"]),
        "lowest": float(row["lowest_effect"]),
        "highest": float(row["highest_effect"]),
        "p_value": float(row["significance"]),
    }


def _interval(
    effects: "pd.DataFrame", errors: "pd.DataFrame", degrees: "pd.DataFrame"
) -> tuple["np.ndarray", "np.ndarray"]:
    """95 % by Student, as in the forest plots of the library."""
    from scipy.stats import t

    middle = effects.to_numpy(float)
    half = t.isf((1 - CONFIDENCE) / 2, degrees.to_numpy(float)) * errors.to_numpy(float)
    return middle - half, middle + half


def _held_out(chosen: _ChosenTable, environments: int, progress: Sequence[Any]) -> dict[str, Any]:
    """Errors in environments that were left out, or a sentence why there are none."""
    from holdfast.estimators.files import held_out_table

    if not chosen.environment or environments < 2:
        return {"sentence": "Without two environments, none can be left out."}
    if environments > MOST_HELD_OUT:
        return {
            "sentence": f"There are {environments} environments: leaving out each of them takes too long for a page of "
            f"at most {MOST_HELD_OUT}. The command does it with --held-out."
        }
    arguments: dict[str, Any] = dict(chosen.settings.fitting)
    errors = {}
    try:
        for name, pooling, report in (("this fit", None, progress[0]), ("strict", 0.0, progress[1])):
            asked = arguments if pooling is None else arguments | {"pooling": pooling}
            with chosen.file.address() as address:
                found = held_out_table(
                    address, chosen.target, chosen.environment, chosen.options, progress=report, **asked
                )
            errors[name] = found["hetero"]
            errors["least squares"] = found["pooled"]
    except ValueError as error:
        return {"sentence": f"No environment can be left out: {error}."}
    return {
        "environments": [str(label) for label in errors["this fit"].index],
        "errors": {name: errors[name].to_numpy(float) for name in ("this fit", "strict", "least squares")},
    }


def _summary(ours: "FittedTable", held_out: Mapping[str, Any]) -> str:
    """The result in a few sentences."""
    model, estimator = ours
    selected, features = int(estimator.stability_["selected"].sum()), len(estimator.stability_)
    many = len(model.effects)
    environments = f"{many} environments" if many > 1 else "one environment"
    used = "1 feature" if features == 1 else f"{features} features"
    words = (
        f"{model.task.capitalize()} of {model.target} from {used}: {model.rows:,} rows, {environments}. "
        f"{selected} of {used} {'has' if selected == 1 else 'have'} the same effect everywhere."
    )
    if "errors" not in held_out:
        return f"{words} {held_out['sentence']}"
    what = "Share of wrong classes" if model.task == "classification" else "Mean squared error"
    listed = ", ".join(f"{name} {each.mean():.3g} ({each.max():.3g})" for name, each in held_out["errors"].items())
    return f"{words} {what} in held-out environments, on average (and the worst): {listed}."


def _code(chosen: _ChosenTable) -> Snippets:
    """The same fit in Python and as a command, with the columns that were chosen or guessed."""
    settings, name = chosen.settings, chosen.file.name
    fitting = [f"{each}={literal(value)}" for each, value in settings.fitting.items()]
    table = [f"target={literal(chosen.target)}"]
    table += [f"environment={literal(chosen.environment)}"] if chosen.environment else []
    names = ", ".join(map(literal, chosen.exclude))
    table += [f"options=ReadingOptions(exclude=({names},))"] if chosen.exclude else []
    arguments = "".join(f"    {each},\n" for each in [literal(name), *table, *fitting])
    make = (
        "" if settings.upload else f"example_table({literal(settings.example)}).to_csv({literal(name)}, index=False)\n"
    )
    imports = ["from pathlib import Path\n"]
    imports += ["from holdfast.estimators import fit_table"]
    imports += ["from holdfast.tables import ReadingOptions"] if chosen.exclude else []
    imports += ["from holdfast.apps.lab.examples import example_table"] if make else []
    python = (
        "\n".join(imports)
        + f"""

{make}model, estimator = fit_table(
{arguments})
print(estimator.summary())
print(*model.notes, *model.advice, sep="\\n")
model.save(Path("model.json"))
"""
    )
    return Snippets(python, _command(chosen))


def _command(chosen: _ChosenTable) -> str:
    settings, name = chosen.settings, chosen.file.name
    words = ["holdfast", "fit", name, f"--target={chosen.target}"]
    words += [f"--environment={chosen.environment}", "--held-out"] if chosen.environment else []
    if any("," in each for each in chosen.exclude):
        words += ["--exclude", *chosen.exclude]
    elif chosen.exclude:  # one word, so that a name may begin with a dash
        words += [f"--exclude={','.join(chosen.exclude)}"]
    words += [f"--{each}={value}" for each, value in settings.fitting.items()]
    command = shlex.join([*words, "--out", "model.json"])
    if settings.upload:
        return command
    script = f'from holdfast.apps.lab.examples import example_table; example_table("{settings.example}")'
    return f"python -c {shlex.quote(f'{script}.to_csv({literal(name)}, index=False)')} && {command}"


def snippets(settings: TableSettings) -> Snippets:
    """None before the table is known: `compute` sends the code then."""
    return Snippets("", "")


VIEW = View(TableSettings, compute, snippets)
