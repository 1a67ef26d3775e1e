"""The devices of jax, on a machine that is made to have four."""

import os
import subprocess
import sys

SCRIPT = """
import jax, numpy as np, threading
from holdfast.core.run import available_devices, available_workers
from holdfast.execution.engines import DeviceEngine, ThreadEngine
from holdfast.sensing.settings import Settings
from holdfast.sensing.simulation import execute

assert len(jax.local_devices()) == 4
assert len(available_devices()) == 4
with jax.default_device(jax.local_devices()[2]):
    assert available_devices() == [jax.local_devices()[2]]
with jax.default_device("cpu"):
    assert available_devices() == jax.local_devices()
together = threading.Barrier(4)

def work(seed):
    if seed < 4:
        together.wait(60)  # so that each device has one
    device = jax.numpy.zeros(()).device
    assert available_devices() == [device] or len(available_devices()) == 4
    settings = Settings(dimension=6, steps=20, batch_size=20, seeds=3, seed=seed)
    values = execute(settings)[0].values if isinstance(execute(settings), tuple) and hasattr(execute(settings)[0], "values") else execute(settings).values
    return device.id, {name: np.asarray(value) for name, value in values.items()}

on_devices = {each.item: each.value for each in DeviceEngine().run(work, range(8))}
assert {number for number, _ in on_devices.values()} == {0, 1, 2, 3}
in_threads = {each.item: each.value for each in ThreadEngine(4).run(work, range(8))}
for seed in range(8):
    for name, values in in_threads[seed][1].items():
        assert values.tobytes() == on_devices[seed][1][name].tobytes(), (seed, name)
print(DeviceEngine().name)
"""
