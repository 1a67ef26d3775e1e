"""A local server that speaks the protocol of S3."""

import contextlib
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from unittest.mock import patch

from sweeps.store.waiting import wait_until


@contextlib.contextmanager
def s3_bucket(name: str = "holdfast-test") -> Iterator[str]:
    """The URL of a bucket of its own, whose server the environment names meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    settings = {"ENDPOINT_URL": address, "ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    settings["DEFAULT_REGION"] = "us-east-1"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]

    def answers() -> bool:
        assert server.poll() is None, "the server ended"
        with contextlib.suppress(OSError):
            urllib.request.urlopen(address).close()
            return True
        return False

    with (
        patch.dict(os.environ, {f"AWS_{key}": value for key, value in settings.items()}),
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server,
    ):
        try:
            wait_until(answers)
            import s3fs

            s3fs.S3FileSystem.clear_instance_cache()  # those of another server
            s3fs.S3FileSystem().mkdir(name)
            yield f"s3://{name}"
        finally:
            server.terminate()
