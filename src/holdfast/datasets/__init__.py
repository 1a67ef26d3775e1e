"""Tables with environments, in which some features predict the target everywhere and others only in training."""

from holdfast.datasets.linear_unit_tests import LINEAR_UNIT_TESTS, linear_unit_test
from holdfast.datasets.real import REAL_TABLES, RealTable, held_out_groups, real_dataset
from holdfast.datasets.splits import Dataset, Kind, Split, permute_within, stack
from holdfast.datasets.structural import StructuralModel, random_structural_model, structural_dataset
from holdfast.datasets.toy import TOY_SETTINGS, toy_dataset

__all__ = [
    "LINEAR_UNIT_TESTS",
    "REAL_TABLES",
    "TOY_SETTINGS",
    "Dataset",
    "Kind",
    "RealTable",
    "Split",
    "StructuralModel",
    "held_out_groups",
    "linear_unit_test",
    "permute_within",
    "random_structural_model",
    "real_dataset",
    "stack",
    "structural_dataset",
    "toy_dataset",
]
__dir__ = __all__.copy
