"""Results in a folder, so that nothing is computed twice: found by name, settings and the code that decides them."""

import contextlib
import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.core.fingerprint import fingerprint
from holdfast.core.versions import installed_version
from holdfast.core.writing import delete, temporary_path

if TYPE_CHECKING:
    import xarray as xr

Value = TypeVar("Value")

# The folder of results that can be loaded again, inside the folder of what people read. It can be deleted at any time.
FOLDER = ".computed"
LOST = "its result was deleted in the meantime, perhaps by a run of other code; the same command computes it again"
"""Why a result is not there although it was computed."""
# Code, settings and content: names of this form are results, and those without content are notes next to them.
_ENTRY = re.compile(r"([0-9a-f]{16})-[0-9a-f]{16}(-[0-9a-f]{16})?\.\w+")


class DamagedError(Exception):
    """A result is not what was saved.

    Example:
        >>> import tempfile
        >>> store, key = Store(Path(tempfile.mkdtemp()), RECORDS), Key("test", {}, ("holdfast.core.statistics",))
        >>> saved = store.save(key, {"error": 0.25})
        >>> store.find(key).write_text("{}")
        2
        >>> store.load(key)
        Traceback (most recent call last):
        holdfast.sweeps.store.store.DamagedError: ...
    """


@dataclass(frozen=True)
class Key:
    """All that decides a result.

    Attributes:
        name: like a path, e.g. "figure_3" or "Example1/irm/0".
        settings: plain JSON values.
        modules: dotted names of the modules whose code, with all that it reaches by imports, decides the result.
        packages: names of the installed packages whose versions do.

    Example:
        >>> key = Key("Example1/irm/0", {"seed": 0}, modules=("holdfast.datasets.toy",), packages=("numpy",))
        >>> Key("../elsewhere", {}, modules=())
        Traceback (most recent call last):
        ValueError: name must be a relative path without dots, got '../elsewhere'
    """

    name: str
    settings: Mapping[str, Any]
    modules: tuple[str, ...]
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(part in ("", ".", "..") for part in self.name.split("/")):
            raise ValueError(f"name must be a relative path without dots, got {self.name!r}")


@dataclass(frozen=True)
class Codec(Generic[Value]):
    """How values of one kind are written to a file or folder and read back.

    Attributes:
        suffix: of the file or folder.
        packages: whose versions decide whether the file can be read.
        write: to a path that does not exist yet.
        read: what was written.
        equal: whether the value that was read is the one that was written.
    """

    suffix: str
    packages: tuple[str, ...]
    write: Callable[[Path, Value], object]
    read: Callable[[Path], Value]
    equal: Callable[[Value, Value], bool]


@dataclass(frozen=True)
class Store(Generic[Value]):
    """Results of one kind in a folder.

    An entry is named after its key and the digest of its content, which reveals damage. It is written under a temporary
    name and renamed when complete, so that a run that is killed leaves nothing that looks like a result.

    Attributes:
        folder: made when something is saved.
        codec: the kind of the results, `DATASETS` or `RECORDS`.

    Example:
        >>> import tempfile
        >>> store = Store(Path(tempfile.mkdtemp()), RECORDS)
        >>> key = Key("test/method/0", {"seeds": 3}, ("holdfast.core.statistics",), ("numpy",))
        >>> store.load(key) is None
        True
        >>> store.save(key, {"error": 0.25})
        {'error': 0.25}
        >>> store.load(key)
        {'error': 0.25}
    """

    folder: Path
    codec: Codec[Value]

    def find(self, key: Key) -> Path | None:
        """The path of a saved result, or None."""
        code, settings = self._digests(key)
        return next((self.folder / key.name).glob(f"{code}-{settings}-*{self.codec.suffix}"), None)

    def has(self, key: Key) -> bool:
        """Whether a result is saved and intact; one that is damaged is deleted."""
        path = self.find(key)
        return path is not None and _intact(path)

    def stem(self, key: Key) -> str:
        """The first part of the name of a result in the folder, for notes next to it."""
        code, settings = self._digests(key)
        return f"{key.name}/{code}-{settings}"

    def load(self, key: Key) -> Value | None:
        """A saved result, or None.

        Raises:
            DamagedError: if the result is not what was saved. It is deleted, so the next call returns None.
        """
        path = self.find(key)
        if path is None:
            return None
        if not _intact(path):
            raise DamagedError(f"{path} is damaged")
        return self.codec.read(path)

    def save(self, key: Key, value: Value) -> Value:
        """Write a result and return it as `load` will; those of the same name by other code are deleted.

        Raises:
            ValueError: if the value cannot be written, or changes when it is written and read.
        """
        code, settings = self._digests(key)
        home = self.folder / key.name
        home.mkdir(parents=True, exist_ok=True)
        with temporary_path(self.folder, self.codec.suffix) as temporary:
            try:
                self.codec.write(temporary, value)
            except (NotImplementedError, TypeError, ValueError) as error:  # xarray and zarr raise any of these
                raise ValueError(
                    f"value must have a form on disk, which that of {key.name!r} has not: {error}"
                ) from error
            read = self.codec.read(temporary)
            if not self.codec.equal(read, value):
                raise ValueError(f"value must be the same after writing and reading, which that of {key.name!r} is not")
            if self.find(key) is None:  # a run at the same time may have been faster
                os.rename(temporary, home / f"{code}-{settings}-{_digest(temporary)}{self.codec.suffix}")
        for path in home.iterdir():
            match = _ENTRY.fullmatch(path.name)
            if match and match[1] != code:
                delete(path)
        return read

    def versions(self, keys: Iterable[Key]) -> dict[str, str]:
        """What decides the names of results besides settings, by what it is: versions, and a digest of all the code.

        Raises:
            ValueError: if there is code without a source file.
        """
        keys = list(keys)
        packages = sorted({*self.codec.packages, *(name for key in keys for name in key.packages)})
        code = fingerprint(tuple({module for key in keys for module in key.modules}))
        found = {name: installed_version(name) for name in packages}
        return {"python": platform.python_version(), **found, "code with the digest": code[:16]}

    def prepare(self, keys: Iterable[Key]) -> None:
        """Read the code of keys before threads start: Python 3.11 may fail to parse source while another thread does.

        Nothing is read again later. Keys of code without a source file are left to `load` and `save`.
        """
        for key in keys:
            with contextlib.suppress(ValueError):
                fingerprint(key.modules)

    @contextlib.contextmanager
    def scratch(self) -> Iterator["Store[Value]"]:
        """A store for results that the next call must not find, since nobody can say which code decides them.

        It lies in the folder of this one, so that workers on other machines see it too, and is deleted at the end.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with temporary_path(self.folder) as folder:
            folder.mkdir()
            yield Store(folder, self.codec)

    def _digests(self, key: Key) -> tuple[str, str]:
        """Of the code with the versions of packages, and of the settings."""
        versions = {name: installed_version(name) for name in (*key.packages, *self.codec.packages)}
        code = [fingerprint(key.modules), versions, platform.python_version()]
        return _short(json.dumps(code, sort_keys=True)), _short(json.dumps(dict(key.settings), sort_keys=True))


def _write_dataset(path: Path, data: "xr.Dataset") -> None:
    plain = data.copy()
    parts: list[xr.Dataset | xr.Variable] = [plain, *plain.variables.values()]
    for part in parts:
        part.attrs = {str(name): _plain_value(value) for name, value in part.attrs.items()}
        part.encoding = {}
    # Format 2, because format 3 has no settled way to write text coordinates yet.
    plain.to_zarr(path, zarr_format=2, consolidated=False)


def _plain_value(value: Any) -> Any:
    """An attribute as JSON can hold it; what JSON does not know becomes text."""
    value = value.tolist() if hasattr(value, "tolist") else value  # arrays and their scalars
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return str(value)
    return value


def _read_dataset(path: Path) -> "xr.Dataset":
    import xarray as xr

    return xr.open_zarr(path, chunks=None, consolidated=False).load()


def _same_dataset(read: "xr.Dataset", written: "xr.Dataset") -> bool:
    return read.equals(written)


def _write_record(path: Path, record: dict[str, float | str]) -> None:
    path.write_text(json.dumps(record), encoding="utf-8")


def _read_record(path: Path) -> dict[str, float | str]:
    return json.loads(path.read_text(encoding="utf-8"))


def _same_record(read: dict[str, float | str], written: dict[str, float | str]) -> bool:
    # NaN is the one number that is not equal to itself.
    return read.keys() == written.keys() and all(read[name] == each or each != each for name, each in written.items())


DATASETS: "Codec[xr.Dataset]" = Codec(".zarr", ("xarray", "zarr"), _write_dataset, _read_dataset, _same_dataset)
"""Labelled data sets, in zarr; attributes that JSON does not know become text."""

RECORDS: Codec[dict[str, float | str]] = Codec(".json", (), _write_record, _read_record, _same_record)
"""Flat dictionaries of numbers and strings, in JSON."""


def _intact(path: Path) -> bool:
    """Whether an entry has the content that its name says; deletes it otherwise."""
    # Reading alone would not reveal it: zarr takes a missing file for zeros.
    intact = path.stem.rpartition("-")[2] == _digest(path)
    if not intact:
        delete(path)
    return intact


def _digest(path: Path) -> str:
    """Of a file, or of the names and the content of all files in a folder."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for each in files:
        content = each.read_bytes()
        # With its length, so that text moved from one file to the next counts as a change.
        digest.update(f"{each.relative_to(path).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
