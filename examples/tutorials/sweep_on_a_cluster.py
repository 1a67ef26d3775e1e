"""
A sweep on a cluster
====================

A map of the spurious share over step size and heterogeneity, computed by the workers of a Dask cluster. Stop it at any
moment, and the same command goes on; ask for more, and it computes what is new.
"""

# %%
# The cluster here is one worker inside this process, so that the script runs anywhere. On a real one, give the address
# of its scheduler or its scheduler file instead: nothing else changes. (``pip install 'holdfast[cluster]'``.)

import sys
import tempfile
from pathlib import Path

from distributed import LocalCluster

import holdfast as hf
from holdfast.sweeps import estimate_sweep, plot_sweep, specify
from holdfast.sweeps.engines import DaskEngine

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
settings = hf.Settings(dimension=10, steps=150, oracle="population", seeds=32)
axes = {
    "step_size": {"start": 0.01, "stop": 1.0, "count": 9, "scale": "log"},
    "heterogeneity": {"start": 1.0, "stop": 9.0, "count": 9},
}
cost = estimate_sweep(specify(settings, axes))
print(f"{cost.runs:,} runs in {cost.cells} cells, about {cost.seconds:.1f} s of one worker")

with LocalCluster(
    n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, host="127.0.0.1", protocol="tcp://"
) as cluster:
    data = hf.sweep(settings, axes, out=folder / "runs", engine=DaskEngine(cluster.scheduler_address))

# %%
# The result is a data set of xarray, with the swept settings as labelled dimensions.

washed_out = (data["spurious"] < 0.01) & (data["invariant"] > 0.9) & (data["diverged_at"] < 0)
best = washed_out.mean("seed").stack(point=("step_size", "heterogeneity")).idxmax("point").item()
print("most runs keep the invariant signal alone at step size {:.3g}, heterogeneity {:.3g}".format(*best))
figure = plot_sweep(data, "step_size", "heterogeneity", over="share", threshold=0.01)
figure.savefig(folder / "spurious.png")

# %%
# On the command line the sweep is a TOML file, and the options name the engine:
#
# .. code-block:: sh
#
#    holdfast sweep phase.toml --out runs --dask scheduler.json
#    holdfast sweep-status runs
#
# :doc:`../sweeps` has a script for SLURM, object stores, GPUs and programs of your own.
