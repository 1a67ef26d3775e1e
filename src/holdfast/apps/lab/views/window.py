"""Window: environments with strengths to drag, the step sizes that wash them out, the tail that remains, and advice."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.apps.lab.inputs import choice, number, text
from holdfast.apps.lab.view import Context, View, as_call, as_command

if TYPE_CHECKING:
    from holdfast.sensing.environments import FiniteEnvironments
    from holdfast.theory.tails import StationaryLaw

# Environments that can be drawn apart and dragged, and the strengths that they may have.
FEWEST, MOST, LARGEST_STRENGTH = 2, 8, 20.0
STEP_SIZES = (0.002, 1.0)
# Points of the exponent over the step size, and of a law of shares.
CURVE, POINTS = 240, 80
# What a run depends on, and what a search for settings depends on, besides the strengths.
RUN = ("step_size", "steps", "init_scale")
SEARCHED = ("confidence", "tolerance", "dimension", "batch_size")
# Below this deviation of eta xi the law of a signal that survives needs too fine a grid to follow a slider.
LEAST_DEVIATION = 0.1
# Runs behind the simulated law, and the least probability and the least share that are drawn of the exact one.
RUNS, RAREST, LEAST_SHARE = 2000, 2e-4, 1e-8


@dataclass(frozen=True)
class WindowSettings:
    """Equally likely environments, and the step size and sampling at which their spurious signal is looked at."""

    strengths: str = text("-5, 7", "Strengths ξ of the environments", longest=100, group="Environments")
    step_size: float = number(0.1, "Step size η", *STEP_SIZES, step=0.01, logarithmic=True, group="Step")
    batch_size: int = number(8000, "Batch size m", 100, 100_000, step=0.05, logarithmic=True, group="Sampling")
    steps: int = number(200, "Steps T", 10, 2000, step=10, group="Sampling")
    init_scale: float = number(1e-3, "Initial scale α", 1e-8, 0.1, step=0.1, logarithmic=True, group="Sampling")  # noqa: RUF001
    dimension: int = number(100, "Dimension d", 10, 1000, step=10, group="Sampling")
    advice: str = choice(
        "off",
        "Search for settings",
        {"off": "all answers come at once", "on": "takes seconds whenever strengths or sampling change"},
        group="Advice",
    )
    confidence: float = number(0.95, "Confidence", 0.5, 0.99, step=0.01, group="Advice")
    tolerance: float = number(0.01, "Tolerance, largest share", 1e-4, 0.1, step=0.1, logarithmic=True, group="Advice")

    @property
    def environments(self) -> "FiniteEnvironments":
        """The law that these strengths make."""
        from holdfast.sensing.environments import table

        return table(np.array(self.values))

    @property
    def values(self) -> list[float]:
        """The strengths as numbers."""
        try:
            values = [float(part) for part in self.strengths.split(",")]
        except ValueError:
            values = []
        if not (FEWEST <= len(values) <= MOST and all(abs(value) <= LARGEST_STRENGTH for value in values)):
            raise ValueError(
                f"strengths must be {FEWEST} to {MOST} numbers from {-LARGEST_STRENGTH:g} to {LARGEST_STRENGTH:g} with "
                f"commas in between, got {self.strengths!r}"
            )
        return values

    def arguments(self, names: Iterable[str]) -> dict[str, Any]:
        """Some of the settings, by name."""
        return {name: getattr(self, name) for name in names}


def compute(settings: WindowSettings, context: Context) -> dict[str, Any]:
    """Exponents and windows at once, then the law of the share, and the advice if it is wanted."""
    from holdfast.theory.advice import advise_order
    from holdfast.theory.diagnosis import about_step_size
    from holdfast.theory.lyapunov import top_exponent
    from holdfast.theory.window import limits, window_within

    environments = settings.environments
    context.send("code", code(settings))
    found = limits(environments)
    window = window_within(found, environments)
    top = top_exponent(environments, settings.step_size)
    stable = settings.step_size < min(found.invariant, found.bounded)
    context.send("window", {"low": window.low, "high": window.high, "empty": window.empty, "bounded": found.bounded})
    context.send("exponents", _exponents(environments))
    context.send("point", {"exponent": top.value, "stable": stable})
    sentences = [
        # Without its reason: the height of the summary should not change much while a point is dragged.
        f"{window.sentence.partition(':')[0].rstrip('.')}.",
        about_step_size(environments, settings.step_size, found, top),
    ]
    law = None
    if stable:
        try:
            law = _stationary(settings, environments, top.value)
            sentences.append(f"In the long run the spurious share has {law.averages}.")
        except ValueError as reason:
            sentences.append(f"In the long run the spurious share is not known: {reason}.")
    context.send("tail", _tail(settings, environments, law))
    advice = [window.sentence]
    if settings.advice == "on" and not window.empty:
        searched = _search(settings.strengths, **settings.arguments(SEARCHED))
        advice += searched
        sentences.append(searched[0])
    elif stable:
        advice.append(advise_order(environments, **settings.arguments(RUN)))
    return {"advice": advice, "summary": " ".join(sentences)}


def _exponents(environments: "FiniteEnvironments") -> dict[str, np.ndarray]:
    """E log|1 + eta xi| of the spurious signal, and log(1 + eta) of an invariant one of eigenvalue 1."""
    from holdfast.theory.lyapunov import exponents

    step_size = np.geomspace(*STEP_SIZES, CURVE)
    return {
        "step_size": step_size,
        "spurious": exponents(environments, step_size)[:, 0],
        "invariant": np.log1p(step_size),
    }


def _stationary(settings: WindowSettings, environments: "FiniteEnvironments", exponent: float) -> "StationaryLaw":
    """The law of the share in the long run; a ValueError says why there is none."""
    from holdfast.theory.lyapunov import stationary_shares
    from holdfast.theory.tails import stationary_law

    deviation = settings.step_size * float(np.std(settings.values))
    if exponent > 0 and 0 < deviation < LEAST_DEVIATION:
        mean = float(stationary_shares(environments, settings.step_size)[0])
        raise ValueError(f"at so small a step size only its mean is computed, about {mean:.2g}")
    return stationary_law(environments, settings.step_size, batch_size=settings.batch_size)


def _tail(settings: WindowSettings, environments: "FiniteEnvironments", law: "StationaryLaw | None") -> dict[str, Any]:
    """How likely shares above each level are: in the long run by the theory, and after T steps by simulation."""
    from holdfast.theory.shares import simulate_shares

    shares = simulate_shares(environments, **settings.arguments((*RUN, "batch_size", "dimension")), runs=RUNS)
    finite = np.sort(shares.spurious[~shares.diverged])
    ranks = np.unique(np.geomspace(1, RUNS, POINTS).astype(int))  # from the largest share down
    ranks = ranks[(ranks > shares.diverged.sum()) & (ranks <= RUNS)]
    tail: dict[str, Any] = {
        "simulated": {"share": finite[RUNS - ranks][::-1], "probability": (ranks / RUNS)[::-1]},
        "diverged": int(shares.diverged.sum()),
        "runs": RUNS,
    }
    if law is None:
        return tail
    # A signal that survives is next to nothing in many runs: most of its law is below all shares that matter.
    low, high = max(float(law.quantile(0.01)), LEAST_SHARE), float(law.quantile(1 - RAREST))
    share = np.geomspace(low, max(low, high), POINTS)
    tail["law"] = {"share": share, "probability": np.array([law.above(level) for level in share])}
    tail |= {"index": law.tail_index, "floor": law.floor, "ceiling": law.ceiling}
    if 0 < law.tail_index < np.inf and 0 < law.floor < law.ceiling:
        # Of |Q| the tail has the index kappa, so of the share Q^2 it has kappa / 2.
        middle = np.sqrt(law.floor * law.ceiling)
        ends = np.array([law.floor, law.ceiling])
        tail["power"] = {"share": ends, "probability": law.above(middle) * (ends / middle) ** (-law.tail_index / 2)}
    return tail


@lru_cache(maxsize=64)
def _search(strengths: str, **wanted: Any) -> tuple[str, ...]:
    """Sentences about settings that keep a promise; they depend on `SEARCHED` alone."""
    from holdfast.theory.advice import advise_order, search_settings
    from holdfast.theory.window import sharp_window

    environments = WindowSettings(strengths=strengths).environments
    advised, sentences = search_settings(environments, sharp_window(environments), **wanted)
    if advised is None:
        return tuple(sentences)
    given = {name: getattr(advised, name) for name in RUN}
    return (*sentences, advise_order(environments, **given, batch_size=wanted["batch_size"]))


def code(settings: WindowSettings) -> dict[str, str]:
    """The same numbers and sentences, and a command for the whole advice."""
    given = settings.arguments((*RUN, *SEARCHED))
    python = f"""import holdfast as hf

environments, step_size = hf.environments.table({settings.values}), {settings.step_size!r}
print(hf.theory.exponents(environments, step_size), hf.theory.sharp_window(environments))
# The tail of what sampling error brings back from an invariant signal of eigenvalue 1.
print(hf.theory.tail_index(environments, step_size, learned=1.0))
diagnosis = {as_call("hf.diagnose", given, "environments")}
print(*diagnosis.sentences, sep="\\n")
"""
    return {"python": python, "command": as_command(["window", "--strengths", *map(repr, settings.values)], given)}


VIEW = View(WindowSettings, compute)
