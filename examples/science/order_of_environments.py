"""
The order of environments
=========================

SGD draws the environment of each step at random, and some runs have bad luck. Visiting the environments in cycles
keeps the exponent and removes the luck.
"""

# %%
# Log q is a sum of independent terms log|1 + η ξ|: a random walk. Its drift is the exponent, and its spread grows like
# √T. In a cycle every environment comes once, so after whole cycles the walk is at its drift, whatever the order within
# them. The batches are the same size, and the invariant signal does not notice.

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast import Settings, simulate
from holdfast.plots import new_figure, style
from holdfast.sensing import environments
from holdfast.theory import exponents

settings = Settings(dimension=30, batch_size=2400, heterogeneity=7.0, step_size=0.05, steps=200, every=2, seeds=64)
orders = ("independent", "reshuffled")
runs = {order: simulate(replace(settings, order=order)) for order in orders}
drift = exponents(environments.two_point(1.0, 7.0), settings.step_size).item()

with style():
    figure, panels = new_figure(2, f"64 runs with the same exponent, {drift:.3f} a step, in two orders")
    for axes, (order, trajectory) in zip(panels, runs.items(), strict=True):
        spurious = trajectory.data["spurious"].transpose("step", "seed")
        axes.plot(spurious["step"], spurious, color="#c8553d", alpha=0.35, linewidth=0.7)
        axes.plot(spurious["step"], spurious.median("seed"), color="black", label="median")
        axes.set(title=f"{order} draws" if order == "independent" else "reshuffled cycles", yscale="log")
        axes.set(xlabel="step", ylabel="spurious share", ylim=(1e-9, 10))
        axes.legend(loc="upper left")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
figure.savefig(folder / "order_of_environments.png")

# %%
# What lifts both medians off zero is sampling error, which falls as the batch grows. The failures do not: with
# independent draws they are a power tail, in cycles there is none.

for order, trajectory in runs.items():
    spurious = trajectory.final["spurious"]
    print(f"{order:12} median {float(spurious.median()):.5f}  mean {float(spurious.mean()):.5f}", end="  ")
    print(f"largest {float(spurious.max()):.5f}  above 0.05: {int(np.sum(spurious > 0.05))} of {spurious.size}")

# %%
# On the command line it is one option, ``holdfast simulate --heterogeneity 7 --order reshuffled``; in PyTorch it is the
# default of ``EnvironmentBatchSampler``. It does not help where the exponent is positive and T is long: then every
# run learns the spurious signal. :doc:`../order` has the theory, the tables and the limits.
