"""Tables with environments: public tests in which some features predict the target everywhere and others only here."""

from holdfast.datasets.linear_unit_tests import LINEAR_UNIT_TESTS, linear_unit_test
from holdfast.datasets.real import REAL_TABLES, RealTable, held_out_groups, real_dataset
from holdfast.datasets.splits import Dataset, Kind, Split, permute_within
from holdfast.datasets.structural import StructuralModel, random_structural_model, structural_dataset
from holdfast.datasets.toy import TOY_SETTINGS, toy_dataset

__all__ = [
    "Kind",
    "REAL_TABLES",
    "RealTable",
    "StructuralModel",
    "TOY_SETTINGS",
    "Split",
    "Dataset",
    "LINEAR_UNIT_TESTS",
    "held_out_groups",
    "permute_within",
    "random_structural_model",
    "real_dataset",
    "structural_dataset",
    "toy_dataset",
    "linear_unit_test",
]
