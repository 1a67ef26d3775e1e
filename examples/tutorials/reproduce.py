"""
Reproduce a figure and its claims
=================================

An experiment is one figure, theorem or question of a paper: settings, a simulation, a figure, a table, and claims.
"""

# %%
# On the command line, ``holdfast reproduce --list`` names the experiments, and
#
# .. code-block:: sh
#
#    holdfast reproduce figure_5 --quick --out results
#
# writes the figure, its numbers, ``claims.json`` and ``report.html`` to a folder. The same from Python:

import json
import sys
import tempfile
from pathlib import Path

from holdfast.plots import style
from holdfast_studies import TITLES, Effort, load, reproduce

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
print(f"{len(TITLES)} experiments, among them {', '.join(list(TITLES)[:6])}")
experiment = load("figure_5")
code = reproduce({"figure_5": experiment}, folder, quick=True)
print("exit code", code, "and files:", ", ".join(sorted(path.name for path in folder.iterdir() if path.is_file())))

# %%
# A claim is a number with an interval, and the range in which it lies if the claim holds. The verdict follows from the
# two, and from the conditions of the statement that the settings meet. With few seeds, as here, it is a first look.

for claim in json.loads((folder / "claims.json").read_text())["claims"]:
    print(f"{claim['id']}: {claim['measured']['value']:.3g} -> {claim['verdict']}")

# %%
# The parts are plain functions, so that you can take the data and draw something else.

data = experiment.simulate(Effort(seeds=experiment.quick_seeds, quick=True), None)
print(dict(data.sizes))
with style():
    figure = experiment.draw(data)

# %%
# Without ``--quick`` every claim gets all its seeds; ``make reproduce`` runs everything. The same command goes on where
# it was stopped. :doc:`../reproduction` lists the experiments and explains the verdicts.
