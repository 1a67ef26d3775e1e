"""The views of the page: one file each, listed in `VIEWS` in the order of the menu."""

from holdfast.core.names import Named

VIEWS = {
    "oscillation": Named("holdfast.lab.views.oscillation:VIEW", "Oscillation"),
    "window": Named("holdfast.lab.views.window:VIEW", "Window"),
    "jumps": Named("holdfast.lab.views.jumps:VIEW", "Jumps"),
    "table": Named("holdfast.lab.views.table:VIEW", "Your table"),
    "results": Named("holdfast.lab.views.results:VIEW", "Results"),
}
"""Name in addresses -> `holdfast.lab.view.View`, and its title in the menu."""

__all__ = ["VIEWS"]
