"""A model that several files of tests predict with."""

import pytest

from holdfast.tables import Column, TableModel


@pytest.fixture
def small_model():
    columns = (Column("light"), Column("soil", "category", ("clay", "loam", "sand")))
    coefficients = ((1.0, 2.0, 0.0),)
    return TableModel(
        task="regression", target="yield", columns=columns, coefficients=coefficients, intercepts=(0.5,), id="key"
    )
