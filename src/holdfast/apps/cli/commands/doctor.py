"""`holdfast doctor`."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from holdfast.apps.cli.installation import Installation

# Wide enough for the longest heading.
INDENT = 14


@dataclass(frozen=True)
class DoctorArguments:
    """Say what is installed, which devices are seen, what is missing and how to get it.

    Exit code 1 only if the core is broken: a package that it needs is missing or too old, or the smallest simulation
    fails. Extras that are not installed, and folders that cannot be written to, are reported and leave it at 0.

    Examples:

        holdfast doctor
        holdfast doctor --out results --format json
    """

    out: Path = Path("results")
    """Folder for results, to check that it can be written to."""
    format: Literal["table", "json"] = "table"
    """What to print: a text for people, or JSON."""


def execute(arguments: DoctorArguments) -> int:
    """Look, and print."""
    from holdfast.apps.cli.installation import inspect_installation

    found = inspect_installation(arguments.out, Path(os.environ["JAX_COMPILATION_CACHE_DIR"]))
    if arguments.format == "json":
        extras = {each.name: {"missing": each.missing, "install": each.install} for each in found.extras}
        print(json.dumps(asdict(found) | {"extras": extras}))
    else:
        print("\n".join(lines(found)))
    return 1 if found.broken else 0


def lines(found: "Installation") -> list[str]:
    """The answer for people, in plain text: what draws tables may be what is broken."""
    sections = {
        "holdfast": [found.version],
        "core": [f"broken: {each}" for each in found.broken] or ["works"],
        "python": [found.python],
        "system": [found.system],
        "cores": [str(found.cores)],
        "memory": ["unknown" if found.memory is None else f"{found.memory / 2**30:.1f} GiB"],
        **{f"{name} devices": list(devices) for name, devices in found.devices.items()},
        "folders": [f"{each.path} for {each.purpose}: {each.problem or 'can be written to'}" for each in found.folders],
        "extras": [
            f"{each.name}: "
            + (f"{each.install}   (missing: {', '.join(each.missing)})" if each.missing else "installed")
            for each in found.extras
        ],
        "packages": [f"{name} {version or '-'}" for name, version in found.packages.items()],
        "advice": list(found.advice),
    }
    rows = [(heading, texts) for heading, texts in sections.items() if texts]
    return [f"{name if i == 0 else '':{INDENT}}{text}" for name, texts in rows for i, text in enumerate(texts)]
