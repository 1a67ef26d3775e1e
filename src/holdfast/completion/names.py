"""Names of the problems and algorithms of matrix completion: read by the settings, the command line and the docs."""

from typing import Annotated

from holdfast.core.names import Choice, Named

PROBLEMS = {
    "two-by-two": Named("holdfast.completion.problem:two_by_two", "three entries of [[1, *], [epsilon, 1]]"),
    "random": Named("holdfast.completion.problem:random_low_rank", "a random matrix of low rank"),
}
"""Functions that make a `holdfast.completion.MatrixCompletion`."""

ALGORITHMS = {
    "sgd": Named("holdfast.completion.oracles:one_entry", "one entry per step"),
    "mini-batch": Named("holdfast.completion.oracles:batch_weights", "several entries per step"),
    "label-noise": Named("holdfast.completion.oracles:one_entry", "one entry per step with fresh label noise"),
    "gradient-descent": Named("holdfast.completion.oracles:equal_weights", "all entries in every step"),
    "sde": Named("holdfast.completion.oracles:gaussian_weights", "the stochastic differential equation of SGD"),
}
"""What a step sees of a problem: the gradient of one entry (`ORDERED`), or weights of all entries for its gradient."""

ORDERED = ("sgd", "label-noise")
"""Algorithms whose steps see one entry, so that the entries have an order."""

ORDERS = {
    "independent": Named("holdfast.core.order:independent", "drawn anew in each step"),
    "reshuffled": Named("holdfast.core.order:reshuffled", "in cycles through all, each in a fresh random order"),
    "cyclic": Named("holdfast.core.order:cyclic", "in cycles through all of them, always in the same order"),
}
"""Orders of the observed entries, functions (entries, seed of the run) -> `holdfast.core.order.Order`."""

ProblemName = Annotated[str, Choice("The matrix to complete", PROBLEMS)]
AlgorithmName = Annotated[str, Choice("The algorithm", ALGORITHMS)]
OrderName = Annotated[str, Choice("How one entry follows another", ORDERS)]
