"""
Boosted trees on selected columns
=================================

Trees on the columns whose relation to the response holds, and on all columns. It takes about two minutes; two
arguments are the first seed and the number of models. Every random structural model is observed in five environments.
Trees are fitted to all columns, and after `HeteroSelector`, and tested on new rows of the model:

- intervened: all columns that are no causes of the response are set to values from other rows;
- same law: nothing changes;
- same law, alike: nothing changes, and the labels of environments that the selector sees are drawn at random, so the
  environments do not differ.
"""

import sys

import numpy as np
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from holdfast.datasets import permute_within, structural_dataset
from holdfast.estimators import HeteroSelector

first, count = (int(word) for word in sys.argv[1:3]) if len(sys.argv) == 3 else (30_000, 50)


def fitted(rows, environments):
    """Trees on the columns that the selector passes on, with the environments given to it by name."""
    model = make_pipeline(HeteroSelector(), HistGradientBoostingRegressor(random_state=0))
    return model.fit(rows.inputs, rows.targets, heteroselector__environments=environments)


def log_error(model, rows):
    """The logarithm of the mean squared error."""
    return np.log(np.mean((model.predict(rows.inputs) - rows.targets) ** 2))


changes: dict[str, list[float]] = {"intervened": [], "same law": [], "same law, alike": []}
for seed in range(first, first + count):
    dataset, random = structural_dataset(seed), np.random.default_rng(seed)
    train, same = dataset.train, dataset.validation
    intervened = permute_within(same, np.flatnonzero(dataset.coefficients == 0), random)
    everything = HistGradientBoostingRegressor(random_state=0).fit(train.inputs, train.targets)
    selected = fitted(train, train.environments)
    alike = fitted(train, random.permutation(train.environments))
    for name, model, rows in (
        ("intervened", selected, intervened),
        ("same law", selected, same),
        ("same law, alike", alike, same),
    ):
        changes[name].append(log_error(model, rows) - log_error(everything, rows))

print(f"Error after HeteroSelector, relative to all columns, over {count} models (geometric mean, 95 % interval):")
for name, values in changes.items():
    half = t.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
    mean, low, high = np.exp(np.mean(values) + np.array([0, -half, half]))
    print(f"  {name:16} {mean:.2f} ({low:.2f} to {high:.2f}), lower in {np.sum(np.array(values) < 0)} models")
