"""Names of the parts of a simulation: one dictionary per kind, read by `Settings`, the command line and the docs."""

from typing import TYPE_CHECKING

from holdfast.core.names import Named, choice

LAWS = {
    "two-point": Named("holdfast.environments:two_point", "bias - heterogeneity or bias + heterogeneity"),
    "uniform": Named("holdfast.environments:uniform", "uniform between these two"),
    "gaussian": Named("holdfast.environments:gaussian", "normal with mean bias and standard deviation heterogeneity"),
}
"""Laws of the environments, of the form `holdfast.environments.Law`."""

BATCHINGS = {
    "hetero": Named("holdfast.batching:hetero", "one environment"),
    "pooled": Named("holdfast.batching:pooled", "an environment for each sample"),
    "full": Named("holdfast.batching:full", "all environments in proportion"),
}
"""Batchings, of the form `holdfast.batching.BatchingMaker`."""

ORDERS = {
    "independent": Named("holdfast.order:independent", "drawn anew in each step, as in the paper"),
    "reshuffled": Named("holdfast.order:reshuffled", "in cycles, each in a fresh random order"),
    "cyclic": Named("holdfast.order:cyclic", "in cycles, always in the same order"),
}
"""Orders of the environments, functions (visits of a cycle, seed of the run) -> `holdfast.order.Order`."""

ORACLES = {
    "law": Named("holdfast.oracles.law:law", "from its exact law"),
    "data": Named("holdfast.oracles.data:online", "from explicit measurements"),
    "population": Named("holdfast.oracles.population:population", "without sampling error"),
}
"""Oracles, of the form `holdfast.oracles.base.Oracle` once they are given a problem."""

ENSEMBLES = {
    "gaussian": Named("holdfast.ensembles:gaussian", "independent N(0, 1) entries"),
    "symmetric": Named("holdfast.ensembles:symmetric_gaussian", "symmetric, with N(0, 1/2) off the diagonal"),
}
"""Ensembles of measurement matrices, `holdfast.ensembles.Ensemble`."""

PARAMETERISATIONS = {
    "symmetric": Named("holdfast.algorithms.factored:factored", "U U^T"),
    "signed": Named("holdfast.algorithms.factored:signed", "U U^T - V V^T"),
}
"""Algorithms, of the form `holdfast.algorithms.AlgorithmMaker`."""

if TYPE_CHECKING:
    LawName = str
    BatchingName = str
    OrderName = str
    OracleName = str
    EnsembleName = str
    ParameterisationName = str
else:
    LawName = choice("Law of the spurious strengths", LAWS)
    BatchingName = choice("Environments that a batch comes from", BATCHINGS)
    OrderName = choice("How one environment follows another", ORDERS)
    OracleName = choice("How the gradient is drawn", ORACLES)
    EnsembleName = choice("The measurement matrices", ENSEMBLES)
    ParameterisationName = choice("The matrix that is fitted", PARAMETERISATIONS)
