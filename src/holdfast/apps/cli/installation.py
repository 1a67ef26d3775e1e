"""What is installed on this machine, and what is missing: the answer of `holdfast doctor`.

Requirements are read from the metadata of the package, so that nothing is listed a second time here. Modules are
imported where they are tried, since any of them may be broken.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PACKAGE = "holdfast"
# Extras for those who work on the package itself.
INTERNAL_EXTRAS = ("dev",)


@dataclass(frozen=True)
class Extra:
    """An optional part of the package: what of it is missing, and how to get it."""

    name: str
    missing: tuple[str, ...]

    @property
    def install(self) -> str:
        """The command that installs it.

        Example:
            >>> Extra("lab", ("uvicorn",)).install
            "pip install 'holdfast[lab]'"
        """
        return f"pip install '{PACKAGE}[{self.name}]'"


@dataclass(frozen=True)
class Folder:
    """A folder that is written to; `problem` says why it cannot be."""

    purpose: str
    path: str
    problem: str | None


@dataclass(frozen=True)
class Installation:
    """The package, its requirements and the machine; `broken` says what keeps the core from working."""

    version: str
    python: str
    system: str
    cores: int
    memory: int | None
    packages: dict[str, str | None]
    broken: tuple[str, ...]
    extras: tuple[Extra, ...]
    devices: dict[str, tuple[str, ...]]
    folders: tuple[Folder, ...]
    advice: tuple[str, ...]


def inspect_installation(out: Path, cache: Path) -> Installation:
    """Look at everything, and try a simulation of two steps.

    Args:
        out: the folder for results.
        cache: the folder for compiled programs.
    """
    from holdfast import __version__

    needed, optional, found = requirements()
    broken = [*found, *(each for requirement in needed for each in missing(requirement))]
    broken += [] if broken else _failures_of_a_simulation()
    extras = tuple(
        Extra(name, tuple(dict.fromkeys(each for requirement in wanted for each in missing(requirement))))
        for name, wanted in optional.items()
    )
    listed = dict.fromkeys(each.name for each in [*needed, *(one for wanted in optional.values() for one in wanted)])
    devices = _devices()
    return Installation(
        version=__version__,
        python=f"{platform.python_version()} ({sys.executable})",
        system=platform.platform(),
        cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        memory=_memory(),
        packages={name: _version(name) for name in listed},
        broken=tuple(broken),
        extras=extras,
        devices=devices,
        folders=(_folder("compiled programs", cache), _folder("results", out)),
        advice=tuple(_advice(devices)),
    )


def requirements() -> tuple[list[Requirement], dict[str, list[Requirement]], list[str]]:
    """What the package needs on this Python: always, and for each extra; last, why this is not known."""
    try:
        metadata = distribution(PACKAGE)
    except PackageNotFoundError:
        return [], {}, [f"{PACKAGE} is not installed, only its source is on the path: pip install {PACKAGE}"]
    stated = [Requirement(each) for each in metadata.requires or []]
    names = [name for name in metadata.metadata.get_all("Provides-Extra") or [] if name not in INTERNAL_EXTRAS]
    return list(_of(stated, "")), {name: _only_of(stated, name) for name in names}, []


def missing(requirement: Requirement) -> Iterator[str]:
    """What has to be installed for a requirement, with its own extras: nothing if it is fulfilled.

    Example:
        >>> list(missing(Requirement("packaging>=20"))), list(missing(Requirement("no-such-package>=1")))
        ([], ['no-such-package>=1'])
        >>> list(missing(Requirement("packaging>=9999")))[0].startswith("packaging>=9999 (installed: ")
        True
    """
    installed = _version(requirement.name)
    wanted = f"{requirement.name}{requirement.specifier}"
    if installed is None:
        yield wanted
        return
    if not requirement.specifier.contains(installed, prereleases=True):
        yield f"{wanted} (installed: {installed})"
    stated = [Requirement(each) for each in distribution(requirement.name).requires or []]
    for extra in requirement.extras:
        for inner in _only_of(stated, extra):
            yield from missing(inner)


def _of(stated: Iterable[Requirement], extra: str) -> Iterator[Requirement]:
    return (each for each in stated if each.marker is None or each.marker.evaluate({"extra": extra}))


def _only_of(stated: list[Requirement], extra: str) -> list[Requirement]:
    """The requirements that an extra adds."""
    always = list(map(str, _of(stated, "")))
    return [each for each in _of(stated, extra) if str(each) not in always]


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
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


def _devices() -> dict[str, tuple[str, ...]]:
    """Library -> the devices that it sees; libraries that do not load are left out."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        import jax

        found["jax"] = tuple(f"{each.platform}:{each.id} ({each.device_kind})" for each in jax.devices())
    except Exception as error:
        found["jax"] = (f"none, {type(error).__name__}: {error}",)
    if _version("torch") is None:
        return found
    try:
        import torch

        gpus = [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
        gpus += ["mps"] if torch.backends.mps.is_available() else []
        found["torch"] = ("cpu", *gpus)
    except Exception as error:
        found["torch"] = (f"none, {type(error).__name__}: {error}",)
    return found


def _advice(devices: dict[str, tuple[str, ...]]) -> Iterator[str]:
    if shutil.which("nvidia-smi") and all(each.startswith("cpu") for each in devices["jax"]):
        yield f"This machine has NVIDIA's tools, but jax computes on the CPU: {Extra('cuda', ()).install}"
    if all(each.startswith("cpu") for each in devices["jax"]) and not _compiles_kernels():
        reason = "numba is missing, or cannot be used with this processor or this jax"
        yield f"Simulations take about twice as long as they could: {reason}"


def _compiles_kernels() -> bool:
    try:
        from holdfast.sensing.kernel import available

        return available()
    except Exception:  # jax itself does not load, which is said elsewhere
        return False


def _memory() -> int | None:
    """Bytes of memory, where the system says it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _folder(purpose: str, path: Path) -> Folder:
    from holdfast.core.writing import check_output_folder

    try:
        check_output_folder(path)
    except ValueError:
        return Folder(purpose, str(path), "cannot be written to")
    return Folder(purpose, str(path), None)
