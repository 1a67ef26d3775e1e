"""Tools: `holdfast lab`, `doctor` and `completion`."""

import os
import platform
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import metadata, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.requirements import Requirement

from holdfast import __version__
from holdfast.apps.cli.command import Positional, answer
from holdfast.core.fingerprint import installed_version
from holdfast.core.validation import describe, require
from holdfast.core.writing import check_output_folder

# What the optional extra `lab` installs, and the extra for work on the package itself, which is not reported.
NEEDED_BY_LAB, INTERNAL_EXTRA = ("starlette", "uvicorn", "fsspec"), "dev"


@dataclass(frozen=True)
class LabArguments:
    """Open the laboratory, a local page where sliders control simulations.

    The page works offline and can only be reached from this computer. Another --host, such as 0.0.0.0, makes it
    reachable from others; then the printed link has a token, and requests without it are refused.

    Examples:

        holdfast lab
        holdfast lab --no-browser --port 8500 --results runs
    """

    port: int | None = None
    """Port to listen on; by default the first free one from 8440 on."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    no_browser: bool = False
    """Only print the address; open no browser."""
    results: Path | None = None
    """Folder of a sweep or a reproduction that the page shows."""

    def __post_init__(self) -> None:
        require(self.port is None or 0 <= self.port < 2**16, "port must be a whole number from 0 to 65535", self.port)


def execute_lab(arguments: LabArguments) -> int:
    """Serve the page until it is interrupted."""
    missing = [name for name in NEEDED_BY_LAB if find_spec(name) is None]
    if missing:
        raise ValueError(f"holdfast lab needs {', '.join(missing)}: pip install 'holdfast[lab]'")
    # Copied commands name the folder, which "." does not.
    results = None if arguments.results is None else arguments.results.resolve()
    require(results is None or results.is_dir(), "results must be a folder", repr(str(arguments.results)))
    from holdfast.apps.lab.server import serve

    serve(host=arguments.host, port=arguments.port, browser=not arguments.no_browser, results=results)
    # A thread may be compiling, which cannot be interrupted and which Python would wait for. The server has cleaned up.
    sys.stdout.flush()
    os._exit(0)


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


def execute_doctor(arguments: DoctorArguments) -> int:
    """Look, and print; for people in plain text, since what draws tables may be what is broken."""
    found = inspect_installation(arguments.out)
    answer(arguments.format, found, lambda: _show_installation(found))
    return 1 if found["broken"] else 0


def _show_installation(found: dict[str, Any]) -> None:
    for heading, value in found.items():
        texts = [f"{name}: {each}" for name, each in value.items()] if isinstance(value, dict) else value
        print(f"{heading:14}" + f"\n{'':14}".join(texts or ["nothing"]))


def inspect_installation(out: Path) -> dict[str, Any]:
    """What is installed on this machine and what is missing, by the metadata of the package and by trying it.

    Args:
        out: the folder for results.
    """
    known = [] if installed_version("holdfast") == "none" else ["", *metadata("holdfast").get_all("Provides-Extra", [])]
    wanted = {name: needed("holdfast", name) for name in sorted(known) if name != INTERNAL_EXTRA}
    lacking = {name: dict.fromkeys(part for each in parts for part in missing(each)) for name, parts in wanted.items()}
    broken = list(lacking.pop("", ["holdfast is not installed: pip install holdfast"]))
    found: dict[str, Any] = {"holdfast": [__version__], "python": [platform.python_version()], "broken": broken}
    try:  # two steps need most of the core
        import jax

        from holdfast.sensing.settings import Settings
        from holdfast.sensing.simulation import simulate
        from holdfast.sweeps.store.naming import computed_by

        simulate(Settings(dimension=4, batch_size=8, steps=2, every=1, seeds=1))
        devices = [f"{each.platform}:{each.id} ({each.device_kind})" for each in jax.devices()]
        found |= {"simulations": [computed_by()], "devices": devices}
    except Exception as error:  # whatever it is, it is the answer
        broken.append(f"a simulation of two steps fails: {describe(error)}")
    folders = dict.fromkeys((os.environ["JAX_COMPILATION_CACHE_DIR"], str(out)), "cannot be written to")
    for folder in folders:
        with suppress(ValueError):
            check_output_folder(Path(folder))
            folders[folder] = "writable"
    advice = "pip install 'holdfast[{}]'   (missing: {})".format
    return found | {
        "folders": folders,
        "extras": {name: advice(name, ", ".join(parts)) if parts else "installed" for name, parts in lacking.items()},
        "packages": {each.name: installed_version(each.name) for parts in wanted.values() for each in parts},
    }


def needed(package: str, extra: str = "") -> list[Requirement]:
    """What a package needs on this Python, with an extra if one is named.

    Example:
        >>> "numpy" in [each.name for each in needed("holdfast")]
        True
    """
    stated = map(Requirement, requires(package) or [])
    return [each for each in stated if each.marker is None or each.marker.evaluate({"extra": extra})]


def missing(requirement: Requirement) -> list[str]:
    """What has to be installed for a requirement, with its own extras: nothing if it is fulfilled.

    Example:
        >>> missing(Requirement("packaging>=20")), missing(Requirement("no-such-package>=1"))
        ([], ['no-such-package>=1'])
        >>> missing(Requirement("packaging>=9999"))[0].startswith("packaging>=9999 (installed: ")
        True
    """
    installed, wanted = installed_version(requirement.name), f"{requirement.name}{requirement.specifier}"
    if installed == "none" or not requirement.specifier.contains(installed, prereleases=True):
        return [wanted if installed == "none" else f"{wanted} (installed: {installed})"]
    inner = [each for extra in requirement.extras for each in needed(requirement.name, extra)]
    return [part for each in inner for part in missing(each)]


@dataclass(frozen=True)
class CompletionArguments:
    """Print a script that makes a shell complete commands, options and their values.

    For bash, add this line to ~/.bashrc; for zsh, replace bash by zsh and add it to ~/.zshrc, after compinit:

        eval "$(holdfast completion bash)"

    For fish, write a file where fish looks for it:

        holdfast completion fish > ~/.config/fish/completions/holdfast.fish

    Bash and zsh load a file faster, too. Write it again after an update of holdfast.

    Examples:

        holdfast completion bash
        holdfast completion zsh
        holdfast completion fish
    """

    shell: Annotated[Literal["bash", "zsh", "fish"], Positional("SHELL")]
    """The shell."""


def execute_completion(arguments: CompletionArguments) -> int:
    """Print the script."""
    from holdfast.apps.cli.main import COMMANDS  # which itself imports this module
    from holdfast.apps.cli.parser import command_line

    print(command_line(COMMANDS, (), ("", "")).generate_completion(shell=arguments.shell))
    return 0
