"""The devices of jax, on a machine that is made to have four."""

import os
import subprocess
import sys

SCRIPT = """
import threading

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.core.run import Algorithm
from holdfast.core.run import Run, available_devices, run
from holdfast.sweeps.engines import DeviceEngine, ThreadEngine

devices = jax.local_devices()
assert available_devices() == devices
with jax.default_device(devices[2]):
    assert available_devices() == [devices[2]]
with jax.default_device("cpu"):
    assert available_devices() == devices
together = threading.Barrier(4)

def build(shared, parameters):
    def step(key, state, number):
        return state @ (shared + 0.1 * jax.random.normal(key, (8, 8)))

    return Run(Algorithm(lambda: jnp.eye(8), step), lambda state: {"state": state})

def work(seed):
    if seed < 4:
        together.wait(60)  # so that each device has one
    records = run(build, 0.3 * np.eye(8, dtype=np.float32), np.ones(3), [seed, 100, 101], steps=20)
    return jnp.zeros(()).device.id, records.values["state"].tobytes()

on_devices = {each.item: each.value for each in DeviceEngine().run(work, range(8))}
in_threads = {each.item: each.value for each in ThreadEngine(4).run(work, range(8))}
assert {device for device, _ in on_devices.values()} == {0, 1, 2, 3}
assert {device for device, _ in in_threads.values()} == {0}
assert len({values for _, values in in_threads.values()}) == 8
for seed in range(8):
    assert on_devices[seed][1] == in_threads[seed][1], seed
print(DeviceEngine().name)
"""


def test_cells_land_on_all_devices_and_are_equal_to_the_bit_to_those_of_threads():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env={**os.environ, "XLA_FLAGS": flags}
    )
    assert done.stdout == "4 cpu devices\n", done.stderr


BARE = """
import sys
import tempfile
from pathlib import Path

packages = "cloudpickle dask distributed fsspec pandas rich sklearn threadpoolctl cyclopts xarray zarr"
sys.modules.update(dict.fromkeys(packages.split()))

import jax.numpy as jnp
import numpy as np

from holdfast.core import CellResult
from holdfast.sweeps.store import CELLS, Cell, Store, compute
from holdfast.sweeps.engines import EngineOptions

store = Store(Path(tempfile.mkdtemp()), CELLS)
cells = [Cell(f"{number:032x}-0123456789abcdef", number) for number in range(3)]
for options in (EngineOptions(devices=True), EngineOptions(workers=2)):
    function = lambda number: CellResult({"sum": np.asarray(jnp.ones(2) * number)})
    outcome = compute(store, cells, function, options.engine())
    print(outcome.computed, outcome.failures)
"""


def test_cells_are_computed_where_nothing_but_jax_is_installed():
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True)
    assert done.stdout == "3 {}\n0 {}\n", done.stderr
