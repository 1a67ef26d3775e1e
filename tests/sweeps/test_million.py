"""The example of a million runs: its cells, and the same command in small where nothing but jax is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.sensing.simulation import SLAB_ON_ACCELERATOR
from holdfast.sweeps.cells import SweepCells, runs_of_a_cell
from holdfast.sweeps.specification import read_sweep

SPEC = Path(__file__).parents[2] / "examples" / "million.toml"

BARE = """
import sys
import tempfile
from dataclasses import replace

packages = "cloudpickle cyclopts dask distributed fsspec lazy_loader matplotlib msgspec optax pandas rich sklearn"
sys.modules.update(dict.fromkeys([*packages.split(), "threadpoolctl", "typing_extensions", "xarray", "zarr"]))

from holdfast.sweeps.engines.local import DeviceEngine, ThreadEngine
from holdfast.sweeps.results import requested_cells
from holdfast.sweeps.running import run_sweep
from holdfast.sweeps.specification import read_sweep

sweep = read_sweep(sys.argv[1])
small = {**sweep.settings, "dimension": 4, "oracle": "population", "steps": 20, "every": 20}
sweep = replace(sweep, settings=small, seeds=8, seeds_per_cell=4)
found = []
for engine in (DeviceEngine(), ThreadEngine(1)):
    path = f"{tempfile.mkdtemp()}/results.zarr"
    outcome = run_sweep(sweep, path, engine)
    store, cells = requested_cells(path)
    saved = [each.value.values for _, each in store.read_all(cells)]
    found.append([{name: values.tolist() for name, values in each.items()} for each in saved])
    print(engine.name, outcome.computed, outcome.failures, len(saved) == len(cells))
print(found[0] == found[1])
"""


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_a_million_runs_fill_their_cells(platform):
    sweep = read_sweep(SPEC)
    cells = SweepCells(sweep, runs_of_a_cell(sweep, platform))
    assert (sweep.runs, sweep.settings["dimension"], sweep.settings["batch_size"]) == (10**6, 100, 8000)
    assert len(cells) * cells.runs == 10**6  # no run is computed that nobody asked for
    assert cells.runs <= SLAB_ON_ACCELERATOR[1]  # one program on an accelerator


def test_the_command_runs_on_devices_where_nothing_but_jax_is_installed():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(SPEC)], capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": flags}
    )
    assert done.stdout == "2 cpu devices 16 {} True\n1 thread 16 {} True\nTrue\n", done.stderr
