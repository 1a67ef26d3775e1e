"""
Absorbing sets and jumps
========================

A deep linear network fits some entries of a matrix. Gradient descent stays in the minimum that it finds first. SGD
jumps from there to a lower rank, and never comes back.
"""

# %%
# The matrix is 2 x 2, three entries are observed, and the fourth is 1/ε for the matrix of rank 1. The network is
# A = W₃ W₂ W₁ with a ridge λ on its weights. A minimum of rank 2 puts a small number in the missing place, the one of
# rank 1 has the truth. All runs start at the same points for both algorithms.

import sys
import tempfile
from pathlib import Path

import numpy as np

from holdfast.completion import CompletionBuilder, ranks, starts, train, two_by_two
from holdfast.plots import new_figure, style
from holdfast.theory.absorbing import Constants, contains

problem, seeds = two_by_two(0.25), np.arange(32)
options = {"step_size": 0.4, "ridge": 0.0245, "steps": 50_000, "every": 100}
start = starts((2, 6, 6, 2), 1.0, seeds)
paths = {
    "SGD": train(problem, start, seeds, **options),
    "gradient descent": train(problem, start, seeds, build=CompletionBuilder("gradient-descent"), **options),
}
values = {name: np.linalg.svd(path.fitted, compute_uv=False) for name, path in paths.items()}

with style():
    figure, panels = new_figure(2, "32 runs from the same starts: the second singular value, relative to the first")
    for axes, (name, found) in zip(panels, values.items(), strict=True):
        axes.plot(paths[name].steps, (found[..., 1] / found[..., 0]).T, color="#1b6ca8", alpha=0.4, linewidth=0.7)
        axes.set(title=name, yscale="log", ylim=(1e-8, 2), xlabel="step", ylabel="second singular value / first")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
figure.savefig(folder / "jumps.png")

# %%
# Each line that falls is a jump from rank 2 to rank 1. None rises.

for name, found in values.items():
    rank = ranks(found, problem.scale)
    falls, rises = (np.diff(rank[:, 10:]) < 0).any(1), (np.diff(rank[:, 10:]) > 0).any(1)  # not at the start
    print(f"{name}: the rank falls in {falls.sum()} of {len(rank)} runs and rises in {rises.sum()}")

# %%
# Why not back? With three layers, a direction of size s is fed at most in proportion to s² and shrinks in proportion to
# s, so a small direction stays small. The set B₁ makes this precise: layers that are nearly balanced, have nearly rank
# one and are bounded. Its constants below were chosen on other runs, at a ridge of 0.026.

inside = contains(paths["SGD"].layers, 1, Constants(balance=0.3, slack=0.3, level=0.03, bound=4.0))
entered = inside.any(1)
left = sum((~run[np.argmax(run) :]).any() for run in inside[entered])
print(f"{entered.sum()} of {len(inside)} runs of SGD enter B₁, and {left} leave it again")

# %%
# With a constant ridge SGD ends at rank 0, so one anneals: ``holdfast jumps --offshoots 8`` branches off with a smaller
# step size and ridge, before and after the jump. :doc:`../jumps` has the numbers, the regime (it is narrow) and what
# the slides of Wang and Jacot (ICLR 2024) leave open.
