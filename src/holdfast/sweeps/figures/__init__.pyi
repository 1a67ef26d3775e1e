from .plots import plot_sweep as plot_sweep
from .summary import SeedBand as SeedBand
from .summary import SweepSummary as SweepSummary
from .summary import summarise_sweep as summarise_sweep
