"""
Ratings that nobody gave
========================

Annealed SGD on a deep linear network jumps to a low rank and fills the missing ratings in.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from holdfast.completion import DeepMatrixFactorization
from holdfast.completion.baselines import AlternatingLeastSquares, SoftImpute, TwoWayMeans
from holdfast.plots import draw_jumps, save, style

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())

# %%
# 30 readers, 25 books, two tastes; each reader has rated about half of the books, with some noise.

random = np.random.default_rng(0)
tastes, traits = random.standard_normal((30, 2)), random.standard_normal((2, 25))
truth = 3 + tastes @ traits / np.sqrt(2)
rated = random.random(truth.shape) < 0.5
pairs = pd.DataFrame(np.argwhere(np.ones_like(rated)), columns=["reader", "book"])
pairs["book"] = "book " + pairs["book"].astype(str)  # labels may be anything
seen = rated.ravel()
ratings = truth.ravel()[seen] + 0.3 * random.standard_normal(seen.sum())

model = DeepMatrixFactorization(steps=1500, folds=3).fit(pairs[seen], ratings)
print(f"rank {model.rank_}, ridge {model.ridge_:.4f}, step size {model.step_size_:.2f}")
print(model.jumps_.to_string(index=False))

# %%
# Against other methods, on the ratings that were not given:

methods = {
    "annealed SGD": model,
    "nuclear norm": SoftImpute(folds=3).fit(pairs[seen], ratings),
    "alternating least squares": AlternatingLeastSquares(max_rank=4, folds=3).fit(pairs[seen], ratings),
    "row and column means": TwoWayMeans().fit(pairs[seen], ratings),
}
for name, method in methods.items():
    error = np.sqrt(np.mean((method.predict(pairs[~seen]) - truth.ravel()[~seen]) ** 2))
    print(f"{name:<26} rank {method.rank_:>2}, error on ratings that were not given {error:.3f}")

with style():
    figure = draw_jumps(model)
    save(figure, folder, "completion_jumps")
