"""Files that people have uploaded: each belongs to the tab that sent it, under a name that the server chose."""

import secrets
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from holdfast.lab.jobs import BusyError

# Bytes of one file, and of all files of all tabs; then the oldest ones go.
LARGEST_FILE, LARGEST_TOTAL = 64 * 2**20, 512 * 2**20
# Uploads that may be on their way at once: together they are no more than what may stay.
AT_ONCE = LARGEST_TOTAL // LARGEST_FILE
# Uploads are asked for by the numbers that `add` returns; the ending tells readers of tables what is inside.
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz")


class _Upload(NamedTuple):
    tab: str
    path: Path
    size: int


class Uploads:
    """The uploads of a server, in a temporary folder that goes with it."""

    def __init__(self, largest_file: int = LARGEST_FILE, largest_total: int = LARGEST_TOTAL) -> None:
        self._folder: Path | None = None
        self._files: OrderedDict[str, _Upload] = OrderedDict()
        self._largest_file, self._largest_total = largest_file, largest_total
        self._arriving = 0

    async def add(self, tab: str, name: str, body: AsyncIterator[bytes]) -> str:
        """Save a file; returns the number under which this tab finds it.

        Args:
            tab: whose file it is.
            name: on the computer of the person; only its ending is used.
            body: the file, in pieces.
        """
        ending = "".join(PurePosixPath(name.lower()).suffixes[-2:])
        ending = ending if ending in ENDINGS else PurePosixPath(name.lower()).suffix
        if ending not in ENDINGS:
            raise ValueError(f"the file must end in one of {', '.join(ENDINGS)}, got {name[-60:]!r}")
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="holdfast-lab-"))
        if self._arriving >= AT_ONCE:
            raise BusyError
        number = secrets.token_hex(16)
        path, size = self._folder / f"{number}{ending}", 0
        self._arriving += 1
        try:
            with path.open("wb") as file:
                async for piece in body:
                    size += len(piece)
                    if size > self._largest_file:
                        raise ValueError(f"the file must be at most {self._largest_file >> 20} MiB, got a larger one")
                    file.write(piece)
            if size == 0:
                raise ValueError(f"the file must not be empty, got {name[-60:]!r}")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            self._arriving -= 1
        self._files[number] = _Upload(tab, path, size)
        self._forget_oldest()
        return number

    def find(self, tab: str, number: str) -> Path:
        """The file that a tab uploaded under a number; a ValueError if there is none."""
        upload = self._files.get(number)
        if upload is None or upload.tab != tab:
            raise ValueError("the upload must be one of this tab that is still there: please upload the file again")
        return upload.path

    def _forget_oldest(self) -> None:
        while sum(upload.size for upload in self._files.values()) > self._largest_total:
            _, oldest = self._files.popitem(last=False)
            oldest.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all files; called when the server ends."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
