"""
What theory says about step sizes
=================================

Will heterogeneity wash out the spurious signal, at which step size, and in how many steps? The exponent answers for
a model on paper, and for measurements.
"""

# %%
# A small spurious direction dies out exactly when λ(η) = E log|1 + η ξ| is negative. Below some step size it never is:
# for small η the exponent is η E ξ - η² E ξ² / 2, and the mean wins. Above another step size the exponent turns
# positive again, the invariant signal loses its stability, or the iteration is no longer bounded. Between them lies the
# window of step sizes.

import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast import Settings, simulate
from holdfast.plots import new_figure, style
from holdfast.sensing.environments import two_point
from holdfast.theory import diagnose, examine, exponents, sharp_window, stationary_shares

step_sizes = np.linspace(0.01, 0.14, 66)
tried = tuple(step_sizes[5::5])
settings = Settings(dimension=10, batch_size=8000, step_size=tried, steps=1000, every=1000, seeds=128)

with style():
    figure, (curves, shares) = new_figure(2, "Strengths 1 ± M: the exponent, and what SGD learns in 1,000 steps")
    for heterogeneity, colour in ((4.0, "#1b6ca8"), (6.0, "#c8553d"), (8.0, "#4c956c")):
        law, label = two_point(1.0, heterogeneity), f"M = {heterogeneity:.0f}"
        curves.plot(step_sizes, exponents(law, step_sizes)[:, 0], color=colour, label=label)
        curves.axvline(sharp_window(law).low, color=colour, linestyle=":", linewidth=1)
        lasting = [stationary_shares(law, step_size).item() for step_size in step_sizes]
        shares.plot(step_sizes, lasting, color=colour, linewidth=1)
        final = simulate(replace(settings, heterogeneity=heterogeneity)).survivors["spurious"]
        shares.plot(tried, final.mean("seed"), "o", color=colour, markersize=4, label=label)
    curves.axhline(0, color="black", linewidth=0.8)
    curves.set(title="exponent; dotted: its zero", xlabel="step size η", ylabel="λ, growth of log q in a step")
    curves.set_ylim(-0.3, 0.06)
    curves.legend(loc="lower left")
    shares.set(title="mean spurious share of 128 runs; lines: theory", xlabel="step size η", ylabel="spurious share")
    shares.legend(loc="upper right")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
figure.savefig(folder / "step_sizes.png")

# %%
# The lines are for infinitely many steps and infinite batches, and act as if the share were at its mean all the time.
# The same in words, with advice for batches of 8,000:

diagnosis = diagnose(two_point(1.0, 6.0), batch_size=8000, confidence=0.9)
for sentence in diagnosis.sentences:
    print(textwrap.fill(sentence, 80))

# %%
# The advice, tried: the spurious share should end below 0.01 in at least 90 of 100 runs.

advised = diagnosis.advised
chosen = Settings(step_size=advised.step_size, init_scale=advised.init_scale, steps=advised.steps, seeds=64)
final = simulate(chosen).final
washed_out = float((final["spurious"] < 0.01).mean())
print(f"tried: median invariant share {float(final['invariant'].median()):.2f}, washed out in {washed_out:.0%} of runs")

# %%
# From data: three laboratories measure the same 12 x 12 signal, with a spurious one of their own and label noise.

random = np.random.default_rng(0)
measurements = random.standard_normal((4500, 12, 12))
laboratory = np.repeat(["Basel", "Kyoto", "Quito"], 1500)
strength = {"Basel": -6.0, "Kyoto": 7.0, "Quito": 2.0}
responses = measurements[:, 0, 0] + measurements[:, 1, 1] * [strength[name] for name in laboratory]
findings = examine(measurements, responses + 0.5 * random.standard_normal(4500), laboratory, step_size=0.1)
for sentence in findings.sentences:
    print(textwrap.fill(sentence, 80))

# %%
# On the command line: ``holdfast window``, ``holdfast advise`` and ``holdfast phase``. :doc:`../theory` derives all of
# this, with sampling error, tails, and a test of the advice on twelve problems.
