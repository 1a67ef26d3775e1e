"""Published methods for invariance: penalties, weights and masks on the risks of the environments."""

from holdfast.algorithms.invariance.and_mask import AgreementMask
from holdfast.algorithms.invariance.average_risk import AverageRisk
from holdfast.algorithms.invariance.base import InvarianceMethod, Risks, logistic_risks, squared_risks
from holdfast.algorithms.invariance.fish import Fish
from holdfast.algorithms.invariance.group_dro import WorstGroup
from holdfast.algorithms.invariance.irm import InvariantRiskMinimization
from holdfast.algorithms.invariance.vrex import RiskExtrapolation

__all__ = [
    "AgreementMask",
    "AverageRisk",
    "Fish",
    "InvarianceMethod",
    "InvariantRiskMinimization",
    "RiskExtrapolation",
    "Risks",
    "WorstGroup",
    "logistic_risks",
    "squared_risks",
]
__dir__ = __all__.copy
