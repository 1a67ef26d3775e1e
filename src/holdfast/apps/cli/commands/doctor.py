"""`holdfast doctor`."""

import contextlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

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
    """Look, and print."""
    folders = {"compiled programs": Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), "results": arguments.out}
    found = inspect_installation(folders)
    print(json.dumps(found) if arguments.format == "json" else _text(found))
    return 1 if found["broken"] else 0


def inspect_installation(folders: dict[str, Path]) -> dict[str, Any]:
    """What is installed on this machine and what is missing, by the metadata of the package and by trying it.

    Args:
        folders: purpose -> a folder that is written to.
    """
    from holdfast import __version__
    from holdfast.core.worker import available_cores

    try:
        extras = [each for each in metadata(PACKAGE).get_all("Provides-Extra") or [] if each != INTERNAL_EXTRA]
        wanted = {name: needed(PACKAGE, name) for name in ("", *extras)}
    except PackageNotFoundError:
        wanted = {}
    lacking = {name: [part for each in parts for part in missing(each)] for name, parts in wanted.items()}
    broken = lacking.pop("", [f"{PACKAGE} is not installed, only its source is on the path: pip install {PACKAGE}"])
    devices = {"jax": _devices("jax")} | ({"torch": _devices("torch")} if _version("torch") else {})
    return {
        "version": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": platform.platform(),
        "cores": len(available_cores()),
        "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None,
        "packages": {each.name: _version(each.name) for parts in wanted.values() for each in parts},
        "broken": broken or _failures_of_a_simulation(),
        "extras": {
            name: {"missing": list(dict.fromkeys(parts)), "install": f"pip install '{PACKAGE}[{name}]'"}
            for name, parts in lacking.items()
        },
        "devices": devices,
        "folders": [{"purpose": each, "path": str(path), "problem": _problem(path)} for each, path in folders.items()],
        "advice": list(_advice(devices["jax"])),
    }


def needed(package: str, extra: str = "") -> list[Requirement]:
    """What a package needs on this Python: always, or what an extra adds to that.

    Example:
        >>> "numpy" in [each.name for each in needed("holdfast")]
        True
    """

    def applies(requirement: Requirement, extra: str) -> bool:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})

    stated = map(Requirement, requires(package) or [])
    return [each for each in stated if applies(each, extra) and not (extra and applies(each, ""))]


def missing(requirement: Requirement) -> Iterator[str]:
    """What has to be installed for a requirement, with its own extras: nothing if it is fulfilled.

    Example:
        >>> from packaging.requirements import Requirement
        >>> list(missing(Requirement("packaging>=20"))), list(missing(Requirement("no-such-package>=1")))
        ([], ['no-such-package>=1'])
        >>> list(missing(Requirement("packaging>=9999")))[0].startswith("packaging>=9999 (installed: ")
        True
    """
    installed, wanted = _version(requirement.name), f"{requirement.name}{requirement.specifier}"
    if installed is None:
        yield wanted
    elif not requirement.specifier.contains(installed, prereleases=True):
        yield f"{wanted} (installed: {installed})"
    else:
        for inner in (each for extra in requirement.extras for each in needed(requirement.name, extra)):
            yield from missing(inner)


def _version(name: str) -> str | None:
    with contextlib.suppress(PackageNotFoundError):
        return version(name)
    return None


def _failures_of_a_simulation() -> list[str]:
    """What goes wrong with the smallest simulation, which needs most of the core."""
    try:
        from holdfast.sensing.settings import Settings
        from holdfast.sensing.simulation import simulate

        simulate(Settings(dimension=4, batch_size=8, steps=2, every=1, seeds=1))
    except Exception as error:  # whatever it is, it is the answer
        return [f"a simulation of two steps fails: {type(error).__name__}: {error}"]
    return []


def _devices(library: str) -> list[str]:
    """The devices that a library sees; it may be broken."""
    try:
        if library == "jax":
            import jax

            return [f"{each.platform}:{each.id} ({each.device_kind})" for each in jax.devices()]
        import torch

        gpus = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
        return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]
    except Exception as error:
        return [f"none, {type(error).__name__}: {error}"]


def _problem(path: Path) -> str | None:
    from holdfast.core.writing import check_output_folder

    try:
        check_output_folder(path)
    except ValueError:
        return "cannot be written to"
    return None


def _advice(devices: list[str]) -> Iterator[str]:
    if not all(each.startswith("cpu") for each in devices):
        return
    if shutil.which("nvidia-smi"):
        yield f"This machine has NVIDIA's tools, but jax computes on the CPU: pip install '{PACKAGE}[cuda]'"
    with contextlib.suppress(ImportError):  # the folder of the kernel can be left out
        from holdfast.sensing.kernel import available

        if available():
            return
    reason = "numba is missing, or cannot be used with this processor or this jax"
    yield f"Simulations take about twice as long as they could: {reason}"


def _text(found: dict[str, Any]) -> str:
    """The answer for people, in plain text: what draws tables may be what is broken."""
    extras = {
        name: f"{each['install']}   (missing: {', '.join(each['missing'])})" if each["missing"] else "installed"
        for name, each in found["extras"].items()
    }
    sections = {
        "holdfast": [found["version"]],
        "core": [f"broken: {each}" for each in found["broken"]] or ["works"],
        **{name: [str(found[name])] for name in ("python", "system", "cores")},
        "memory": ["unknown" if found["memory"] is None else f"{found['memory'] / 2**30:.1f} GiB"],
        **{f"{name} devices": devices for name, devices in found["devices"].items()},
        "folders": [
            f"{each['path']} for {each['purpose']}: {each['problem'] or 'writable'}" for each in found["folders"]
        ],
        "extras": [f"{name}: {text}" for name, text in extras.items()],
        "packages": [f"{name} {version or '-'}" for name, version in found["packages"].items()],
        "advice": found["advice"],
    }
    rows = [("" if number else name, each) for name, texts in sections.items() for number, each in enumerate(texts)]
    return "\n".join(f"{heading:14}{text}" for heading, text in rows)
