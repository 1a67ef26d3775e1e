"""The views of the page: one file each, listed in `VIEWS` in the order of the menu."""

from holdfast.core.names import Named

VIEWS = {
    "oscillation": Named("holdfast.apps.lab.views.oscillation:VIEW", "Oscillation"),
    "window": Named("holdfast.apps.lab.views.window:VIEW", "Window"),
    "jumps": Named("holdfast.apps.lab.views.jumps:VIEW", "Jumps"),
    "table": Named("holdfast.apps.lab.views.table:VIEW", "Your table"),
    "results": Named("holdfast.apps.lab.views.results:VIEW", "Results"),
}
"""Name in addresses -> `holdfast.apps.lab.view.View`, and its title in the menu."""

__all__ = ["VIEWS"]
