"""`holdfast doctor`."""

import itertools
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

from holdfast import __version__
from holdfast.core.versions import installed_version
from holdfast.core.writing import check_output_folder

PACKAGE = "holdfast"
# The extra for work on the package itself is not reported.
INTERNAL_EXTRA = "dev"


@dataclass(frozen=True)
class DoctorArguments:
    """Check the installation: packages, devices, folders, and what is missing and how to get it.

    The exit code is 1 only if the core is broken: a package that it needs is missing or too old, or the smallest
    simulation fails. Extras that are not installed and folders that are not writable are reported, but do not count.

    Examples:

        holdfast doctor
        holdfast doctor --out results --format json
    """

    out: Path = Path("results")
    """Folder for results, to check that it can be written to."""
    format: Literal["table", "json"] = "table"
    """What to print: a text for people, or JSON."""


def execute(arguments: DoctorArguments) -> int:
    """Look, and print; for people in plain text, since what draws tables may be what is broken."""
    found = inspect_installation(arguments.out)
    if arguments.format == "json":
        print(json.dumps(found))
    else:
        for heading, value in (found | {"broken": found["broken"] or ["nothing"]}).items():
            texts = [f"{name}: {each}" for name, each in value.items()] if isinstance(value, dict) else value
            for number, text in enumerate(texts):
                print(f"{'' if number else heading:14}{text}")
    return 1 if found["broken"] else 0


def inspect_installation(out: Path) -> dict[str, Any]:
    """What is installed on this machine and what is missing, by the metadata of the package and by trying it.

    Args:
        out: the folder for results.
    """
    try:
        extras = set(metadata(PACKAGE).get_all("Provides-Extra") or []) - {INTERNAL_EXTRA}
        wanted = {name: needed(PACKAGE, name) for name in ("", *sorted(extras))}
    except PackageNotFoundError:
        wanted = {}
    lacking = {name: dict.fromkeys(itertools.chain(*map(missing, parts))) for name, parts in wanted.items()}
    absent = [f"{PACKAGE} is not installed, only its source is on the path: pip install {PACKAGE}"]
    broken, computed = list(lacking.pop("", absent)), {}
    try:
        computed = smallest_simulation()
    except Exception as error:  # whatever it is, it is the answer
        broken.append(f"a simulation of two steps fails: {type(error).__name__}: {error}")
    return {
        "holdfast": [__version__],
        "python": [platform.python_version()],
        "broken": broken,
        **computed,
        "folders": {str(each): _state(each) for each in (Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), out)},
        "extras": {
            name: f"pip install '{PACKAGE}[{name}]'   (missing: {', '.join(parts)})" if parts else "installed"
            for name, parts in lacking.items()
        },
        "packages": {each.name: installed_version(each.name) for parts in wanted.values() for each in parts},
    }


def smallest_simulation() -> dict[str, list[str]]:
    """What computes a simulation of two steps, which needs most of the core, and the devices that jax sees."""
    import jax

    from holdfast.sensing.settings import Settings
    from holdfast.sensing.simulation import simulate
    from holdfast.sweeps.store.naming import computed_by

    simulate(Settings(dimension=4, batch_size=8, steps=2, every=1, seeds=1))
    devices = [f"{each.platform}:{each.id} ({each.device_kind})" for each in jax.devices()]
    return {"simulations": [computed_by()], "devices": devices}


def needed(package: str, extra: str = "") -> list[Requirement]:
    """What a package needs on this Python, with an extra if one is named.

    Example:
        >>> "numpy" in [each.name for each in needed("holdfast")]
        True
    """
    stated = map(Requirement, requires(package) or [])
    return [each for each in stated if each.marker is None or each.marker.evaluate({"extra": extra})]


def missing(requirement: Requirement) -> Iterator[str]:
    """What has to be installed for a requirement, with its own extras: nothing if it is fulfilled.

    Example:
        >>> from packaging.requirements import Requirement
        >>> list(missing(Requirement("packaging>=20"))), list(missing(Requirement("no-such-package>=1")))
        ([], ['no-such-package>=1'])
        >>> list(missing(Requirement("packaging>=9999")))[0].startswith("packaging>=9999 (installed: ")
        True
    """
    installed, wanted = installed_version(requirement.name), f"{requirement.name}{requirement.specifier}"
    if installed == "none":
        yield wanted
    elif not requirement.specifier.contains(installed, prereleases=True):
        yield f"{wanted} (installed: {installed})"
    else:
        for inner in (each for extra in requirement.extras for each in needed(requirement.name, extra)):
            yield from missing(inner)


def _state(folder: Path) -> str:
    try:
        check_output_folder(folder)
    except ValueError:
        return "cannot be written to"
    return "writable"
