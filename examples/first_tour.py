"""A first tour: the same data, batched in two ways.

Run it with `python examples/first_tour.py`; it takes a few seconds.
"""

from holdfast import Settings, environments, simulate

# Two environments with opposite spurious strengths, 7 and -5; their mean, 1, is as strong as the invariant signal.
for batching in ("hetero", "pooled"):
    trajectory = simulate(Settings(dimension=40, batch_size=2000, heterogeneity=6.0, batching=batching, seeds=32))
    final = trajectory.final.median("seed")
    print(f"{batching:7} invariant {float(final['invariant']):.2f}  spurious {float(final['spurious']):.4f}")

# Your own environments: three hospitals, one of them rare, two spurious directions.
hospitals = environments.table([[4.0, -3.0], [-5.0, 6.0], [3.0, 2.0]], probabilities=[0.45, 0.45, 0.1])
settings = Settings(dimension=40, batch_size=2000, spurious_rank=2, step_size=0.1, steps=150, seeds=32)
trajectory = simulate(settings, environments=hospitals)
print(trajectory.final[["invariant", "spurious", "distance"]].median("seed"))
print(trajectory.outcomes[0].sentence)
