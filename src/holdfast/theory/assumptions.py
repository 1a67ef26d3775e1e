"""Assumptions 1 to 3 of Xu, Gu and Fang (NeurIPS 2024)."""

import numpy as np

from holdfast.environments import Environments, FiniteEnvironments
from holdfast.theory.strengths import diagonal_entries


def regularity(environments: Environments) -> tuple[float, float]:
    """M1 = sup |S_ii(e)| and M2 = min_i Var S_ii(e) / (1 + |E S_ii(e)|) of Assumption 2 (eq. 6)."""
    if isinstance(environments, FiniteEnvironments):
        weights = np.asarray(environments.probabilities, float)
        strengths = diagonal_entries(environments.strengths)[weights > 0]
        means = weights[weights > 0] @ strengths
        variances = weights[weights > 0] @ (strengths - means) ** 2
        bound = np.abs(strengths).max()
    else:
        means, scale = diagonal_entries(environments.location), diagonal_entries(environments.scale)
        places = environments.deviation.quantile((np.arange(4096) + 0.5) / 4096)
        variances = scale**2 * np.mean(places**2)
        # A spread of zero times an unbounded law is still zero.
        widest = environments.deviation.quantile(np.asarray(1.0)) * np.where(scale > 0, scale, np.nan)
        bound = np.max(np.abs(means) + np.nan_to_num(widest, posinf=np.inf))
    return float(bound), float(np.min(variances / (1 + np.abs(means))))
