"""Work for other processes: sent as bytes, and loaded only where the code is the same as here."""

import contextlib
import hashlib
import json
import logging
import pickle
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import holdfast
from holdfast.core.fingerprint import COMPUTING, installed_version
from holdfast.core.validation import describe

if TYPE_CHECKING:
    from distributed import Client


_loaded: dict[str, Callable[[Any], Any]] = {}
_LOADING = threading.Lock()


class RefusedWorkerError(Exception):
    """A worker cannot have work: its results would not be ours, because its code is another, or it cannot open it.

    Example:
        >>> ours = Versions("0.1.0", "c0de", "0.10.2", "0.10.2", "0.68.1", "2.4.1")
        >>> ours.demand(ours._replace(jax="0.9.0"), "worker 3")
        Traceback (most recent call last):
        holdfast.sweeps.engines.remote.RefusedWorkerError: worker 3 has jax 0.9.0, we have 0.10.2; ...
    """


class Versions(NamedTuple):
    """The code that decides all results; cells may depend on more, which they compare when they are loaded.

    Attributes:
        holdfast: version of the package.
        source: digest of its source, which tells two states of development apart.
        jax: version.
        jaxlib: version.
        numba: version.
        numpy: version.

    Example:
        >>> Versions.installed().holdfast == holdfast.__version__
        True
    """

    holdfast: str
    source: str
    jax: str
    jaxlib: str
    numba: str
    numpy: str

    @staticmethod
    @cache
    def installed() -> "Versions":
        """The versions of this process."""
        folder = Path(holdfast.__file__).parent
        digest = hashlib.sha256()
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
        return Versions(holdfast.__version__, digest.hexdigest()[:16], *map(installed_version, COMPUTING))

    def demand(self, theirs: "Versions", worker: str) -> None:
        """Refuse a worker that has other versions.

        Raises:
            RefusedWorkerError: with the name of the worker and all that differs.
        """
        different = difference(self._asdict(), theirs._asdict())
        if different:
            raise RefusedWorkerError(f"{worker} {different}")


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """What a worker has in other versions than we do; empty if there is nothing.

    Example:
        >>> difference({"jax": "0.10.2", "numpy": "2.4.1"}, {"jax": "0.9.0", "numpy": "2.4.1"})
        'has jax 0.9.0, we have 0.10.2; install the same on all machines and restart the worker'
    """
    different = [f"{name} {theirs[name]}, we have {our}" for name, our in ours.items() if theirs[name] != our]
    advice = "install the same on all machines and restart the worker"
    return f"has {' and '.join(different)}; {advice}" if different else ""


class Payload(NamedTuple):
    """Work on its way to another process.

    Attributes:
        versions: those of the sender.
        platform: of the sender: "cpu", "gpu" or "tpu". Their results are not equal to the bit, and the sender notes in
            its folder which one computed them.
        run: an identity of its own. The same work sent again is loaded again, since a folder that it reads may have
            been deleted and made anew.
        content: the pickled work, which a receiver with other versions does not even load.
        cores: of the sender's machine, one of which each worker is held to; None: workers of other machines.

    Example:
        >>> payload = Payload.of(abs)
        >>> payload.open("worker 3")(-2)
        2
    """

    versions: Versions
    platform: str
    run: str
    content: bytes
    cores: tuple[int, ...] | None = None

    @classmethod
    def of(cls, work: Callable[[Any], Any]) -> "Payload":
        """Pack a function, also one that only exists in a session or a script."""
        import cloudpickle

        return cls(Versions.installed(), _platform(), f"holdfast-{uuid.uuid4().hex}", cloudpickle.dumps(work))

    def open(self, worker: str) -> Callable[[Any], Any]:
        """The function, loaded once for all items of a process.

        Args:
            worker: the name of this process, for errors.

        Raises:
            RefusedWorkerError: if this process has other versions or another platform, or cannot open the work.
        """
        with _LOADING:
            if self.run not in _loaded:
                _loaded[self.run] = self._load(worker)
            return _loaded[self.run]

    def forget(self) -> None:
        """Free the memory of the function."""
        _loaded.pop(self.run, None)

    def _load(self, worker: str) -> Callable[[Any], Any]:
        self.versions.demand(Versions.installed(), worker)
        if self.platform != _platform():
            raise RefusedWorkerError(
                f"{worker} computes on a {_platform()}, we on a {self.platform}; start the command where jax finds the "
                "same, or set JAX_PLATFORMS"
            )
        try:
            return pickle.loads(self.content)
        except RefusedWorkerError as error:  # of packages that only this work depends on
            raise RefusedWorkerError(f"{worker} {error}") from error
        except Exception as error:  # it lacks a module, does not see the folder, may not read it, ...
            raise RefusedWorkerError(f"{worker} cannot open the work: {describe(error)}") from error


def _platform() -> str:
    import jax

    return jax.default_backend()


# A scheduler that runs answers well within this many seconds.
CONNECTING = 10.0
# Seconds between two attempts to connect.
RETRYING = 0.5

_CONTRACT = "dask must be the address of a scheduler, such as tcp://10.0.0.1:8786, or its scheduler file"
_ADDRESS = re.compile(r".*://.*|[^/]+:\d+")  # Dask knows host:port as tcp://host:port

LOGGER = logging.getLogger(__name__)


class LostClusterError(ConnectionError):
    """The scheduler of a cluster cannot be reached.

    Example:
        >>> raise LostClusterError("no connection for 60 s")
        Traceback (most recent call last):
        holdfast.sweeps.engines.remote.LostClusterError: no connection for 60 s
    """


def check_scheduler(address: str) -> None:
    """Raise a ValueError unless this is an address, or a file that exists, without connecting.

    Example:
        >>> check_scheduler("head:8786")
        >>> check_scheduler("cluster.json")
        Traceback (most recent call last):
        ValueError: dask must be the address of a scheduler, ... got 'cluster.json', which does not exist
    """
    if not _ADDRESS.fullmatch(address) and not Path(address).exists():
        raise ValueError(f"{_CONTRACT}, got {address!r}, which does not exist")


def connect(address: str, patience: float | None = None, security: Any = None) -> "Client":
    """A client of a cluster that runs already; workers may join later, and a line of the log says if there are none.

    Args:
        address: of the scheduler, such as "tcp://head:8786", or the path of its scheduler file.
        patience: seconds that the scheduler may take to answer, or to write its file; None: it runs already.
        security: credentials; None: those of the configuration of Dask.

    Raises:
        ValueError: if this cannot be an address.
        LostClusterError: if there is no scheduler.
    """
    from distributed import Client
    from distributed.comm import resolve_address

    if patience is None:
        check_scheduler(address)
        patience = CONNECTING
    deadline = time.monotonic() + patience
    while True:
        try:
            scheduler = _scheduler(address)
            resolve_address(scheduler)  # before there is a client, which would not end well without a valid address
            client = Client(scheduler, timeout=min(CONNECTING, patience), security=security, set_as_default=False)
            break
        except OSError as error:  # also of a scheduler file that is not written yet
            if time.monotonic() > deadline:
                message = f"no connection to the Dask scheduler at {address} for {patience:g} s"
                raise LostClusterError(message) from error
            time.sleep(RETRYING)
        except ValueError as error:
            raise ValueError(f"{_CONTRACT}, got {address!r}: {error}") from error
    with contextlib.suppress(OSError):  # the next use of the client notices that the scheduler is lost again
        if not client.nthreads():
            LOGGER.warning("the Dask scheduler at %s has no workers yet", address)
    return client


def disconnect(client: "Client", timeout: float = CONNECTING) -> None:
    """Close a client, without the tracebacks of Dask if it cannot say goodbye to its scheduler.

    Args:
        client: of `connect`.
        timeout: seconds.
    """
    logger = logging.getLogger("distributed.client")
    logger.disabled = True
    try:
        with contextlib.suppress(OSError):
            client.close(timeout=timeout)
    finally:
        logger.disabled = False


def describe_worker(worker: Any) -> str:
    """What a worker is called in errors: by its name, or else its address."""
    return f"Dask worker {worker.name if worker.name is not None else worker.address}"


def _scheduler(address: str) -> str:
    """The address, perhaps from its file: Dask would wait for a file without end."""
    if _ADDRESS.fullmatch(address):
        return address
    content = Path(address).read_bytes()
    try:
        return json.loads(content)["address"]
    except (ValueError, LookupError, TypeError) as error:
        raise OSError(f"{address} is not the file of a scheduler, or is being written") from error
