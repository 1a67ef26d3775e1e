"""The experiments by name. Imports none of them, so that the command line lists them at once."""

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.core.validation import suggestion

if TYPE_CHECKING:
    from holdfast_studies.experiment import Experiment

FOLDERS: dict[str, dict[str, str]] = {
    "papers": {
        "figure_1": "an illustration: aggregated against heterogeneous data",
        "figure_2": "E|q| grows while E|q|^0.1 falls",
        "figure_3": "signals over time for M = 6 and M = 1, and against the heterogeneity M",
        "figure_4": "signals over time for eta = 0.05 and eta = 0.01, and against the step size",
        "figure_5": "HeteroSGD against PooledSGD",
        "figure_6": "PooledSGD with batches of 80 stays away from both solutions",
        "theorem_2": "error of HeteroSGD against batch size and dimension",
        "theorem_3": "pooled batches end at A* + E A(e) and stay away from A*",
        "theorem_4": "two phases: the invariant signal grows, then settles",
        "algorithm_4": "quadratic networks: Algorithm 4 and three ways in which it fails",
        "theorem_8": "recovery against the condition number of A*, and the order of learning",
        "proposition_1": "overlap of two random subspaces against their dimension",
        "isometry": "restricted isometry: its constant against the number of measurements, and what follows from it",
        "inside": "theorems 2, 4 and 5 at settings that meet their constants",
        "lemmas": "lemmas 8 to 15 and corollary 1 on trajectories, with the constants that are printed",
        "assumptions": "what the assumptions ask for, and what happens without them",
        "sequences": "envelopes of the invariant signal, the controller of the spurious one, and its supermartingale",
        "jumps": "one-way jumps: SGD, gradient descent, and the stochastic differential equation from the same starts",
        "jump_rates": "the rate of jumps against step size, ridge, depth and width",
        "absorbing": "absorbing sets: constants of B_1 chosen on some runs and tested on others, and the SDE",
        "entering": "entering B_r: its probability from several starts, and B_2 before B_1 on a 3 x 3 matrix",
        "collapse": "the collapse to rank 0 at constant step size and ridge",
        "jump_recovery": "20 x 20, rank 3, 40 % observed: annealed SGD, gradient descent, and gradient descent tuned",
    },
    "findings": {
        "exponents": "exponents, thresholds and limits of the step size: theory against simulation",
        "tails": "the tail of the spurious share: index, floor, shares after T steps, divergence",
        "advised": "settings that are advised, with real batches: promised and seen failures",
        "order": "the order of environments: drawn independently, or in cycles, reshuffled or always the same",
        "order_limits": "where an order of environments helps: panels, overlap, networks, matrices that do not commute",
        "phase": "phase diagram over step size and heterogeneity, with the analytic curves",
        "natural_environments": "real tables through a network: what varies, and whether repair helps",
    },
    "questions": {
        "factors": "question 1: heterogeneity, stochasticity and the width of U, each with and without the others",
        "overlap": "question 2: how much the subspaces may overlap, and how strong off-diagonal strengths may be",
        "optimizers": "question 3: momentum, Adam, RMSprop, sign and normalised SGD, weight decay: which wash out",
        "network_students": "question 4: two-layer ReLU, cubic and quartic students: where it washes out",
        "continuum": "question 5: a continuum of environments: the shape of the law, and environments that drift",
        "explicit_methods": "question 6: HeteroSGD against IRM, V-REx, Group DRO, AND-mask and Fish on matrix sensing",
        "number_of_environments": "questions 7 and 8: how many and how diverse: panels drawn from a continuum",
        "causal_roles": "question 9: causes, children and spouses of the target: what stays, by what is intervened on",
        "conditioning": "question 10: condition number, plateaus, and what is learned before the spurious signal",
    },
    "images": {
        "coloured_digits": "digits with a coloured shortcut: pooled, in turn, IRM, V-REx, Group DRO, head, balance",
    },
}
"""Folder -> name of the module -> title. Nothing is imported to list them."""
TITLES: dict[str, str] = {name: title for titles in FOLDERS.values() for name, title in titles.items()}
"""Name of an experiment -> title."""
LONGEST = (
    "natural_environments",
    "coloured_digits",
    "algorithm_4",
    "order",
    "order_limits",
    "figure_3",
    "advised",
    "absorbing",
)
"""Experiments that take a minute or more of a core. They start first, so that none of them runs alone at the end."""


def check_known(name: str, known: Collection[str], command: str, argument: str = "names") -> None:
    """Refuse a name that is not known, with what is near it.

    Args:
        name: that was asked for.
        known: those that there are.
        command: whose option `--list` names them.
        argument: for the error.

    Example:
        >>> check_known("figure3", ["figure_3", "theorem_2"], "reproduce")
        Traceback (most recent call last):
        ValueError: names must be among the 2 that `holdfast reproduce --list` names, got 'figure3' (perhaps figure_3)
    """
    if name not in known:
        listed = f"{argument} must be among the {len(known)} that `holdfast {command} --list` names"
        raise ValueError(f"{listed}, got {name!r}{suggestion(name, known, most=3)}")


def load(name: str) -> "Experiment":
    """The experiment of a name, one of `TITLES`.

    Example:
        >>> load("figure_3").title
        'signals over time for M = 6 and M = 1, and against the heterogeneity M'
    """
    check_known(name, TITLES, "reproduce")
    folder = next(folder for folder, titles in FOLDERS.items() if name in titles)
    experiment: Experiment = import_module(f"{__package__}.{folder}.{name}").EXPERIMENT
    return experiment
