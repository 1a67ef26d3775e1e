"""Views, and a program of sweeps, that compute next to nothing, for tests of what is around them."""

import time
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.apps.lab.inputs import number, text
from holdfast.apps.lab.view import View
from holdfast.apps.lab.views.oscillation import VIEW as OSCILLATION
from holdfast.core.worker import StoppedError, current_worker


@dataclass(frozen=True)
class SlowSettings:
    seconds: float = number(0.0, "Seconds", 0.0, 100.0, step=1.0)
    words: str = text("", "Words", longest=10)

    def __post_init__(self) -> None:
        if self.words == "refused":
            raise ValueError("words must not be refused together")


def wait(settings, context):
    """Sends a part, and then works until it is stopped or the time is over."""
    context.send("begun", settings.words)
    end = time.monotonic() + settings.seconds
    while time.monotonic() < end:
        time.sleep(0.005)
        if current_worker().stopped():
            raise StoppedError
    if settings.words == "bug":
        raise KeyError("a secret of the server")
    if settings.words == "sentence":
        raise ValueError("words must be something else")
    return {"waited": settings.seconds, "words": settings.words}


class Loaded(NamedTuple):
    """As `holdfast.core.names.Named`, of an object that is there already."""

    view: View
    words: str = "A view"

    def load(self):
        return self.view


SLOW = View(SlowSettings, wait)
VIEWS = {
    "slow": Loaded(SLOW),
    "oscillation": Loaded(OSCILLATION._replace(compute=lambda settings, context: {"bias": settings.bias})),
}


def cheap_signals(settings, seeds):
    """A program of sweeps: numbers that tell settings and seeds apart."""
    factor = settings["step_size"] * settings["heterogeneity"] * (2 if settings["order"] == "cyclic" else 1)
    return {"spurious": factor * (seeds + 1.0) ** 2, "invariant": factor + seeds}
