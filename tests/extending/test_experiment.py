"""An experiment of one's own, as docs/extend.md says: do environments wash out better in turn, or in blocks?"""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr
from jax import numpy as jnp

import holdfast as hf
from holdfast.core.statistics import median
from holdfast_studies.claims import AS_STATED, Claim, Position
from holdfast_studies.experiment import Experiment
from holdfast_studies.runner import Reporter, reproduce

SETTINGS = hf.Settings(dimension=10, batch_size=500, heterogeneity=7.0, steps=240, every=5)


def in_blocks(environments, batch_size, *, length):
    strengths = jnp.asarray(environments.strengths)
    counts = jnp.full(1, 1 if batch_size is None else batch_size, strengths.dtype)
    return lambda key, step: hf.sensing.batching.Batch(strengths[step // length % len(strengths)][None], counts)


TURNS, BLOCKS = partial(in_blocks, length=1), partial(in_blocks, length=20)
ORDERS: dict[str, hf.sensing.batching.BatchingMaker] = {
    "random": hf.sensing.batching.hetero,
    "in turn": TURNS,
    "in blocks": BLOCKS,
}


def simulate(effort, progress):
    runs = [hf.simulate(replace(SETTINGS, seeds=effort.seeds), batching=each).data for each in ORDERS.values()]
    return xr.concat(runs, pd.Index(ORDERS, name="order"), combine_attrs="drop")[["spurious"]]


def draw(data):
    figure, (axes,) = hf.plots.new_figure(1, "Spurious signal by order of the environments")
    data["spurious"].median("seed").plot.line(x="step", ax=axes)
    return figure


def claims(data):
    turns, random = data["spurious"].sel(order="in turn"), data["spurious"].sel(order="random")
    never = ("peak", "ours", "In turn, a typical run never passes 0.05.", "M=7", median(turns.max("step")))
    lower = ("end", "ours", "In turn, it ends ten times lower.", "M=7", median((turns / random).isel(step=-1)))
    return [
        Claim(*never, (-np.inf, 0.05), AS_STATED, ""),
        Claim(*lower, (-np.inf, 0.1), AS_STATED, "", Position.OUTSIDE),
    ]


def test_turns_follow_the_exponent():  # log(1.05² - 0.35²) for two steps; signals below 1e-5 are linear to 1e-3
    data = hf.simulate(replace(SETTINGS, oracle="population", seeds=1, steps=40), batching=TURNS).data["spurious"][0]
    np.testing.assert_allclose(np.log(data[[2, 8]] / 1e-6), np.log(1.05**2 - 0.35**2) * np.array([10, 40]), atol=1e-3)


def test_verdicts_and_reuse(tmp_path):  # exit code 0: 32 seeds decide both claims, each as it is recorded
    notes: list[str] = []
    ours = Experiment("Order", "", (), 32, 8, simulate, draw, lambda data: data.to_dataframe().reset_index(), claims)
    assert [reproduce({"order": ours}, tmp_path, reporter=Reporter(note=notes.append)) for _ in "12"] == [0, 0]
    written = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["verdict"] for claim in written["claims"]] == ["holds", "does not hold"]
    assert [note.split()[0] for note in notes if not note.startswith("wrote")] == ["computed", "reused"]
