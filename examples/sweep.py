"""A map of the spurious signal over step size and heterogeneity, resumable and larger at will.

Run it with `python examples/sweep.py FOLDER`; it takes a few seconds. Run it again and it computes nothing.
"""

import sys
from pathlib import Path

from holdfast.sweeps import open_sweep, plan, plot_sweep, read_sweep, run_sweep

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
sweep = read_sweep(Path(__file__).with_suffix(".toml"))
cost = plan(sweep, "cpu")
print(f"{cost.runs:,} runs in {cost.cells} cells, about {cost.seconds:.1f} s of one worker")

outcome = run_sweep(sweep, folder / "results.zarr")
print(f"{outcome.computed} cells computed, {outcome.failed} failed")

data = open_sweep(folder)
washed_out = (data["spurious"] < 0.01) & (data["invariant"] > 0.9) & (data["diverged_at"] < 0)
best = washed_out.mean("seed").stack(point=("step_size", "heterogeneity")).idxmax("point").item()
print("most runs keep the invariant signal alone at step size {:.3g}, heterogeneity {:.3g}".format(*best))
plot_sweep(data, "step_size", "heterogeneity", over="share", threshold=0.01).savefig(folder / "spurious.png")
