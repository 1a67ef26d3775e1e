"""How experiments are run and judged: what an experiment is, what a claim is, the runner, the report."""

from holdfast.reproduction.claims import Claim, Verdict
from holdfast.reproduction.experiment import Effort, Experiment
from holdfast.reproduction.runner import Reporter, reproduce

__all__ = ["Claim", "Effort", "Experiment", "Reporter", "Verdict", "reproduce"]
__dir__ = __all__.copy
