"""Runs of published methods on a table, many sets of hyper-parameters side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from holdfast.algorithms.invariance.base import InvarianceMethod, descent, logistic_risks, squared_risks
from holdfast.algorithms.losses.logistic import LogisticRows
from holdfast.algorithms.losses.squared import SecondMoments
from holdfast.core.run import Run, run


def fit_side_by_side(
    methods: Sequence[InvarianceMethod],
    tables: Sequence[SecondMoments | LogisticRows],
    starts: np.ndarray,
    *,
    steps: int,
    seeds: Sequence[int],
) -> np.ndarray:
    """The parameters that each method ends with on each table.

    Args:
        methods: of one type, with different hyper-parameters.
        tables: of one shape: moments for the squared loss, rows for the logistic one; both with a feature that is
            always one. Several together keep an accelerator busy, which one does not.
        starts: (tables, methods, features + 1), the intercept last.
        steps: of each method.
        seeds: one for each table, of the order of environments, in the methods that draw one.

    Returns:
        (tables, methods, features + 1); NaN where a method diverged.
    """
    (kind,) = {type(method) for method in methods}
    runs = len(tables) * len(methods)
    stacked = {name: np.tile([getattr(method, name) for method in methods], len(tables)) for name in vars(methods[0])}
    single = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), table) for table in tables]
    # One table is shared by its runs; of several each run gets a copy of its own.
    shared = single[0] if len(single) == 1 else None
    own = None if len(single) == 1 else jax.tree.map(lambda *leaves: np.repeat(leaves, len(methods), 0), *single)
    records = run(
        _MethodRun(kind),
        shared,
        (jax.tree.map(np.float32, stacked), np.asarray(starts, np.float32).reshape(runs, -1), own),
        (np.asarray(seeds)[:, None] + np.arange(len(methods))).ravel(),
        steps=steps,
        every=steps,
        slab=runs,
        workers=1,
    )
    final = records.values["parameters"][:, -1].astype(float)
    final[records.diverged_at >= 0] = np.nan
    return final.reshape(len(tables), len(methods), -1)


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

    def __call__(
        self,
        shared: SecondMoments | LogisticRows | None,
        parameters: tuple[dict[str, jax.Array], jax.Array, SecondMoments | LogisticRows | None],
    ) -> Run:
        choices, start, own = parameters
        data = own if shared is None else shared
        assert data is not None
        risks = squared_risks(data) if isinstance(data, SecondMoments) else logistic_risks(data)
        return Run(descent(self.kind(**choices), risks, jnp.asarray(start)), _observe)


def _observe(parameters: jax.Array) -> dict[str, jax.Array]:
    return {"parameters": parameters}
