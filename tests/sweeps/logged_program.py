"""A program of a user's that notes every cell it computes before it begins, so that the cells can be counted."""

import os

from holdfast.sweeps.programs import matrix_sensing

LOG = "HOLDFAST_TEST_LOG"
"""The variable of the environment that names the log."""


def logged(settings, seeds):
    """As matrix-sensing, with a line in the log: the process, and the cell."""
    with open(os.environ[LOG], "ab", buffering=0) as log:  # a line that is appended at once is whole or not there
        cell = " ".join(str(settings[name]) for name in ("step_size", "heterogeneity"))
        log.write(f"{os.getpid()} {cell} {seeds[0]}\n".encode())
    return matrix_sensing(settings, seeds)
