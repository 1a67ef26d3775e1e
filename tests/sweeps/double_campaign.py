"""The final signals of a sweep in float32, for instance of the million runs of a GPU, against float64 on this CPU.

`python -m sweeps.double_campaign million 6.0` takes the runs at heterogeneity 6 of the sweep in the folder `million`,
runs 4,096 others with further seeds in float64, and prints the p-values of two-sample Kolmogorov-Smirnov tests. A third
number is that of the runs.
"""

import sys

import jax
import scipy.stats
import xarray as xr

import holdfast as hf

RUNS = 4096
SIGNALS = ("invariant", "spurious")
LEVEL = 0.01


def p_values(data: xr.Dataset, heterogeneity: float, runs: int) -> dict[str, float]:
    """The p-value of each signal: do the runs of a sweep and `runs` others in float64 follow the same law?

    Args:
        data: a sweep of matrix sensing over heterogeneity, all of it finished.
        heterogeneity: which of its runs.
        runs: the number of those in float64, with the seeds that come after those of the sweep.
    """
    assert bool(data["finished"].all()), "the sweep is not finished"
    first = int(data["seed"].max()) + 1
    chosen = {**data.attrs["settings"], "heterogeneity": heterogeneity, "dtype": "float64"}
    double = hf.simulate(hf.Settings(**chosen, seeds=runs, seed=first)).data.isel(step=-1)
    single = data.sel(heterogeneity=heterogeneity)
    return {name: scipy.stats.ks_2samp(single[name].values, double[name].values).pvalue for name in SIGNALS}


def main(arguments: list[str]) -> int:
    """Print the p-values; exit code 1 if one is below the level, divided by the number of tests."""
    folder, heterogeneity = arguments[0], float(arguments[1])
    runs = int(arguments[2]) if len(arguments) > 2 else RUNS
    data = hf.sweeps.open_sweep(folder)
    with jax.default_device(jax.devices("cpu")[0]):
        found = p_values(data, heterogeneity, runs)
    print(f"{data.sizes['seed']} runs on {data.attrs['platform']}, {runs} in float64 on a CPU")
    print(*(f"{name}: p = {p:.2g}" for name, p in found.items()), sep="\n")
    return int(min(found.values()) < LEVEL / len(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
