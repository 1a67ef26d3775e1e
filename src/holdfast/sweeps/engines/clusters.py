"""The connection to the scheduler of a Dask cluster, secured as the configuration of Dask says."""

import contextlib
import json
import logging
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client

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
        holdfast.sweeps.engines.clusters.LostClusterError: no connection for 60 s
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
