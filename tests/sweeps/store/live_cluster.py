"""A Dask cluster whose scheduler and workers are processes of their own, which tests start and kill."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from sweeps.store.waiting import wait_until


class LiveCluster:
    """A scheduler and workers as processes of their own, which end with the stack."""

    def __init__(self, folder: Path, stack: ExitStack):
        self._folder, self._stack = folder, stack
        self.file = folder / "scheduler.json"
        self.workers: dict[str, subprocess.Popen] = {}
        self.scheduler = self._start_scheduler(0)
        wait_until(self.file.exists)
        self.address = json.loads(self.file.read_text())["address"]

    def add_worker(self, name: str, *options: str) -> None:
        """Start another one, of one thread."""
        folder = str(self._folder / name)
        arguments = ["--nthreads", "1", "--no-nanny", "--name", name, "--local-directory", folder, *options]
        self.workers[name] = self._start("worker", self.address, *arguments)

    def restart_scheduler(self) -> None:
        """On the same address; workers end with their scheduler."""
        self.scheduler.kill()
        self.scheduler.wait()
        self.scheduler = self._start_scheduler(int(self.address.rpartition(":")[2]))

    def _start_scheduler(self, port: int) -> subprocess.Popen:
        return self._start("scheduler", "--port", str(port), "--host", "127.0.0.1", "--scheduler-file", str(self.file))

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen:
        log = self._stack.enter_context((self._folder / f"{kind}.log").open("a"))
        command = [sys.executable, "-m", "dask", kind, "--no-dashboard", *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process
