"""Phase diagrams: where HeteroSGD learns both signals, the invariant one only, nothing, or is unstable."""

import xarray as xr

from holdfast.sweeps.phase_diagram import BASE, draw_phase_diagram, phase_diagram, predicted
from holdfast.theory.diagnosis import Region
from holdfast_studies.kit.drawing import columns
from holdfast_studies.kit.runs import Effort, Progress
from holdfast_studies.kit.study import Claim, ClaimBuilder, share, study

LEFT_OPEN = (
    "The whole diagram: the paper varies one quantity at a time.",
    "What counts as learned (median share above 0.5) and as washed out (median share below 0.05).",
)
# Cells of a side in the reproduction.
CELLS_IN_REPORT = 24
SUMMARY = "d=30, r1=r2=1, m=8000, s=1, T=200, alpha=1e-3, symmetric measurements, exact law"


def simulate(effort: Effort, progress: Progress | None = None) -> xr.Dataset:
    """The plane of step size and heterogeneity; in a quick look with larger cells."""
    cells = CELLS_IN_REPORT // 2 if effort.quick else CELLS_IN_REPORT
    return phase_diagram("step_size", cells=cells, seeds=effort.seeds, progress=progress)


def claims(data: xr.Dataset) -> list[Claim]:
    """How often the theory names the region that is seen."""
    at_end, expected = data["region"].values, predicted(data, BASE.steps)
    stable = expected != Region.UNSTABLE
    agreement = share((at_end == expected)[stable])
    washed = at_end[(expected == Region.INVARIANT_ONLY) & stable]
    claim = ClaimBuilder("phase", settings=SUMMARY)
    return [
        claim("agreement", "The finite-time law names the region of a setting.", agreement, (0.9, 1.0),
              f"share of cells below the loss of the bound; cells at the border may fall on either side ({len(washed)} "
              "cells are expected to keep the invariant signal only)"),
    ]  # fmt: skip


EXPERIMENT = study("phase", __doc__, LEFT_OPEN, simulate, draw_phase_diagram, columns(), claims, seeds=32)
