"""Output for people in a terminal: progress, tables and small plots."""

from holdfast.apps.cli.terminal.answers import show_diagnosis, show_findings
from holdfast.apps.cli.terminal.progress import progress, progress_bars, say
from holdfast.apps.cli.terminal.tables import in_options, show_advice, show_held_out, show_model, show_passes
from holdfast.apps.cli.terminal.trajectories import show, sparkline

__all__ = [
    "in_options",
    "progress",
    "progress_bars",
    "say",
    "show",
    "show_advice",
    "show_diagnosis",
    "show_findings",
    "show_held_out",
    "show_model",
    "show_passes",
    "sparkline",
]
__dir__ = __all__.copy
