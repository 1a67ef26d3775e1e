"""Waiting for something that another process or thread does."""

import time
from collections.abc import Callable

# Starting a process takes a second on an idle machine, and tests run on busy ones.
PATIENCE = 120.0


def wait_until(condition: Callable[[], object], every: float = 0.05) -> None:
    """Ask again and again, with this many seconds in between; fails when it takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"nothing happened in {PATIENCE:.0f} s"
        time.sleep(every)
