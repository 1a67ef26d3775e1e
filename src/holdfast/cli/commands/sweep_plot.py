"""`holdfast sweep-plot`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro


@dataclass(frozen=True)
class SweepPlotArguments:
    """Draw the result of a sweep: lines along one axis with a band over seeds, or a map over two axes.

    Further axes become lines or panels, unless --at holds them at a value:

        holdfast sweep-plot runs --x heterogeneity --quantity spurious
        holdfast sweep-plot runs --x step_size --y heterogeneity --quantity diverged --over mean
    """

    folder: tyro.conf.Positional[str]
    """Folder of the sweep, or its URL (s3://...)."""
    x: str
    """Axis to the right; "step" where trajectories or quantiles are recorded."""
    y: str | None = None
    """Axis upwards, for a map in colours."""
    quantity: str | None = None
    """What is drawn: a variable of the result, diverged or converged; spurious if there is one."""
    over: Literal["median", "mean", "share"] = "median"
    """How the seeds of a point become one number; share: of the seeds above the threshold."""
    threshold: float = 0.5
    """Of the share."""
    at: tuple[str, ...] = ()
    """Hold an axis at a value, the nearest one: --at step_size=0.05."""
    out: Path | None = None
    """Folder for the figure (PNG and SVG); that of the sweep if not given."""


def execute(arguments: SweepPlotArguments) -> int:
    """Draw and write the figure."""
    from holdfast.core.writing import check_output_folder
    from holdfast.plots.bands import save
    from holdfast.sweeps.plots import plot_sweep
    from holdfast.sweeps.running import open_sweep

    folder = arguments.out or Path(arguments.folder)
    if "://" in str(folder):
        raise ValueError(f"out must be a folder of this machine, got {str(folder)!r}")
    check_output_folder(folder)
    at = dict(_held(word) for word in arguments.at)
    data = open_sweep(arguments.folder)
    figure = plot_sweep(
        data, arguments.x, arguments.y,
        quantity=arguments.quantity, over=arguments.over, threshold=arguments.threshold, at=at,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    words = (arguments.quantity or "sweep", "over", arguments.x, *([arguments.y] if arguments.y else []))
    for path in save(figure, folder, "_".join(words)):
        print(f"wrote {path}")
    return 0


def _held(word: str) -> tuple[str, Any]:
    name, mark, text = word.partition("=")
    if not (name and mark and text):
        raise ValueError(f"at must be name=value, got {word!r}")
    try:
        return name, float(text)
    except ValueError:
        return name, text
