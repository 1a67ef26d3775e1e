"""Programs of a user, which tests of sweeps import by name."""

import numpy as np

from holdfast.core import CellResult


def square(settings, seeds):
    return {"square": settings["scale"] * seeds.astype(float) ** 2, "row": np.outer(seeds, [1.0, settings["scale"]])}


def picky(settings, seeds):
    if settings["scale"] > 2:
        raise ArithmeticError(f"scale {settings['scale']} is too large")
    return square(settings, seeds)


def of_width(settings, seeds):
    return {"row": np.ones((len(seeds), settings["width"]))}


def wrong(settings, seeds):
    return {"square": np.ones(len(seeds) + 1)}


def of_name(settings, seeds):
    return {settings["name"]: np.ones(len(seeds), bool)}


def of_dimension(settings, seeds):
    return CellResult({"row": np.ones((len(seeds), 2))}, {"row": (settings["name"],)})


def with_own_share(settings, seeds):
    values = {"diverged_at": np.full(len(seeds), -1), "diverged": np.zeros((len(seeds), 2))}
    return CellResult(values, {"diverged": ("step",)}, {"step": np.arange(2)})


NUMBER = 3
