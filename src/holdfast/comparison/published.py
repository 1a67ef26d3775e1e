"""Results of others on the same tests."""

from typing import NamedTuple


class Published(NamedTuple):
    """A mean over 50 data seeds and its standard deviation over them, None where it is not given to us."""

    mean: float
    deviation: float | None = None


SOURCE = "Aubin et al. (2021), arXiv:2102.10867: 50 data seeds, 20 draws of hyper-parameters, 10,000 steps"

# name of the method there -> test -> error, mean over environments
PUBLISHED: dict[str, dict[str, Published]] = {
    "oracle": {
        "Example1": Published(10.42, 0.16),
        "Example1s": Published(10.45),
        "Example2": Published(0.0),
        "Example2s": Published(0.0),
        "Example3": Published(0.013),
        "Example3s": Published(0.013),
    },
    "ERM": {
        "Example1": Published(13.36, 1.49),
        "Example1s": Published(13.33),
        "Example2": Published(0.421),
        "Example2s": Published(0.449),
        "Example3": Published(0.480),
        "Example3s": Published(0.485),
    },
    "IRMv1": {
        "Example1": Published(11.15, 0.71),
        "Example1s": Published(11.07, 0.68),
        "Example2": Published(0.450),
        "Example2s": Published(0.449),
        "Example3": Published(0.485),
        "Example3s": Published(0.485),
    },
    "AND-mask": {
        "Example1": Published(10.59, 0.17),
        "Example1s": Published(11.24, 0.74),
        "Example2": Published(0.443),
        "Example2s": Published(0.449),
        "Example3": Published(0.344, 0.217),
        "Example3s": Published(0.473),
    },
    "IGA": {
        "Example1": Published(17.47),
        "Example1s": Published(17.68),
        "Example2": Published(0.450),
        "Example2s": Published(0.449),
        "Example3": Published(0.470),
        "Example3s": Published(0.485),
    },
}
