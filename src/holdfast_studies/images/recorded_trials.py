"""Recorded trials of further ideas on coloured MNIST: the gain of each over what it would replace, seed by seed."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.statistics import Estimate, mean_interval
from holdfast_studies.images.recorded_images import estimate_text

TRIALS = Path(__file__).with_name("further_trials.json")
# Seeds that were looked at before, and seeds that are run once.
LOOKED_AT, CONFIRMED = range(1002, 1005), range(1005, 1015)
# Trial -> what it would replace.
COMPARISONS = {
    "discover and offset, decaying": "discover and offset, constant",
    "in turn, growing": "in turn, constant",
    "in turn, decaying": "in turn, constant",
    "in turn, amplified": "in turn, constant",
    "head after in turn": "head after pooled",
}
# Of the tests for directions in which means or variances vary.
LEVEL = 0.01


@cache
def recorded_trials() -> dict[str, Any]:
    """The trials, as `python -m holdfast_studies.images.further_trials` wrote them.

    Example:
        >>> list(recorded_trials())
        ['settings', 'protocol', 'sessions', 'problems']
    """
    return json.loads(TRIALS.read_text(encoding="utf-8"))


def seed_gain(recorded: dict[str, Any], trial: str, problem: str, seeds: Sequence[int]) -> Estimate:
    """Accuracy at the test of a trial minus that of what it would replace, mean over the seeds with its interval.

    Args:
        recorded: what `python -m holdfast_studies.images.further_trials` wrote.
        trial: a name in `COMPARISONS`.
        problem: a name in the file.
        seeds: those to compare.

    Example:
        >>> results = {"head after pooled": {"test": [0.6, 0.7]}, "head after in turn": {"test": [0.61, 0.71]}}
        >>> recorded = {"settings": {"seeds": [5, 6]}, "problems": {"0.9 and 0.3": results}}
        >>> round(seed_gain(recorded, "head after in turn", "0.9 and 0.3", [5, 6]).value, 3)
        0.01
    """
    results = recorded["problems"][problem]
    positions = [recorded["settings"]["seeds"].index(seed) for seed in seeds]
    before, after = (np.array(results[name]["test"])[positions] for name in (COMPARISONS[trial], trial))
    return mean_interval(after - before)


def clear_gains(recorded: dict[str, Any]) -> list[tuple[str, str]]:
    """(trial, problem) of each clear gain: a mean above zero on the first seeds, an interval above it on the others.

    Example:
        >>> clear_gains({"settings": {"seeds": []}, "problems": {}})
        []
    """
    return [
        (trial, problem)
        for trial in COMPARISONS
        for problem in _problems_with(recorded, trial)
        if seed_gain(recorded, trial, problem, LOOKED_AT).value > 0
        and seed_gain(recorded, trial, problem, CONFIRMED).low > 0
    ]


def gain_rows(recorded: dict[str, Any]) -> list[tuple[str, ...]]:
    """The gain of each trial, on seeds that were looked at and on others: a head, then a row for each problem.

    Example:
        >>> gain_rows({"settings": {"seeds": []}, "problems": {}})[0][:3]
        ('trial', 'against', 'agreements')
    """
    spans = [f"gain, seeds {seeds[0]} to {seeds[-1]}" for seeds in (LOOKED_AT, CONFIRMED)]
    rows: list[tuple[str, ...]] = [("trial", "against", "agreements", "accuracy, all seeds", *spans)]
    for trial, other in COMPARISONS.items():
        for problem in _problems_with(recorded, trial):
            gains = [estimate_text(seed_gain(recorded, trial, problem, seeds)) for seeds in (LOOKED_AT, CONFIRMED)]
            rows.append((trial, other, problem, _mean_accuracy(recorded, trial, problem), *gains))
    return rows


def last_step_rows(recorded: dict[str, Any]) -> list[tuple[str, ...]]:
    """One environment a step at the last step, with the setting that is best on test: what a rule may have hidden.

    Example:
        >>> last_step_rows({"settings": {"seeds": []}, "problems": {}})
        [('method',)]
    """
    problems = list(recorded["problems"])
    rows: list[tuple[str, ...]] = [("method", *problems)]
    for name in ("in turn, constant", "in turn, growing", "in turn, decaying", "in turn, amplified"):
        values = [recorded["problems"][each].get(name) for each in problems]
        if values and all(values):
            best = (mean_interval(each["last_step"]["best_on_test"]) for each in values)
            rows.append((name, *map(estimate_text, best)))
    return rows


def direction_rows(recorded: dict[str, Any]) -> list[tuple[str, ...]]:
    """What means and variances of the features show in the pooled network: a head, then a row for each problem.

    Example:
        >>> direction_rows({"settings": {"seeds": []}, "problems": {}})[0][:2]
        ('agreements', 'what varies')
    """
    rows: list[tuple[str, ...]] = [
        (
            "agreements",
            "what varies",
            "directions",
            "images in the group of their colour",
            "seeds in which more varies within groups",
        )
    ]
    for problem in _problems_with(recorded, "pooled"):
        for kind, found in recorded["problems"][problem]["pooled"]["discovery"].items():
            counts, shares = found["directions"], 100 * np.array(found["agreement"])
            more = int(np.sum(np.array(found["p_value_within"]) < LEVEL))
            spans = (f"{min(counts)} to {max(counts)}", f"{shares.min():.1f} % to {shares.max():.1f} %")
            rows.append((problem, kind, *spans, f"{more} of {len(counts)}"))
    return rows


def about_trials(recorded: dict[str, Any]) -> str:
    """Where the trials come from, and which of them gain clearly, in a few sentences.

    Example:
        >>> about_trials({"settings": {"seeds": [1]}, "protocol": ["pooled"], "sessions": [], "problems": {}})
        'Not run yet: pooled.'
    """
    problems = recorded["problems"].values()
    missing = [name for name in recorded["protocol"] if not problems or not all(name in each for each in problems)]
    sentences = []
    if recorded["sessions"]:
        settings, session = recorded["settings"], recorded["sessions"][-1]
        sentences += [
            f"Recorded, not computed here: {len(settings['seeds'])} seeds, {settings['images']:,} images, on "
            f"{session['device']} with torch {session['versions']['torch']}.",
            "Gain in accuracy at the test, seed by seed, with its interval of 95 %.",
        ]
        found = [f"{trial} ({problem})" for trial, problem in clear_gains(recorded)]
        sentences.append(f"A clear gain: {'; '.join(found)}." if found else "None of them gains clearly.")
    if missing:
        sentences.append(f"Not run yet: {'; '.join(missing)}.")
    return " ".join(sentences)


def _problems_with(recorded: dict[str, Any], trial: str) -> list[str]:
    """The problems on which a trial, and what it would replace, are recorded."""
    wanted = {trial, COMPARISONS.get(trial, trial)}
    return [name for name, results in recorded["problems"].items() if wanted <= set(results)]


def _mean_accuracy(recorded: dict[str, Any], trial: str, problem: str) -> str:
    return f"{np.mean(recorded['problems'][problem][trial]['test']):.3f}"
