"""Cells that were computed once on an accelerator and are shipped, because they take hours on a small machine."""

import json
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("recorded.json")


@cache
def _read() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


def recorded_error(test: str, method: str, seed: int) -> float | None:
    """The error of a cell that is shipped, or None.

    Example:
        >>> round(recorded_error("Example2", "average_risk", 0), 3), recorded_error("Example1", "average_risk", 0)
        (0.425, None)
    """
    errors = _read()["cells"].get(test, {}).get(method, [])
    return errors[seed] if seed < len(errors) else None


def about_recorded() -> str:
    """Where the shipped cells come from."""
    return _read()["about"]
