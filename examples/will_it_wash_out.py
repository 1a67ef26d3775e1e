"""Will heterogeneity wash a spurious signal out? Asked of a model on paper, and of measurements.

Run it with `python examples/will_it_wash_out.py`; it takes a few seconds.
"""

import numpy as np

from holdfast import Settings, simulate
from holdfast.environments import two_point
from holdfast.theory import diagnose, examine

# On paper: strengths 1 -+ 6, the setting of figure 3 of the paper.
diagnosis = diagnose(two_point(1.0, 6.0))
print(*diagnosis.sentences, sep="\n")

# The advice, tried: the spurious share should end below 0.01 in 95 of 100 runs.
advised = diagnosis.advised
settings = Settings(step_size=advised.step_size, init_scale=advised.init_scale, steps=advised.steps, seeds=64)
final = simulate(settings).final
washed_out = float((final["spurious"] < 0.01).mean())
print(f"tried: median invariant share {float(final['invariant'].median()):.2f}, washed out in {washed_out:.0%} of runs")

# From data: three laboratories measure the same 12 x 12 signal, with a spurious one of their own and label noise.
random = np.random.default_rng(0)
measurements = random.standard_normal((4500, 12, 12))
laboratory = np.repeat(["Basel", "Kyoto", "Quito"], 1500)
strength = {"Basel": -6.0, "Kyoto": 7.0, "Quito": 2.0}
responses = measurements[:, 0, 0] + measurements[:, 1, 1] * [strength[name] for name in laboratory]
findings = examine(measurements, responses + 0.5 * random.standard_normal(4500), laboratory, step_size=0.1)
print()
print(*findings.sentences, sep="\n")
