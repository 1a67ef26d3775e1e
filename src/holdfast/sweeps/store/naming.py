"""What decides a result, and so the name of its file: the settings, and the code that computes it."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.fingerprint import fingerprint, installed_version
from holdfast.core.names import modules_in
from holdfast.sweeps.engines.remote import RefusedWorkerError, difference


def settings_hash(settings: Mapping[str, Any]) -> int:
    """A number for settings: the sum of the hashes of each, so that those which many cells share are added up once.

    Whole numbers and floats of the same value are the same setting.

    Example:
        >>> one, other = settings_hash({"bias": 1, "steps": 10}), settings_hash({"steps": 10.0})
        >>> one - settings_hash({"bias": 1.0}) == other
        True
    """
    return sum(map(_item_hash, settings.items()))


def _item_hash(item: tuple[str, Any]) -> int:
    name, value = item
    if type(value) is int and float(value) == value:
        value = float(value)
    elif not isinstance(value, bool | int | float | str):
        value = json.dumps(value, sort_keys=True)
    return int.from_bytes(hashlib.blake2b(f"{name}={value!r}".encode(), digest_size=16).digest())


def cell_name(settings: int, code: str) -> str:
    """The name of a file.

    Args:
        settings: their hash.
        code: the digest of a `CodeVersion`.

    Example:
        >>> cell_name(settings_hash({"bias": 1.0}), "0123456789abcdef")
        '9f02fe6a40bf0da60afff82d05935cb4-0123456789abcdef'
    """
    return f"{settings % 2**128:032x}-{code}"


class Cell(NamedTuple):
    """A result that is computed and saved in one piece.

    Attributes:
        name: of its file.
        label: what it is, for those who compute it; picklable.

    Example:
        >>> Cell(cell_name(settings_hash({"bias": 1.0}), "0123456789abcdef"), {"bias": 1.0}).label
        {'bias': 1.0}
    """

    name: str
    label: Any


@dataclass(frozen=True)
class CodeVersion:
    """The code that decides results. Picklable: a copy is refused where the code is another one.

    Attributes:
        modules: dotted names of modules, or "module:function"; all that they reach by imports counts.
        packages: names of installed packages whose versions count; "python" is that of the interpreter.
        folder: in which modules of the user may lie.
        platform: of jax, where the numbers depend on it: "cpu", "gpu" or "tpu".

    Example:
        >>> one, other = CodeVersion(("holdfast.core.statistics",)), CodeVersion(("holdfast.core.grouping",))
        >>> len(one.digest), one.digest == other.digest
        (16, False)
    """

    modules: tuple[str, ...]
    packages: tuple[str, ...] = ()
    folder: str = "."
    platform: str = ""

    @property
    def versions(self) -> dict[str, str]:
        """Versions of packages, and a digest of the code, by what they are of.

        Raises:
            ValueError: if there is code without a source file.
        """
        found = {name: installed_version(name) for name in sorted(set(self.packages))}
        with modules_in(self.folder):
            return {**found, "code with the digest": fingerprint(self.modules)[:16]}

    @property
    def digest(self) -> str:
        """Of all of it, as the names of files have it."""
        return hashlib.sha256(json.dumps([self.versions, self.platform]).encode()).hexdigest()[:16]

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.modules, self.packages, self.folder, self.platform)
        return _checked, (fields, self.versions)


def _checked(fields: tuple[Any, ...], versions: Mapping[str, str]) -> CodeVersion:
    code = CodeVersion(*fields)
    different = difference(versions, code.versions)
    if different:
        raise RefusedWorkerError(different)
    return code


@dataclass(frozen=True)
class Key:
    """All that decides a result of an experiment or a comparison.

    Attributes:
        name: like a path, e.g. "figure_3" or "Example1/irm/0".
        settings: plain JSON values.
        modules: dotted names of the modules whose code, with all that it reaches by imports, decides the result.
        packages: names of the installed packages whose versions do.

    Example:
        >>> key = Key("Example1/irm/0", {"seed": 0}, modules=("holdfast.datasets.toy",), packages=("numpy",))
        >>> len(key.file)
        49
    """

    name: str
    settings: Mapping[str, Any]
    modules: tuple[str, ...]
    packages: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The name of its file."""
        code = CodeVersion(self.modules, ("python", *self.packages))
        return cell_name(settings_hash({**self.settings, "the name of the result": self.name}), code.digest)


@cache
def computed_by() -> str:
    """What decides the last digits of the numbers of this process: machine code, instruction set, version of jax.

    Example:
        >>> computed_by().rpartition(", ")[2].startswith("jax ")
        True
    """
    import jax

    device = jax.local_devices()[0]
    if device.platform != "cpu":
        return f"XLA on {device.device_kind}, jax {jax.__version__}"
    compiler = "XLA"
    with contextlib.suppress(ImportError):  # the folder of the kernel can be left out
        from holdfast.sensing.kernel.fused import available

        compiler = "numba" if available() else compiler
    instructions: Any = np.show_config(mode="dicts")["SIMD Extensions"]
    widest = [*instructions["baseline"], *instructions["found"]][-1].lower()
    return f"{compiler} on {widest}, jax {jax.__version__}"
