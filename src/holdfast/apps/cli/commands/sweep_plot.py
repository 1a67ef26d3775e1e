"""`holdfast sweep-plot`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from holdfast.apps.cli.command import Positional, fixed_axes

if TYPE_CHECKING:
    from holdfast.sweeps.figures.summary import SweepSummary


@dataclass(frozen=True)
class SweepPlotArguments:
    """Draw the result of a sweep: lines along one setting with a band over seeds, or a heat map over two settings.

    Further settings become lines or panels, unless --at fixes them.

    Examples:

        holdfast sweep-plot runs --x heterogeneity --quantity spurious
        holdfast sweep-plot runs --x heterogeneity --at step_size=0.05 --over mean
        holdfast sweep-plot runs --x step_size --y heterogeneity --quantity diverged
    """

    folder: Annotated[str, Positional("FOLDER")]
    """Folder of the sweep, or its URL (s3://...)."""
    x: str
    """Setting on the x axis; `step` if trajectories or quantiles were recorded, `point` for a list or random design."""
    y: str | None = None
    """Setting on the y axis; draws a heat map."""
    quantity: str | None = None
    """What is drawn: a variable of the result, diverged or converged; spurious if there is one."""
    over: Literal["median", "mean", "share"] = "median"
    """Statistic over seeds; share: the share of seeds above the threshold."""
    threshold: float = 0.5
    """With --over share: the number that seeds must exceed to count."""
    at: tuple[str, ...] = ()
    """Fix other settings, seeds or steps at the nearest available value: --at step_size=0.05 bias=1."""
    scale: Literal["linear", "log"] | None = None
    """Scale of the quantity; by default log if its numbers span more than a factor of 100."""
    out: Path | None = None
    """Folder for the figure (PNG and SVG); by default that of the sweep, or the one in which NAME.zarr lies."""


def execute(arguments: SweepPlotArguments) -> int:
    """Draw and write the figure."""
    from holdfast.core.writing import check_output_folder
    from holdfast.plots.bands import save
    from holdfast.sweeps.figures.plots import draw_summary
    from holdfast.sweeps.figures.summary import summarise_sweep
    from holdfast.sweeps.results import SUFFIX, open_sweep

    # A zarr group takes no other files: figures go next to it.
    given = Path(arguments.folder)
    folder = arguments.out or (given.parent if given.suffix.lower() == SUFFIX else given)
    if "://" in str(folder):
        raise ValueError(f"out must be a folder of this machine, got {str(folder)!r}")
    check_output_folder(folder)
    at = fixed_axes(arguments.at)
    found = summarise_sweep(
        open_sweep(arguments.folder), arguments.x, arguments.y,
        quantity=arguments.quantity, over=arguments.over, threshold=arguments.threshold, at=at,
    )  # fmt: skip
    figure = draw_summary(found, arguments.scale)
    folder.mkdir(parents=True, exist_ok=True)
    for path in save(figure, folder, _name(found, arguments)):
        print(f"wrote {path}")
    return 0


def _name(found: "SweepSummary", arguments: SweepPlotArguments) -> str:
    """Of the files: all that decides the figure, so that one does not replace another."""
    words = [found.quantity, "over", found.x, *([found.y] if found.y else [])]
    words += [
        f"at_{name}_{value:.6g}" if isinstance(value, float) else f"at_{name}_{value}"
        for name, value in found.fixed.items()
    ]
    if found.over == arguments.over != "median":  # a quantity that is a share of runs by itself needs no statistic
        words += ["share", f"above_{arguments.threshold:g}"] if found.over == "share" else [found.over]
    words += [arguments.scale] if arguments.scale else []
    return re.sub(r"[^\w.+-]+", "_", "_".join(words))
