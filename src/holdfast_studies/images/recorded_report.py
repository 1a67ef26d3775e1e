"""The recorded results on coloured MNIST for the report and the documentation.

    python -m holdfast_studies.images.recorded_report docs

writes the tables and the map of the gain into the folder of the documentation.
"""

import sys
from pathlib import Path

import numpy as np

from holdfast.core.statistics import mean_interval
from holdfast.core.writing import write_text
from holdfast_studies.images.gain_figure import draw_gain_map
from holdfast_studies.images.public_scripts import PublicScript, public_script_file, public_script_runs
from holdfast_studies.images.published import published_accuracies
from holdfast_studies.images.recorded_gains import gains_by_difference, recorded_gain_map
from holdfast_studies.images.recorded_images import (
    about_recorded_images,
    estimate_text,
    paired_gain,
    recorded_results,
    rule_rows,
    table_rows,
)
from holdfast_studies.images.recorded_trials import (
    about_trials,
    direction_rows,
    gain_rows,
    last_step_rows,
    recorded_trials,
)
from holdfast_studies.page import RecordedSection

# Included by docs/coloured_mnist.md, each in its section.
TABLE, SCRIPTS, GAINS = "coloured_mnist_table.md", "coloured_mnist_scripts.md", "coloured_mnist_gains.md"
TRIALS = "coloured_mnist_trials.md"
GAIN_FIGURE = "coloured_mnist_gain.png"
SCRIPT_RULES = {
    "authors": "rerun, settings of the authors",
    "worst": "step and setting by the worst environment",
    "worst, last step": "last step, setting by the worst environment",
    "test, last step": "last step, best setting on test",
}


def recorded_section() -> RecordedSection:
    """The table, as a section of the report of a reproduction.

    Example:
        >>> recorded_section().columns
        ('method', '0.8 and 0.9', '0.9 and 0.3')
    """
    head, *rows = table_rows()
    return RecordedSection(
        name="coloured-mnist",
        title="Coloured MNIST",
        about=about_recorded_images(),
        columns=head,
        rows=tuple(rows),
    )


def results_markdown() -> str:
    """Every method by its rule, and what other rules do.

    Example:
        >>> results_markdown().splitlines()[2]
        '| method | 0.8 and 0.9 | 0.9 and 0.3 |'
    """
    problems = list(recorded_results()["problems"])
    gains = (estimate_text(paired_gain("in turn, averaged", "pooled SGD, averaged", each)) for each in problems)
    parts = [about_recorded_images(), _table(table_rows())]
    parts.append(f"In turn against pooled SGD, seed by seed: a gain of {' and '.join(gains)}.")
    for problem in problems:
        parts += [f"Methods whose papers choose on test, with {problem}, by three rules:", _table(rule_rows(problem))]
    return _page(parts)


def scripts_markdown() -> str:
    """What others published, and their scripts on the same images.

    Example:
        >>> scripts_markdown().splitlines()[0]
        'Published, with the agreements 0.8 and 0.9:'
    """
    content = public_script_file()
    about, versions = content["about"], content["about"]["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts = [
        "Published, with the agreements 0.8 and 0.9:",
        _table(published_rows()),
        f"The public scripts, recorded on {about['device']} ({named}). {about['data']}.",
        _table(script_rows()),
        "What was changed to run them:",
        "\n".join(f"- {each}" for each in about["changes"]),
        f"Settings with held-out rows are drawn 5 times for each of 10 seeds: {content['draws']}.",
    ]
    return _page(parts)


def gains_markdown() -> str:
    """The gain of one environment a step, by the difference of the agreements, the step size and the order.

    Example:
        >>> gains_markdown().splitlines()[2]
        '| order | difference | step size 0.3 | step size 1 | step size 2 |'
    """
    measured = recorded_gain_map()
    settings, seeds = measured["settings"], measured["settings"]["seeds"]
    rows: list[tuple[str, ...]] = [("order", "difference", *(f"step size {size:g}" for size in measured["step_sizes"]))]
    for order in measured["accuracy"]:
        if order != "pooled":
            for difference, found in gains_by_difference(order).items():
                rows.append((order, f"{difference:g}", *map(estimate_text, found)))
    about = (
        f"Recorded, not computed here: {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}), {settings['images']:,} images, "
        f"{settings['steps']:,} steps, on {measured['sessions'][-1]['device']}. Gain in accuracy at the test over "
        "pooled SGD with the same step size, mean over the mean agreements 0.6 and 0.7, with its interval of 95 % over "
        "the seeds."
    )
    return _page([about, _table(rows)])


def trials_markdown() -> str:
    """Further ideas, each against what it would replace.

    Example:
        >>> trials_markdown().splitlines()[2][:19]
        '| trial | against |'
    """
    recorded = recorded_trials()
    parts = [
        about_trials(recorded),
        _table(gain_rows(recorded)),
        "One environment a step at the last step, with the setting that is best on test:",
        _table(last_step_rows(recorded)),
        "Directions of the last hidden layer of the pooled network in which means, or variances, vary:",
        _table(direction_rows(recorded)),
    ]
    return _page(parts)


def published_rows() -> list[tuple[str, ...]]:
    """The table of what others published: its head, then a row for each number.

    Example:
        >>> published_rows()[0]
        ('method', 'accuracy', 'settings chosen by', 'source')
    """
    rows: list[tuple[str, ...]] = [("method", "accuracy", "settings chosen by", "source")]
    for each in published_accuracies():
        source = f"[arXiv:{each.source.arxiv}](https://arxiv.org/abs/{each.source.arxiv}), {each.source.table}"
        rows.append((each.method, f"{each.test / 100:.3f} ± {each.spread / 100:.3f}", each.rule, source))
    return rows


def script_rows() -> list[tuple[str, ...]]:
    """The public scripts: what was published, and what they do here by each rule; a head, then a row for each.

    Example:
        >>> [cell[:5] for cell in script_rows()[2]][1:4]
        ['IRM', '0.669', '0.658']
    """
    rows: list[tuple[str, ...]] = [("script", "method", "published", *SCRIPT_RULES.values())]
    for script, method in dict.fromkeys((each.script, each.method) for each in public_script_runs()):
        published = [
            f"{each.test / 100:.3f} ± {each.spread / 100:.3f}"
            for each in published_accuracies()
            if each.method == method and each.source.arxiv == script.arxiv
        ]
        values = {each.rule: each.test for each in public_script_runs(method) if each.script == script}
        cells = published or [""]
        for rule in SCRIPT_RULES:
            if rule not in values:
                cells.append("")
            elif rule == "authors":  # as the papers have it: the standard deviation over the restarts
                cells.append(f"{np.mean(values[rule]):.3f} ± {np.std(values[rule]):.3f}")
            else:
                cells.append(estimate_text(mean_interval(values[rule])))
        rows.append((_link(script), method, *cells))
    return rows


def _link(script: PublicScript) -> str:
    address = f"https://github.com/{script.repository}/blob/{script.commit}/{script.path}"
    return f"[{script.repository.partition('/')[2]}]({address})"


def _table(rows: list[tuple[str, ...]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def _page(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main(folder: str) -> None:
    """Write tables and figure into the folder of the documentation."""
    pages = {TABLE: results_markdown, SCRIPTS: scripts_markdown, GAINS: gains_markdown, TRIALS: trials_markdown}
    for name, write in pages.items():
        write_text(Path(folder) / name, write())
    draw_gain_map(recorded_gain_map()).savefig(Path(folder) / GAIN_FIGURE, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
