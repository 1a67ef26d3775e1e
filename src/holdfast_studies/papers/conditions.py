"""What a theorem asks of the settings of an experiment, as the conditions of a claim."""

from holdfast.sensing.names import LAWS
from holdfast.sensing.settings import Settings
from holdfast.theory.constants import missed_conditions
from holdfast_studies.claims import Conditions

# The numbers that decide on the conditions: a claim is about one value of each.
DECIDING = ("bias", "heterogeneity", "off_diagonal", "step_size", "init_scale")


def theorem_conditions(settings: Settings, *, theorem: int = 2, chosen: tuple[str, ...] = ()) -> Conditions:
    """The conditions of Theorem 2 (also of theorems 1 and 3 to 6) or 8 that settings miss, and what was left to us.

    Args:
        settings: with one value for each number that decides.
        theorem: 2 or 8.
        chosen: values that the source leaves open.

    Example:
        >>> conditions = theorem_conditions(Settings(dimension=10, step_size=7e-6, bias=0.0, heterogeneity=2000.0))
        >>> conditions.missed
        ('min(r1, r2) = 1 is below log(d)^4 = 28, and so below C log(d)^4 for the large C of assumption 1',)
    """
    numbers = {}
    for name in DECIDING:
        values = settings.values(name)
        if len(values) != 1:
            raise ValueError(f"settings must have one {name}, got {len(values)}: choose one with dataclasses.replace")
        numbers[name] = float(values[0])
    law = LAWS[settings.environments].load()
    environments = law(
        numbers["bias"],
        numbers["heterogeneity"],
        rank=settings.spurious_rank,
        off_diagonal=numbers["off_diagonal"],
        shared=not settings.independent,
    )
    missed = missed_conditions(
        environments,
        dimension=settings.dimension,
        step_size=numbers["step_size"],
        init_scale=numbers["init_scale"],
        theorem=theorem,
        invariant_rank=settings.invariant_rank,
    )
    return Conditions(missed, chosen)
