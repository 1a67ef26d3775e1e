"""The public scripts of coloured MNIST, run on the same images: as their authors run them, and chosen without the test.

The scripts are not part of the package; the file says which commits were run, and with which changes.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("public_scripts.json")


class PublicScript(NamedTuple):
    """A script in a public repository.

    Attributes:
        repository: on GitHub.
        commit: that was run.
        path: of the script in the repository.
        arxiv: number of the paper it belongs to.

    Example:
        >>> public_script_runs("Fishr")[0].script.repository
        'alexrame/fishr'
    """

    repository: str
    commit: str
    path: str
    arxiv: str


class PublicScriptRun(NamedTuple):
    """What a script reached with a method, its settings chosen by a rule.

    Attributes:
        script: that was run.
        method: as the field calls it.
        rule: how settings and step were chosen; `rules` in the file has it in words.
        test: accuracy in the test environment, one for each restart or seed.

    Example:
        >>> len(public_script_runs("IRM")[0].test)
        10
    """

    script: PublicScript
    method: str
    rule: str
    test: tuple[float, ...]


def public_script_runs(method: str | None = None, rule: str | None = None) -> tuple[PublicScriptRun, ...]:
    """All runs of the public scripts, or those of a method, or of a rule.

    Args:
        method: ERM, IRM, V-REx, Fishr or grey oracle; None: all.
        rule: authors (their settings); worst, or mean (by held-out rows, any step); worst, last step; test, last step
            (chosen on test rows); None: all.

    Example, IRM with the settings of its authors, and with those that held-out training rows choose:
        >>> import numpy as np
        >>> [round(float(np.mean(public_script_runs("IRM", rule)[0].test)), 2) for rule in ("authors", "worst")]
        [0.66, 0.11]
    """
    found = _runs()
    for name, value in (("method", method), ("rule", rule)):
        known = list(dict.fromkeys(getattr(each, name) for each in found))
        if value is not None and value not in known:
            raise ValueError(f"{name} must be among {'; '.join(known)}, got {value!r}")
    return tuple(each for each in found if method in (None, each.method) and rule in (None, each.rule))


@cache
def public_script_file() -> dict[str, Any]:
    """The file: versions and changes, scripts, rules in words, how settings were drawn, runs.

    Example:
        >>> list(public_script_file())
        ['about', 'scripts', 'rules', 'draws', 'runs']
    """
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def _runs() -> tuple[PublicScriptRun, ...]:
    content = public_script_file()
    return tuple(
        PublicScriptRun(
            PublicScript(**content["scripts"][each["script"]]), each["method"], each["rule"], tuple(each["test"])
        )
        for each in content["runs"]
    )
