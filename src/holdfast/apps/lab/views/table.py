"""Your table: which relations hold, which are dangerous, their effects, and errors in held-out environments."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.apps.cli.terminal.tables import COLUMNS_ARGUMENT
from holdfast.apps.lab.inputs import choice, column, columns, upload
from holdfast.apps.lab.tables import EXAMPLES, TableLook, check_features, example_table, look_at
from holdfast.apps.lab.uploads import Upload
from holdfast.apps.lab.view import Context, View, as_call, as_command
from holdfast.core.progress import Progress, stages
from holdfast.tables.options import ReadingOptions

if TYPE_CHECKING:
    from holdfast.estimators.files import FittedTable

# Each is left out and three predictors are fitted to the others; more of them would take too long for a page.
MOST_HELD_OUT = 20
# Of the progress bar: this fit, the pooled one, and both rounds of held-out errors.
STAGES = (30, 20, 30, 20)
POOLINGS = {
    "auto": "chosen from errors in held-out environments",
    0: "only effects that hold everywhere",
    1: "least squares on all features",
}
TASKS = {
    "auto": "classification for text or two values, else regression",
    "regression": "the target is a number",
    "classification": "the target names classes",
}


@dataclass(frozen=True)
class TableSettings:
    """Which table, what its columns are, and how it is fitted."""

    upload: str = upload("Your file", group="Table")
    example: str = choice("gardens", "Without a file, an example", EXAMPLES, group="Table")
    target: str = column("Target, to be predicted", group="Columns")
    environment: str = column("Environment", group="Columns")
    exclude: tuple[str, ...] = columns("Features to leave out", group="Columns")
    before: tuple[str, ...] = columns("Recorded before the target", group="Columns")
    after: tuple[str, ...] = columns("Recorded after the target, or because of it", group="Columns")
    task: str = choice("auto", "Task", TASKS, group="Fit")
    pooling: str | int = choice("auto", "Pooling", POOLINGS, group="Fit")
    feature: str = column("Effects of", group="Drawing", empty="the most dangerous", display=True)


@dataclass(frozen=True)
class _ChosenTable:
    """A table with what its columns are: chosen by the user, or guessed."""

    file: Upload
    look: TableLook
    target: str
    environment: str
    exclude: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    settings: TableSettings

    @property
    def fitting(self) -> dict[str, Any]:
        """The arguments of `fit_table` that differ from their defaults."""
        chosen = {name: getattr(self.settings, name) for name in ("task", "pooling")}
        declared = {name: getattr(self, name) for name in ("before", "after")}
        return {name: value for name, value in (chosen | declared).items() if value not in ("auto", ())}

    def each(self, function: Callable[..., Any], progress: Any, **more: Any) -> Any:
        """`fit_table` or `held_out_table` of this table."""
        columns = (self.target, self.environment or None, ReadingOptions(exclude=self.exclude))
        with self.file.address() as address:
            return function(address, *columns, progress=progress, **self.fitting | more)


def compute(settings: TableSettings, context: Context) -> dict[str, Any]:
    """The columns first, then the fit, then the held-out errors, which take longest."""
    from holdfast.estimators.files import fit_table

    chosen = _chosen(settings, context)
    context.send("table", _description(chosen))
    context.send("code", _code(chosen))
    fitting, pooling, *holding_out = stages(context.progress, STAGES)
    ours = chosen.each(fit_table, fitting)
    pooled = ours if settings.pooling == 1 else chosen.each(fit_table, pooling, pooling=1.0)
    context.send("fit", _findings(ours, pooled))
    held_out = _held_out(chosen, len(ours.model.effects), *holding_out)
    return {"held_out": held_out, "summary": _summary(ours, held_out)}


def _chosen(settings: TableSettings, context: Context) -> _ChosenTable:
    from holdfast.tables.labels import parse_environment

    if settings.upload:
        file = context.uploaded(settings.upload)
    else:
        file = Upload(f"{settings.example}.csv", example_table(settings.example).to_csv(index=False).encode())
    look = look_at(file)
    target, environment = settings.target or look.target, settings.environment or look.environment
    if not target:
        raise ValueError("target must be chosen: no column of this table looks like one that is to be predicted")
    if environment == target and not settings.environment:
        environment = ""  # the guess is taken by the target
    names = [each.name for each in look.columns]
    used = {target, *(part.name for part in (parse_environment(environment, names) if environment else ()))}
    exclude = tuple(name for name in settings.exclude if name not in used)
    before, after = (
        tuple(name for name in each if name not in (*used, *exclude)) for each in (settings.before, settings.after)
    )
    check_features(look, (*exclude, *used))
    return _ChosenTable(file, look, target, environment, exclude, before, after, settings)


def _description(chosen: _ChosenTable) -> dict[str, Any]:
    look = chosen.look
    return {
        "name": chosen.file.name,
        "rows": look.rows,
        "columns": [each.name for each in look.columns],
        "environments": look.environments(),
        "target": chosen.target,
        "environment": chosen.environment,
        "guesses": {"target": look.target, "environment": look.environment},
    }


def _findings(ours: "FittedTable", pooled: "FittedTable") -> dict[str, Any]:
    """What is drawn and listed: features with verdicts and reasons, effects with intervals, and the model itself."""
    from scipy.stats import t

    from holdfast.core.statistics import UPPER
    from holdfast.estimators.summary import VERDICTS

    model, estimator = ours
    summary, tables = estimator.summary(), estimator.effect_tables_
    printed = summary.printed
    features, names = summary.table, list(summary.table.index)
    # 95 % by Student, as in the forest plots of the library.
    effects, half = tables.effects[names], t.ppf(UPPER, tables.degrees[names]) * tables.errors[names]
    described = features.assign(reason=features["verdict"].map(VERDICTS), unit=[summary.units[name] for name in names])
    compared = pooled.estimator.relations_[["coefficient"]].add_prefix("pooled_")
    meanings = [f"{verdict}: {words}" for verdict, words in VERDICTS.items() if verdict in set(features["verdict"])]
    drawn = {"value": effects, "low": effects - half, "high": effects + half}
    return {
        "task": model.task,
        "features": [{"name": str(name), **row} for name, row in described.join(compared).to_dict("index").items()],
        "environments": [str(label) for label in effects.index],
        "effects": {name: each.to_numpy(float) for name, each in drawn.items()},
        "advice": [COLUMNS_ARGUMENT.sub(r"that it was recorded \1 the target", sentence) for sentence in model.advice],
        "notes": [*meanings, *printed.explained(printed.cells), *model.notes],
        "model": model.json().decode(),
    }


def _held_out(chosen: _ChosenTable, environments: int, fitting: Progress, comparing: Progress) -> dict[str, Any]:
    """Errors in environments that were left out, or a sentence why there are none."""
    from holdfast.estimators.files import held_out_table

    if not chosen.environment or environments < 2:
        return {"sentence": "Without two environments, none can be left out."}
    if environments > MOST_HELD_OUT:
        return {
            "sentence": f"Leaving out each of {environments} environments takes too long on the page, where at most "
            f"{MOST_HELD_OUT} are left out; the command does it with --held-out."
        }
    try:
        ours = chosen.each(held_out_table, fitting)
        strict = chosen.each(held_out_table, comparing, pooling=0.0)
    except ValueError as error:
        return {"sentence": f"No environment can be left out: {error}."}
    errors = {"this fit": ours["hetero"], "strict": strict["hetero"], "least squares": strict["pooled"]}
    return {
        "environments": [str(label) for label in strict.index],
        "errors": {name: each.to_numpy(float) for name, each in errors.items()},
    }


def _summary(ours: "FittedTable", held_out: Mapping[str, Any]) -> str:
    """The result in a few sentences."""
    words = ours.estimator.summary().headline
    if "errors" not in held_out:
        return f"{words} {held_out['sentence']}"
    what = "Share of wrong classes" if ours.model.task == "classification" else "Mean squared error"
    listed = ", ".join(f"{name} {each.mean():.3g} ({each.max():.3g})" for name, each in held_out["errors"].items())
    return f"{words} {what} in held-out environments, on average (and the worst): {listed}."


def _code(chosen: _ChosenTable) -> dict[str, str]:
    """The same fit in Python and as a command, with the columns that were chosen or guessed."""
    settings, name, exclude = chosen.settings, chosen.file.name, chosen.exclude
    columns = {"target": chosen.target} | ({"environment": chosen.environment} if chosen.environment else {})
    options = [f"options=ReadingOptions(exclude={exclude!r})"] if exclude else []
    imports = ["from holdfast.estimators import fit_table"]
    imports += ["from holdfast.tables import ReadingOptions"] if exclude else []
    held_out = ["--held-out"] if chosen.environment else []
    words = ["fit", name, *held_out, "--out=model.json", *map("--exclude={}".format, exclude)]
    several = {"before": chosen.before, "after": chosen.after}
    words += [f"--{option}={each}" for option, given in several.items() for each in given]
    single = {option: value for option, value in chosen.fitting.items() if option not in several}
    command, make = as_command(words, columns | single), ""
    if not settings.upload:
        example = "from holdfast.apps.lab.tables import example_table"
        make = f"example_table({settings.example!r}).to_csv({name!r}, index=False)\n"
        imports.append(example)
        command = f"python -c {shlex.quote(f'{example}; {make.strip()}')} && {command}"
    listed = "\n".join(imports)
    python = f"""from pathlib import Path

{listed}

{make}model, estimator = {as_call("fit_table", columns | chosen.fitting, repr(name), *options)}
print(estimator.summary())
model.save(Path("model.json"))
"""
    return {"python": python, "command": command}


VIEW = View(TableSettings, compute)
