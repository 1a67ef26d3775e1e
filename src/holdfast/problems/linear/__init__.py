"""Tables with environments: public tests in which some features predict the target everywhere and others only here."""

from holdfast.problems.linear.real import REAL_TABLES, RealTable, held_out_groups, real_task
from holdfast.problems.linear.structural import StructuralModel, random_structural_model, structural_task
from holdfast.problems.linear.table import Kind, Table, Task, permute_within
from holdfast.problems.linear.toy import TOY_SETTINGS, toy_task
from holdfast.problems.linear.unit_tests import UNIT_TESTS, unit_test

__all__ = [
    "Kind",
    "REAL_TABLES",
    "RealTable",
    "StructuralModel",
    "TOY_SETTINGS",
    "Table",
    "Task",
    "UNIT_TESTS",
    "held_out_groups",
    "permute_within",
    "random_structural_model",
    "real_task",
    "structural_task",
    "toy_task",
    "unit_test",
]
