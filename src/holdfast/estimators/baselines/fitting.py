"""Runs explicit methods on a table, many sets of hyper-parameters side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.algorithms.explicit import Method
from holdfast.algorithms.risks import Moments, Risks, Rows, logistic_risks, squared_risks
from holdfast.core.run import Run, run


def fit_side_by_side(
    methods: Sequence[Method], data: Moments | Rows, starts: np.ndarray, *, steps: int, seed: int = 0
) -> np.ndarray:
    """The parameters that each method ends with.

    Args:
        methods: of one type, with different hyper-parameters.
        data: moments for the squared loss, rows for the logistic one.
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
        _Build(kind),
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
class _Build:
    """What a run does, for one type of method.

    The type is part of the build and not of the parameters, because jax 0.10 takes registered dataclasses with equally
    many fields for equal, and would now and then run the program of another method.
    """

    kind: type

    def __call__(self, data: Moments | Rows, parameters: tuple[dict[str, jax.Array], jax.Array]) -> Run:
        choices, start = parameters
        return Run(self.kind(**choices).algorithm(_risks(data), jnp.asarray(start)), _observe)


def _risks(data: Moments | Rows) -> Risks:
    return squared_risks(data) if isinstance(data, Moments) else logistic_risks(data)


def _observe(parameters: jax.Array) -> dict[str, jax.Array]:
    return {"parameters": parameters}
