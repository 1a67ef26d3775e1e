"""Programs of a user, which tests of sweeps import by name."""

import numpy as np


def square(settings, seeds):
    return {"square": settings["scale"] * seeds.astype(float) ** 2, "row": np.outer(seeds, [1.0, settings["scale"]])}


def picky(settings, seeds):
    if settings["scale"] > 2:
        raise ArithmeticError(f"scale {settings['scale']} is too large")
    return square(settings, seeds)


def wrong(settings, seeds):
    return {"square": np.ones(len(seeds) + 1)}


NUMBER = 3
