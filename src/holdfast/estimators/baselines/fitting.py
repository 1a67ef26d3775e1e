"""Runs of published methods on a table, many sets of hyper-parameters side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.algorithms.invariance.base import InvarianceMethod, logistic_risks, squared_risks
from holdfast.core.run import Run, run
from holdfast.losses.logistic import LogisticRows
from holdfast.losses.squared import SecondMoments


def fit_side_by_side(
    methods: Sequence[InvarianceMethod],
    data: SecondMoments | LogisticRows,
    starts: np.ndarray,
    *,
    steps: int,
    seed: int = 0,
) -> np.ndarray:
    """The parameters that each method ends with.

    Args:
        methods: of one type, with different hyper-parameters.
        data: moments for the squared loss, rows for the logistic one; both with a feature that is always one.
        starts: (methods, features + 1), the intercept last.
        steps: of each method.
        seed: of the order of environments, in the methods that draw one.

    Returns:
        (methods, features + 1); NaN where a method diverged.
    """
    (kind,) = {type(method) for method in methods}
    names = vars(methods[0])
    stacked = {name: np.asarray([getattr(method, name) for method in methods], np.float32) for name in names}
    single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), data)
    records = run(
        _MethodRun(kind),
        single,
        (stacked, np.asarray(starts, np.float32)),
        seed + np.arange(len(methods)),
        steps=steps,
        every=steps,
        slab=len(methods),
        workers=1,
    )
    final = records.values["parameters"][:, -1].astype(float)
    final[records.diverged_at >= 0] = np.nan
    return final


def uniform_starts(count: int, features: int, seed: int) -> np.ndarray:
    """(count, features + 1), uniform in +- 1 / sqrt(features): what torch gives to a linear layer."""
    bound = 1 / np.sqrt(features)
    return np.random.default_rng(seed).uniform(-bound, bound, (count, features + 1))


@dataclass(frozen=True)
class _MethodRun:
    """Makes one run of a method of one type.

    The type belongs to the key of the compile cache and not to the parameters: jax 0.10 takes registered dataclasses
    with equally many fields for equal, and would now and then run the program of another method.
    """

    kind: type

    def __call__(self, data: SecondMoments | LogisticRows, parameters: tuple[dict[str, jax.Array], jax.Array]) -> Run:
        choices, start = parameters
        risks = squared_risks(data) if isinstance(data, SecondMoments) else logistic_risks(data)
        return Run(self.kind(**choices).algorithm(risks, jnp.asarray(start)), _observe)


def _observe(parameters: jax.Array) -> dict[str, jax.Array]:
    return {"parameters": parameters}
