"""How fast a sweep is, from the times of its files."""

import os
import struct
import time
from pathlib import Path

import pytest

from holdfast.sweeps import specify, sweep_status
from holdfast.sweeps.results import results_path
from holdfast.sweeps.running import prepare


@pytest.mark.parametrize(
    ("ages", "seconds", "rate"),
    [
        ([], 2.0, 0.0),
        ([5.0], 2.0, 0.0),  # one cell has no rate
        ([10.0, 8.0, 6.0, 4.0, 2.0], 2.0, 5 / 12),
        ([70.0, 65.0, 50.0, 40.0], 10.0, 2 / 65),
        ([4000.0, 3990.0, 3980.0, 10.0, 5.0], 5.0, 2 / 15),  # nobody worked for an hour
        ([1800.0, 1200.0, 600.0, 30.0], 600.0, 4 / 2400),  # long cells
        ([71.0, 71.0, 71.0, 1.0, 1.0, 1.0], 70.0, 3 / 71),  # three workers in step
        ([171.0, 171.0, 171.0, 1.0, 1.0, 1.0], 170.0, 3 / 171),
    ],
)
def test_the_rate_is_that_of_the_last_minutes_without_pauses(ages, seconds, rate, tmp_path, monkeypatch):
    now = time.time()
    monkeypatch.setattr("holdfast.sweeps.status.time.time", lambda: now)
    monkeypatch.setattr("holdfast.execution.grid.GridCells.running", lambda cells: [])
    prepare(specify({"dimension": 6}, {"bias": [*range(9)]}, seeds=2), results_path(tmp_path))
    for position, age in enumerate(ages):
        path = Path(results_path(tmp_path), "checksum", f"c.{position}.0")
        path.write_bytes(b"")
        path.parent.with_name("seconds").joinpath(path.name).write_bytes(struct.pack("<2f", seconds / 2, seconds / 2))
        os.utime(path, (now - age, now - age))
    assert sweep_status(tmp_path).rate == pytest.approx(rate)
