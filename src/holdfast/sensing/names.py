"""Names of the parts of a simulation: one dictionary per kind, read by `Settings`, the command line and the docs."""

from typing import Annotated

from holdfast.core.names import Choice, Named

LAWS = {
    "two-point": Named("holdfast.sensing.environments:two_point", "bias - heterogeneity or bias + heterogeneity"),
    "uniform": Named("holdfast.sensing.environments:uniform", "uniform between these two"),
    "gaussian": Named(
        "holdfast.sensing.environments:gaussian", "normal with mean bias and standard deviation heterogeneity"
    ),
}
"""Laws of the environments, of the form `holdfast.sensing.environments.Law`."""

BATCHINGS = {
    "hetero": Named("holdfast.sensing.batching:hetero", "one environment"),
    "pooled": Named("holdfast.sensing.batching:pooled", "an environment for each sample"),
    "full": Named("holdfast.sensing.batching:full", "all environments in proportion"),
}
"""Batchings, of the form `holdfast.sensing.batching.BatchingMaker`."""

ORDERS = {
    "independent": Named("holdfast.core.order:independent", "drawn anew in each step, as in the paper"),
    "reshuffled": Named("holdfast.core.order:reshuffled", "in cycles, each in a fresh random order"),
    "cyclic": Named("holdfast.core.order:cyclic", "in cycles, always in the same order"),
}
"""Orders of the environments, functions (visits of a cycle, seed of the run) -> `holdfast.core.order.Order`."""

ORACLES = {
    "law": Named("holdfast.sensing.oracles.law:law", "from its exact law"),
    "data": Named("holdfast.sensing.oracles.data:online", "from explicit measurements"),
    "population": Named("holdfast.sensing.oracles.population:population", "without sampling error"),
}
"""Oracles, of the form `holdfast.sensing.oracles.base.Oracle` once they are given a problem."""

ENSEMBLES = {
    "gaussian": Named("holdfast.sensing.ensembles:gaussian", "independent N(0, 1) entries"),
    "symmetric": Named("holdfast.sensing.ensembles:symmetric_gaussian", "symmetric, with N(0, 1/2) off the diagonal"),
}
"""Ensembles of measurement matrices, `holdfast.sensing.ensembles.Ensemble`."""

PARAMETERISATIONS = {
    "symmetric": Named("holdfast.algorithms.factored:factored", "U U^T"),
    "signed": Named("holdfast.algorithms.factored:signed", "U U^T - V V^T"),
}
"""Algorithms, of the form `holdfast.algorithms.AlgorithmMaker`."""

# Grid points per axis, and runs at each, of phase diagrams: here, so that the command line can show them at once.
CELLS_OF_A_MAP, SEEDS_OF_A_MAP = 40, 64

LawName = Annotated[str, Choice("Law of the spurious strengths", LAWS)]
BatchingName = Annotated[str, Choice("Environments that a batch comes from", BATCHINGS)]
OrderName = Annotated[str, Choice("How one environment follows another", ORDERS)]
OracleName = Annotated[str, Choice("How the gradient is drawn", ORACLES)]
EnsembleName = Annotated[str, Choice("The measurement matrices", ENSEMBLES)]
ParameterisationName = Annotated[str, Choice("The matrix that is fitted", PARAMETERISATIONS)]
