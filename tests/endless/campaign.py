"""A table that fits into no memory, generated on the workers of a Dask cluster and fitted there.

`python -m endless.campaign 100000000` generates 10^8 rows of 20 features in 50 environments in two worker processes. It
prints the time of a pass that only generates and sums, the time of the fit, and the largest memory of each worker.
Times of processors are those of the workers, so that they can be compared on a machine that others use, too. `--table`
fits it as `holdfast fit` would, in two passes.
"""

import argparse
import resource
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from holdfast.estimators import HeteroRegressor, fit_table

ENVIRONMENTS, CAUSES, OTHERS, CONSEQUENCES = 50, 5, 10, 5
PARTITION_ROWS = 250_000
MEMORY_LIMIT = "1GiB"
FEATURES = [f"x{number}" for number in range(CAUSES + OTHERS + CONSEQUENCES)]
SITES = [f"site {number}" for number in range(ENVIRONMENTS)]


def generate(part: int, rows: int) -> pd.DataFrame:
    """Rows of one partition: y = sum of the causes + noise, and consequences of y that differ between environments."""
    random = np.random.default_rng([0, part])
    codes = random.integers(ENVIRONMENTS, size=rows)
    x = random.standard_normal((rows, len(FEATURES)))
    y = x[:, :CAUSES].sum(1) + random.standard_normal(rows)
    x[:, -CONSEQUENCES:] += (y * (0.5 + codes / ENVIRONMENTS))[:, None]
    frame = pd.DataFrame(x, columns=FEATURES)
    return frame.assign(y=y, site=pd.Categorical.from_codes(codes, SITES))


def endless_frame(rows: int, partition_rows: int = PARTITION_ROWS) -> dd.DataFrame:
    """The table, of which no row exists yet."""
    sizes = [min(partition_rows, rows - begin) for begin in range(0, rows, partition_rows)]
    meta = generate(0, 1).iloc[:0]
    return dd.from_map(generate, range(len(sizes)), sizes, meta=meta)


def fit(frame: dd.DataFrame, *, table: bool = False) -> HeteroRegressor:
    """The fit of the table: one pass, or two if what the columns are has to be found."""
    if table:
        return fit_table(frame, "y", "site").estimator
    return HeteroRegressor().fit(frame[FEATURES], frame["y"], environments=frame["site"])


def largest_memory() -> float:
    """Of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def clocks(client: Client) -> np.ndarray:
    """Seconds by the clock, and of the processors of all workers."""
    return np.array([time.monotonic(), sum(client.run(time.process_time).values())])


def main() -> None:
    """Generate, sum, fit, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=MEMORY_LIMIT, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        frame = endless_frame(arguments.rows)
        started = clocks(client)
        frame[[*FEATURES, "y"]].sum().compute()
        summed = clocks(client)
        before = client.run(largest_memory)
        model = fit(frame, table=arguments.table)
        fitted = clocks(client)
        memory = client.run(largest_memory)
    summing, fitting = summed - started, fitted - summed
    correct = model.invariant_[:CAUSES].all() and not model.invariant_[-CONSEQUENCES:].any()
    print(f"{arguments.rows:.0e} rows x {len(FEATURES)} x {ENVIRONMENTS} environments, {frame.npartitions} partitions")
    print(f"one pass that generates and sums: {summing[0]:.0f} s, {summing[1]:.0f} s of processors")
    print(f"fit: {fitting[0]:.0f} s, {fitting[1]:.0f} s of processors")
    print(f"ratio: {fitting[0] / summing[0]:.2f}, {fitting[1] / summing[1]:.2f} of processors")
    print("largest memory of the workers: " + ", ".join(f"{value:.0f} MiB" for value in memory.values()), end="")
    print(f" (limit {MEMORY_LIMIT}; {', '.join(f'{value:.0f} MiB' for value in before.values())} before the fit)")
    print(f"the causes are found and their consequences washed out: {'yes' if correct else 'no'}")


if __name__ == "__main__":
    main()
