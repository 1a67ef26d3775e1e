"""Window: environments with strengths to drag, the step sizes that wash them out, the tail that remains, and advice."""

import math
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.apps.lab.inputs import choice, number, text
from holdfast.apps.lab.view import Context, Snippets, View

if TYPE_CHECKING:
    import numpy as np

    from holdfast.sensing.environments import FiniteEnvironments
    from holdfast.theory.tails import StationaryLaw
    from holdfast.theory.window import Limits, Window

# Environments that can be drawn apart and dragged, and the strengths that they may have.
FEWEST, MOST, LARGEST_STRENGTH = 2, 8, 20.0
STEP_SIZES = (0.002, 1.0)
# Points of the exponent over the step size, and of a law of shares.
CURVE, POINTS = 240, 80
# What a search for settings depends on, besides the strengths.
SEARCHED = ("confidence", "tolerance", "dimension", "batch_size")
# Below this deviation of eta xi the law of a signal that survives is solved on so fine a grid that nobody would wait.
LEAST_DEVIATION = 0.1
# Runs behind the simulated law, and the least probability and the least share that are drawn of the exact one.
RUNS, RAREST, LEAST_SHARE = 2000, 2e-4, 1e-8


@dataclass(frozen=True)
class WindowSettings:
    """Equally likely environments, and the step size and sampling at which their spurious signal is looked at."""

    strengths: str = text("-5, 7", "Strengths ξ of the environments", longest=100, group="Environments")
    step_size: float = number(0.1, "Step size η", *STEP_SIZES, step=0.01, logarithmic=True, group="Step")
    batch_size: int = number(
        8000, "Batch size m", 100, 100_000, step=0.05, whole=True, logarithmic=True, group="Sampling"
    )
    steps: int = number(200, "Steps T", 10, 2000, step=10, whole=True, group="Sampling")
    init_scale: float = number(1e-3, "Initial scale α", 1e-8, 0.1, step=0.1, logarithmic=True, group="Sampling")  # noqa: RUF001
    dimension: int = number(100, "Dimension d", 10, 1000, step=10, whole=True, group="Sampling")
    advice: str = choice(
        "off",
        "Search for settings",
        {"off": "all answers come at once", "on": "takes seconds whenever strengths or sampling change"},
        group="Advice",
    )
    confidence: float = number(0.95, "Confidence", 0.5, 0.99, step=0.01, group="Advice")
    tolerance: float = number(0.01, "Tolerance, largest share", 1e-4, 0.1, step=0.1, logarithmic=True, group="Advice")

    @property
    def values(self) -> list[float]:
        """The strengths as numbers; a ValueError that a person understands if they are none."""
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

    def diagnosed(self) -> dict[str, Any]:
        """The arguments of `diagnose`, in the order of the form."""
        return {name: getattr(self, name) for name in ("step_size", "steps", "init_scale", *SEARCHED)}


def compute(settings: WindowSettings, context: Context) -> dict[str, Any]:
    """Exponents and windows at once, then the law of the share, and the advice if it is wanted."""
    import numpy as np

    from holdfast.sensing.environments import table
    from holdfast.theory.window import limits, window_within

    environments = table(np.array(settings.values))
    found = limits(environments)
    window = window_within(found, environments)
    point = _point(environments, settings.step_size, found)
    context.send("window", {"low": window.low, "high": window.high, "empty": window.empty, "bounded": found.bounded})
    context.send("exponents", _exponents(environments))
    context.send("point", point)
    law, reason = _stationary(settings, environments, point)
    context.send("tail", _tail(settings, environments, law, reason))
    # In the summary without reasons: its height should not change much while a point is dragged.
    sentences = [_in_short(window), _about_step(settings, point), _about_tail(law, reason)]
    advice = [_about_window(window)]
    if settings.advice == "on" and not window.empty:
        found_settings = _search(settings.strengths, *(getattr(settings, name) for name in SEARCHED))
        advice += found_settings
        sentences.append(found_settings[0])
    elif point["stable"]:
        advice.append(_about_order(environments, settings.step_size, settings.steps, settings.init_scale))
    return {"advice": advice, "summary": " ".join(sentences)}


def _point(environments: "FiniteEnvironments", step_size: float, found: "Limits") -> dict[str, Any]:
    """The exponent at the chosen step size, and whether the iteration is stable there."""
    from holdfast.theory.lyapunov import exponents

    stable = step_size < min(found.invariant, found.bounded)
    return {"exponent": float(exponents(environments, step_size)[0]), "stable": stable}


def _exponents(environments: "FiniteEnvironments") -> dict[str, "np.ndarray"]:
    """E log|1 + eta xi| of the spurious signal, and log(1 + eta) of an invariant one of eigenvalue 1."""
    import numpy as np

    from holdfast.theory.lyapunov import exponents

    step_size = np.geomspace(*STEP_SIZES, CURVE)
    return {
        "step_size": step_size,
        "spurious": exponents(environments, step_size)[:, 0],
        "invariant": np.log1p(step_size),
    }


def _stationary(
    settings: WindowSettings, environments: "FiniteEnvironments", point: dict[str, Any]
) -> tuple["StationaryLaw | None", str]:
    """The law of the share in the long run, or a reason why there is none."""
    import numpy as np

    from holdfast.theory.lyapunov import stationary_shares
    from holdfast.theory.tails import stationary_law

    deviation = float(np.std(settings.values))
    if not point["stable"]:
        return None, "at this step size runs may diverge"
    if deviation == 0:
        return None, "it does not vary"
    if point["exponent"] > 0 and settings.step_size * deviation < LEAST_DEVIATION:
        mean = float(stationary_shares(environments, settings.step_size)[0])
        return None, f"at so small a step size only its mean is worked out, about {mean:.2g}"
    try:
        return stationary_law(environments, settings.step_size, batch_size=settings.batch_size), ""
    except ValueError as error:
        return None, str(error)


def _tail(
    settings: WindowSettings, environments: "FiniteEnvironments", law: "StationaryLaw | None", reason: str
) -> dict[str, Any]:
    """How likely shares above each level are: in the long run by the theory, and after T steps by simulation."""
    import numpy as np

    from holdfast.theory.shares import simulate_shares

    shares = simulate_shares(
        environments,
        settings.step_size,
        settings.steps,
        settings.init_scale,
        batch_size=settings.batch_size,
        dimension=settings.dimension,
        runs=RUNS,
    )
    finite = np.sort(shares.spurious[~shares.diverged])
    ranks = np.unique(np.geomspace(1, RUNS, POINTS).astype(int))  # from the largest share down
    ranks = ranks[(ranks > shares.diverged.sum()) & (ranks <= RUNS)]
    tail: dict[str, Any] = {
        "simulated": {"share": finite[RUNS - ranks][::-1], "probability": (ranks / RUNS)[::-1]},
        "diverged": int(shares.diverged.sum()),
        "runs": RUNS,
        "reason": reason,
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
def _search(strengths: str, confidence: float, tolerance: float, dimension: int, batch_size: int) -> tuple[str, ...]:
    """Sentences about the settings that keep a promise; they do not depend on those of the form."""
    import numpy as np

    from holdfast.sensing.environments import table
    from holdfast.theory.advice import advise, sufficient_batch_size

    environments = table(np.array(WindowSettings(strengths=strengths).values))
    wanted: dict[str, Any] = {"confidence": confidence, "tolerance": tolerance, "dimension": dimension}
    advised = advise(environments, batch_size=batch_size, **wanted)
    if advised is None:
        enough = sufficient_batch_size(environments, batch_size, **wanted)
        reason = f"batches of {enough:,} would suffice" if enough else "no starting point is small enough"
        return (f"No settings keep the share below {tolerance:g} with a probability of {confidence:g}: {reason}.",)
    lost = f", and {100 * advised.diverged:.2g} % of the runs diverge" if advised.diverged else ""
    return (
        f"Advised: step size {advised.step_size:.3g}, initial scale {advised.init_scale:.2g}, {advised.steps} steps. "
        f"The share then ends below {tolerance:g} with a probability of at least {1 - advised.failure:.3f}.",
        f"Its median is {advised.median:.2g} and its mean {advised.mean:.2g}{lost}; the invariant share is "
        f"{advised.invariant:.2f}.",
        _about_order(environments, advised.step_size, advised.steps, advised.init_scale, batch_size),
    )


def _about_order(
    environments: "FiniteEnvironments", step_size: float, steps: int, init_scale: float, batch_size: int | None = None
) -> str:
    from holdfast.theory.order_advice import advise_order

    return advise_order(environments, step_size=step_size, steps=steps, init_scale=init_scale, batch_size=batch_size)


def _in_short(window: "Window") -> str:
    if window.empty:
        return "No step size washes the spurious signal out and keeps the invariant one."
    between = f"Step sizes from {window.low:.3g} to {window.high:.3g}"
    return f"{between} wash the spurious signal out and keep the invariant one."


def _about_window(window: "Window") -> str:
    if window.empty:
        return f"No step size is in the window: {window.reason}."
    return f"The window of step sizes is {window.low:.3g} to {window.high:.3g}: {window.reason}."


def _about_step(settings: WindowSettings, point: dict[str, Any]) -> str:
    exponent = point["exponent"]
    moves = "shrinks" if exponent < 0 else "grows" if exponent > 0 else "keeps its size"
    unstable = "" if point["stable"] else ", but runs may diverge"
    # One environment with 1 + eta xi = 0 makes the signal vanish at once.
    value = "minus infinity" if math.isinf(exponent) else f"{exponent:.3g}"
    return f"At step size {settings.step_size:.3g} its exponent is {value}: while it is small it {moves}{unstable}."


def _about_tail(law: "StationaryLaw | None", reason: str) -> str:
    if law is None:
        return f"Its share has no law in the long run that is known: {reason}."
    half = f"half of the runs have a share below {law.median:.2g}"
    if law.tail_index < 0:
        return f"It survives: in the long run {half}, and the mean is {law.mean:.2g}."
    if math.isinf(law.tail_index):
        return f"What sampling error brings back has no power tail: in the long run {half}."
    heavy = ", so heavy that few runs make the mean" if law.tail_index <= 2 else ""
    return f"What sampling error brings back has a tail of index {law.tail_index:.3g}{heavy}: in the long run {half}."


def snippets(settings: WindowSettings) -> Snippets:
    """The same numbers and sentences, and a command for the whole advice."""
    try:
        values = settings.values
    except ValueError:
        return Snippets("", "")  # the computation says what is wrong
    lines = "".join(f"    {name}={value!r},\n" for name, value in settings.diagnosed().items())
    python = f"""import holdfast as hf

environments, step_size = hf.environments.table({values}), {settings.step_size!r}
print(hf.theory.exponents(environments, step_size), hf.theory.sharp_window(environments))
# The tail of what sampling error brings back from an invariant signal of eigenvalue 1.
print(hf.theory.tail_index(environments, step_size, learned=1.0))
diagnosis = hf.diagnose(
    environments,
{lines})
print(*diagnosis.sentences, sep="\\n")
"""
    flags = {f"--{name.replace('_', '-')}": repr(value) for name, value in settings.diagnosed().items()}
    words = [word for flag in flags.items() for word in flag]
    return Snippets(python, shlex.join(["holdfast", "window", "--strengths", *map(repr, values), *words]))


VIEW = View(WindowSettings, compute, snippets)
