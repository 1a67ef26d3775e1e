"""Programs compile with the flags of XLA that users have; the other tests have one that saves time."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import holdfast as hf

TWO = [("hetero", "symmetric"), ("pooled", "signed")]
CASES = {"law": [*TWO, ("hetero", "signed"), ("pooled", "symmetric")], "data": TWO, "population": TWO}
for seeds in (1, 3):
    for oracle, cases in CASES.items():
        for batching, parameterisation in cases:
            settings = hf.Settings(
                dimension=6, steps=3, seeds=seeds, batch_size=20, oracle=oracle,
                noise_variance=0.0 if oracle == "population" else 0.1, batching=batching,
                parameterisation=parameterisation,
            )
            print(hf.simulate(settings).data.sizes["seed"])
"""


@pytest.mark.slow
def test_every_oracle_compiles_with_the_flags_of_users():
    # One run of the exact law, not vectorised, was not compiled after ten minutes; all of these take seconds.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "XLA_FLAGS": "", "JAX_ENABLE_COMPILATION_CACHE": "false"},
    )
    assert done.stdout.split() == ["1"] * 8 + ["3"] * 8, done.stderr
