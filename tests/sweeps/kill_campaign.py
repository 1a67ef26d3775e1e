"""One sweep, killed at random moments through the command line, and resumed each time.

`python -m sweeps.kill_campaign 30` kills `holdfast sweep` 30 times with SIGKILL and prints what it cost; a second
number is the seed of the moments. Every fourth is a moment after the start of the command, the others are moments after
the start of a cell.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sweeps.logged_program import LOG
from sweeps.store.cell_files import cell_files, contents, notes
from sweeps.store.waiting import wait_until

WORKERS = 2
# A command begins up to this many cells before it is killed. Twice as many for each kill leave something for the last.
MOST_CELLS = 4
SPEC = """
program = "sweeps.logged_program:logged"

[settings]
dimension = 20
steps = 400

[sweep]
step_size = {{ start = 0.02, stop = 0.2, count = {count} }}
heterogeneity = [1.0, 3.0, 6.0, 9.0]
seeds = 16
seeds_per_cell = 8
"""
CELLS_OF_A_VALUE = 4 * 2


class Kills(NamedTuple):
    """What a campaign found.

    Attributes:
        cells: of the sweep.
        kills: commands that were killed.
        while_starting: those of them that had not begun a cell.
        begun: computations of cells, in all commands.
        open_cells: computations that kills cut off, summed over the kills.
        most_open: the most that one kill cut off.
        identical: whether all cells but the computing times are those of the undisturbed sweep, and no lease is left.
        touched: cells whose files changed after they were finished.
    """

    cells: int
    kills: int
    while_starting: int
    begun: int
    open_cells: int
    most_open: int
    identical: bool
    touched: int


def campaign(kills: int, seed: int, folder: Path) -> Kills:
    """Run a sweep undisturbed, and again with kills."""
    source = random.Random(seed)
    count = -(-2 * kills * MOST_CELLS // CELLS_OF_A_VALUE) + 2
    spec, cells = folder / "spec.toml", count * CELLS_OF_A_VALUE
    spec.write_text(SPEC.format(count=count))
    begin = time.monotonic()
    _finish(_start(spec, folder / "undisturbed", folder / "undisturbed.log"))
    seconds = time.monotonic() - begin
    assert len(_lines(folder / "undisturbed.log")) == cells
    out, log = folder / "killed", folder / "killed.log"
    times: dict[str, int] = {}
    opened, while_starting, touched = [], 0, 0
    for number in range(kills):
        before, finished = len(_lines(log)), len(times)
        process = _start(spec, out, log)
        if number % 4 == 3:
            time.sleep(source.uniform(0.0, 0.25 * seconds))
        else:
            target = before + source.randrange(1, MOST_CELLS)
            wait_until(partial(_begun, process, log, target), every=1e-3)
            time.sleep(source.uniform(0.0, seconds / cells))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the sweep was finished before it could be killed"
        now = _times(out)
        touched += sum(now.get(name) != at for name, at in times.items())
        times = now
        begun = len(_lines(log)) - before
        while_starting += begun == 0
        opened.append(begun - (len(times) - finished))
    _finish(_start(spec, out, log))
    now = _times(out)
    touched += sum(now.get(name) != at for name, at in times.items())
    begun = len(_lines(log))
    assert len(Counter(line.split(maxsplit=1)[1] for line in _lines(log))) == cells
    identical = contents(folder / "undisturbed") == contents(out) and not notes(out, ".lease")
    return Kills(cells, kills, while_starting, begun, sum(opened), max(opened), identical, touched)


def check(found: Kills) -> None:
    """What must hold, however the moments fall."""
    assert found.identical
    assert found.touched == 0, "finished cells were computed again"
    assert found.begun == found.cells + found.open_cells, "more was computed twice than the cells that were open"
    assert found.most_open <= WORKERS


def _start(spec: Path, out: Path, log: Path) -> subprocess.Popen:
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, LOG: str(log), "PYTHONPATH": os.pathsep.join([tests, *filter(None, sys.path)])}
    command = [sys.executable, "-m", "holdfast", "sweep", str(spec), "--out", str(out), "--workers", str(WORKERS)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def _begun(process: subprocess.Popen, log: Path, number: int) -> bool:
    """Whether so many cells have begun, or the process has ended."""
    return len(_lines(log)) >= number or process.poll() is not None


def _times(out: Path) -> dict[str, int]:
    """When each finished cell was finished."""
    return {path.name: path.stat().st_mtime_ns for path in cell_files(out)}


def main(arguments: list[str]) -> int:
    """Run a campaign and print what it found."""
    kills, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    with tempfile.TemporaryDirectory() as folder:
        found = campaign(kills, seed, Path(folder))
    print(f"{found.cells} cells, killed {found.kills} times ({found.while_starting} times before a cell was begun)")
    print(f"{found.begun} computations: {found.open_cells} were cut off, at most {found.most_open} by one kill")
    print(f"finished cells that were touched again: {found.touched}")
    print(f"identical to the undisturbed sweep, to the last bit: {'yes' if found.identical else 'NO'}")
    check(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
