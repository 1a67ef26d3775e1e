"""Oscillation: HeteroSGD beside PooledSGD, and where the setting lies in the plane of step size and heterogeneity."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.apps.cli.command import given
from holdfast.apps.lab.inputs import choice, number
from holdfast.apps.lab.view import Context, View, as_call, as_command
from holdfast.core.order import ORDERS
from holdfast.sensing.settings import BATCHINGS, LAWS, Settings

if TYPE_CHECKING:
    from holdfast.core.run import Records

# Records of a trajectory: as many as a chart of this width can show, and each costs the host a call.
RECORDS = 50
# Quantiles of the bands, and of the line in their middle.
QUANTILES = (0.1, 0.5, 0.9)
# What is drawn beside HeteroSGD.
NAMES = {"pooled": "PooledSGD", "full": "Full batches"}
STEP_SIZES, HETEROGENEITIES = (0.005, 0.5), (0.0, 12.0)
# Columns and rows of the map of the exponent.
COLUMNS, ROWS = 48, 40


@dataclass(frozen=True)
class OscillationSettings:
    """A simulation that takes a moment, so that it can follow a slider."""

    step_size: float = number(0.05, "Step size η", *STEP_SIZES, step=0.02, logarithmic=True, group="Signals")
    heterogeneity: float = number(7.0, "Heterogeneity M", *HETEROGENEITIES, step=0.1, group="Signals")
    bias: float = number(1.0, "Bias s", -2.0, 3.0, step=0.1, group="Signals")
    environments: str = choice("two-point", "Law", LAWS, group="Environments")
    order: str = choice("independent", "Order", ORDERS, group="Environments")
    batching: str = choice("pooled", "Compared with", {n: BATCHINGS[n] for n in NAMES}, group="Environments")
    batch_size: int = number(8000, "Batch size m", 100, 100_000, step=0.05, logarithmic=True, group="Sampling")
    steps: int = number(200, "Steps T", 50, 2000, step=50, group="Sampling")
    init_scale: float = number(1e-3, "Initial scale α", 1e-6, 0.1, step=0.1, logarithmic=True, group="Sampling")  # noqa: RUF001
    dimension: int = number(20, "Dimension d", 10, 100, step=10, group="Size")
    invariant_rank: int = number(1, "Invariant rank r₁", 1, 4, step=1, group="Size")
    spurious_rank: int = number(1, "Spurious rank r₂", 1, 4, step=1, group="Size")
    seeds: int = choice(16, "Runs", {16: "of each method", 32: "of each method", 64: "of each method"}, group="Size")
    seed: int = number(0, "First seed", 0, 9999, step=1, group="Size")
    scale: str = choice(
        "log",
        "Axis of shares",
        {"log": "shows the oscillation", "linear": "shows how much is learned"},
        group="Drawing",
        display=True,
    )

    def simulated(self) -> dict[str, Settings]:
        """The simulations of HeteroSGD and of what it is compared with."""
        shared = {name: value for name, value in vars(self).items() if name not in ("batching", "scale")}
        hetero = Settings(**shared, every=max(1, self.steps // RECORDS))
        return {"hetero": hetero, "pooled": replace(hetero, batching=self.batching, order="independent")}


def compute(settings: OscillationSettings, context: Context) -> dict[str, Any]:
    """Trajectories first, then the map, which stays the same for most sliders."""
    from holdfast.sensing.simulation import execute
    from holdfast.theory.diagnosis import about_step_size
    from holdfast.theory.lyapunov import top_exponent
    from holdfast.theory.window import limits, window_within

    simulated = settings.simulated()
    context.send("code", code(settings))
    # Each in a thread of its own, with the limits of the worker that computes; the first one reports its progress.
    with ThreadPoolExecutor(len(simulated)) as pool:
        running = {
            name: pool.submit(copy_context().run, partial(execute, each, progress=progress))
            for (name, each), progress in zip(simulated.items(), (context.progress, None), strict=True)
        }
    trajectories = {name: _bands(future.result(), settings.seeds) for name, future in running.items()}
    context.send("trajectories", trajectories)
    law = LAWS[settings.environments].load()(settings.bias, settings.heterogeneity)
    found, top = limits(law), top_exponent(law, settings.step_size)
    context.send("point", {"exponent": top.value})
    theory = f"{about_step_size(law, settings.step_size, found, top)} {window_within(found, law).sentence}"
    return {
        "map": _exponent_map(settings.environments, settings.bias),
        "curves": _curves(settings.environments, settings.bias, settings.steps, settings.init_scale),
        "summary": f"{_ends(settings, trajectories)} {theory}",
    }


def _bands(records: "Records", runs: int) -> dict[str, Any]:
    """Quantiles over the runs that have not diverged, and a single run, of both signals."""
    diverged = records.diverged_at[:, None]
    # From the step of its divergence on a run has no signals, only its last finite state.
    gone = (diverged >= 0) & (records.steps >= diverged)
    signals = {name: np.where(gone, np.nan, records.values[name]) for name in ("invariant", "spurious")}
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of all runs gone: no quantiles, no curves
        bands = {name: np.nanquantile(values, QUANTILES, axis=0) for name, values in signals.items()}
    return {
        "steps": records.steps,
        **{name: dict(zip(("low", "median", "high"), band, strict=True)) for name, band in bands.items()},
        "one": {name: values[0] for name, values in signals.items()},
        "diverged": int(gone[:, -1].sum()),
        "runs": runs,
    }


@lru_cache(maxsize=64)
def _exponent_map(environments: str, bias: float) -> dict[str, Any]:
    """The exponent over the plane: the spurious signal grows where it is positive."""
    from holdfast.theory.lyapunov import exponents

    law = LAWS[environments].load()
    step_size, heterogeneity = np.geomspace(*STEP_SIZES, COLUMNS), np.linspace(*HETEROGENEITIES, ROWS)
    rows = [exponents(law(bias, float(m)), step_size).max(-1) for m in heterogeneity]
    return {"step_size": step_size, "heterogeneity": heterogeneity, "exponent": np.stack(rows)}


@lru_cache(maxsize=64)
def _curves(environments: str, bias: float, steps: int, init_scale: float) -> list[dict[str, Any]]:
    """The borders that the theory draws in the plane, each as points (x, y) with a label."""
    from holdfast.sweeps.phase_diagram import step_size_borders

    law = LAWS[environments].load()
    borders = step_size_borders(law, STEP_SIZES, bias=bias, steps=steps, init_scale=init_scale)
    return [{"label": label, "x": x, "y": y} for label, (x, y) in borders.items()]


def _ends(settings: OscillationSettings, trajectories: dict[str, Any]) -> str:
    """How the runs ended, in words."""
    ends = []
    for name, run in zip(("HeteroSGD", NAMES[settings.batching]), trajectories.values(), strict=True):
        shares = f"invariant share {run['invariant']['median'][-1]:.2f}, spurious {run['spurious']['median'][-1]:.2g}"
        some = f"{shares} ({run['diverged']} of {run['runs']} runs diverged)" if run["diverged"] else shares
        ends.append(f"{name}: {'all runs diverged' if run['diverged'] == run['runs'] else some}")
    return f"Medians of {settings.seeds} runs after the last step. {'; '.join(ends)}."


def code(settings: OscillationSettings) -> dict[str, str]:
    """The same two simulations."""
    simulated = settings.simulated()
    order = ', order="independent"' if settings.order != "independent" else ""
    python = f"""from dataclasses import replace

import holdfast as hf

settings = {as_call("hf.Settings", given(simulated["hetero"]))}
hetero = hf.simulate(settings)
compared = hf.simulate(replace(settings, batching="{settings.batching}"{order}))
for trajectory in (hetero, compared):
    print(trajectory.final[["invariant", "spurious"]].median("seed"))
"""
    command = " && ".join(as_command(["simulate"], given(each)) for each in simulated.values())
    return {"python": python, "command": command}


VIEW = View(OscillationSettings, compute)
