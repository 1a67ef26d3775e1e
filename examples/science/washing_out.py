"""
Washing out
===========

Data comes from several environments. One part of the signal is the same in all of them (invariant), another part
changes (spurious). The same samples, batched in two ways, teach SGD two different things.
"""

# %%
# The model is matrix sensing: a measurement of environment e is y = <X, A* + A(e)>, and SGD fits U Uᵀ from a small
# start, with the step size η:
#
# .. math:: U \leftarrow (I - \eta G) U, \qquad
#           G = \frac1m \sum_i \langle X_i, U U^\top - A^* - A(e_i) \rangle X_i .
#
# Here are two environments, whose spurious strengths are 5.5 and -4.5. Their mean is 0.5, half of the invariant signal.
# *Hetero* batches come from one environment each, *pooled* batches mix both. Nothing else differs.

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from holdfast import Settings, simulate
from holdfast.plots import COLOURS, band, new_figure, style
from holdfast.sensing import environments
from holdfast.theory import exponents

settings = Settings(
    dimension=100, batch_size=8000, bias=0.5, heterogeneity=5.0, step_size=0.1, steps=180, every=2, seeds=64
)
runs = {batching: simulate(replace(settings, batching=batching)) for batching in ("pooled", "hetero")}
titles = {"pooled": "Pooled batches learn both", "hetero": "Batches of one environment hold on to what is invariant"}

with style():
    figure, panels = new_figure(2, "The same data, batched in two ways: medians over 64 runs, bands from 10 % to 90 %")
    for axes, (batching, trajectory) in zip(panels, runs.items(), strict=True):
        for signal in ("invariant", "spurious"):
            band(axes, trajectory.data[signal], "step", signal, color=COLOURS[signal])
        axes.set(title=titles[batching], xlabel="step", ylabel="signal learned (1 = fully)", ylim=(-0.05, 1.25))
        axes.legend(loc="upper left")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
figure.savefig(folder / "washing_out.png")

# %%
# Why? While the spurious part q is small, a step in environment e multiplies it by 1 + η ξ(e). Pooled batches see the
# mean strength, so q grows by log(1 + η E ξ) in each step. Batches of one environment see the strengths in turn, and
# log q grows by the *Lyapunov exponent*
#
# .. math:: \lambda(\eta) = \mathbb{E} \log |1 + \eta \xi| ,
#
# which is smaller (Jensen), and negative once the strengths are spread widely enough: growing by 55 % and then
# shrinking by 45 % is a loss.

pooled = exponents(environments.two_point(0.5, 0.0), settings.step_size).item()
hetero = exponents(environments.two_point(0.5, 5.0), settings.step_size).item()
print(f"growth of log q in a step: pooled {pooled:+.3f}, one environment at a time {hetero:+.3f}")
for batching, trajectory in runs.items():
    final = trajectory.final.median("seed")
    print(f"{batching:7} invariant {float(final['invariant']):.2f}  spurious {float(final['spurious']):.4f}")

# %%
# Your own environments work the same way: three hospitals, one of them rare, and two spurious directions.

hospitals = environments.table([[4.0, -3.0], [-5.0, 6.0], [3.0, 2.0]], probabilities=[0.45, 0.45, 0.1])
settings = Settings(dimension=40, batch_size=2000, spurious_rank=2, step_size=0.1, steps=150, seeds=32)
trajectory = simulate(settings, environments=hospitals)
print(trajectory.final[["invariant", "spurious", "distance"]].median("seed").to_pandas().round(4).to_string())
print(trajectory.outcomes[0].sentence)

# %%
# Closer to the threshold some runs fail: :doc:`order_of_environments` shows why, and how to prevent it.
# :doc:`step_sizes` says when it works at all. The paper: Xu, Gu and Fang, NeurIPS 2024 (:doc:`../references`).
