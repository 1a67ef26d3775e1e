"""What the page on tables claims, measured on either half: errors, dangers found where they were planted, coverage.

A consequence of the response is a column z = c_e y + 0.6 noise, of the standardised y, whose strength c_e is uniform in
0.2 to 1.2 in each environment.

- errors: of the default and of strictness in environments that were left out, for each suite of `SUITES`.
- planted: a consequence joins each of the new tables. How is it ranked and judged? And what does it cost in an
  environment that was left out, where it follows the response as before (kept) or is noise (lost), if it was declared
  (`after`) or not, relative to least squares on all features?
- shifted: causes whose variances change and whose effects do not, with a consequence or without one.
- coverage: of the intervals of mean effects by the mean effect over many environments of the same law; and verdicts on
  features whose effects are equal everywhere. Here y is not standardised in z.

`make tables` writes all of them with 95 % intervals over tables or seeds to `docs/table_claims.csv`.
"""

import csv
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from holdfast.core.progress import Progress, watched
from holdfast.core.statistics import Estimate, mean_interval
from holdfast.datasets.real_tables import Half, held_out_groups, load_real_table
from holdfast.estimators import HeteroRegressor
from holdfast.estimators.baselines.linear import PooledRegressor
from holdfast.estimators.contract import EnvironmentEstimator
from holdfast_studies.comparison.suites import FIRST_SEED, SEEDS, SUITES, SuiteCell, each, evaluate

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("holds", "varies", "dangerous", "cannot be told")
STRENGTHS = (0.2, 1.2)
NOISE = 0.6
DRAWS = 3  # of a planted column, for each table
SCALES = (0.5, 3.0)  # of a cause whose variance changes
# Coverage is of these effects; of one of them where effects vary, with this standard deviation between environments.
EFFECTS = np.array([1.0, -0.8, 0.5, 0.0])
VARYING, SPREAD = 2, 0.5
# Standard deviation of the means of features, where they change; that of the response is 1.
MEANS = 2.0
MANY = 4_000  # environments over which the true mean effects are taken


def errors(suite: str, half: Half, units: int | None = None, progress: Progress | None = None) -> "pd.DataFrame":
    """For each table or seed of a suite the logarithms of relative errors, and whether the default is within 2 %.

    Args:
        suite: a key of `SUITES`.
        half: of the tables and seeds.
        units: the first so many tables or seeds.
        progress: called with (fits done, fits in all).
    """
    import pandas as pd

    tables = list(dict.fromkeys(cell.table for cell in SUITES[suite].cells(half)))[:units]
    made: tuple[Callable[[], HeteroRegressor], ...] = (HeteroRegressor, partial(HeteroRegressor, pooling=0))
    default, strict = (
        np.log(evaluate(make, suite, half, tables=tables, progress=progress)["relative_error"]) for make in made
    )
    found = {"default / least squares": default, "strict / least squares": strict, "default / strict": default - strict}
    return pd.DataFrame(found).add_prefix("error: ").assign(**{"default within 2 %": default <= np.log(1.02)})


def planted(
    half: Half, units: int | None = None, progress: Progress | None = None, *, draws: int = DRAWS
) -> "pd.DataFrame":
    """For each new table, means over draws: rank and verdict of a planted consequence, and the errors it causes."""
    tables = list(dict.fromkeys(cell.table for cell in SUITES["new"].cells(half)))[:units]
    cells = [SuiteCell(name, FIRST_SEED[half] + draw) for name in tables for draw in range(draws)]
    return _means(cells, each(_planted, cells, progress=progress))


def shifted(
    environments: int,
    rows: int,
    causes: int,
    consequence: bool,
    half: Half,
    units: int | None = None,
    progress: Progress | None = None,
) -> "pd.DataFrame":
    """For each seed what is said of causes whose variances change, and of a consequence beside them, if any."""
    cells = _seeds(half, units)
    return _means(cells, each(partial(_shifted, environments, rows, causes, consequence), cells, progress=progress))


def coverage(
    law: str, environments: int, rows: int, half: Half, units: int | None = None, progress: Progress | None = None
) -> "pd.DataFrame":
    """For each seed the share of mean effects that their intervals cover, and verdicts; `law` is a key of `LAWS`."""
    cells = _seeds(half, units)
    return _means(cells, each(partial(_covered, law, environments, rows), cells, progress=progress))


def with_intervals(found: "pd.DataFrame") -> dict[str, Estimate]:
    """One row of a table of the page: means with intervals over tables or seeds; of errors the geometric mean.

    Example:
        >>> import pandas as pd
        >>> with_intervals(pd.DataFrame({"error": np.log([0.5, 2.0]), "share": [True, False]}))["error"].value
        1.0
    """
    means = {str(name): mean_interval(values) for name, values in found.astype(float).items()}
    return {
        name: Estimate(*np.exp(mean).tolist()) if name.startswith("error") else mean for name, mean in means.items()
    }


def _seeds(half: Half, units: int | None) -> list[SuiteCell]:
    first = FIRST_SEED[half]
    return [SuiteCell(f"seed {seed}", seed) for seed in range(first, first + (units or SEEDS))]


def _means(cells: list[SuiteCell], numbers: list[dict[str, float]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(numbers, index=[cell.table for cell in cells], dtype=float).groupby(level=0, sort=False).mean()


def _shares(of: str, verdicts: "pd.Series") -> dict[str, float]:
    return {f"{of}: {verdict}": float((verdicts == verdict).mean()) for verdict in VERDICTS}


def _planted(cell: SuiteCell) -> dict[str, float]:
    features, targets, environments = load_real_table(cell.table)
    causes, last = features.to_numpy(), features.shape[1]
    random = np.random.default_rng([cell.number, crc32(cell.table.encode())])
    labels, codes = np.unique(environments, return_inverse=True)
    strengths, noise = random.uniform(*STRENGTHS, len(labels)), NOISE * random.standard_normal(len(targets))
    follower = strengths[codes] * (targets - targets.mean()) / targets.std() + noise
    kept, lost = (np.column_stack([causes, column]) for column in (follower, noise))
    relations = HeteroRegressor().fit(kept, targets, environments=environments).relations_
    rank = int(relations["rank"].iloc[-1])
    groups = held_out_groups(cell.table)
    out = np.isin(environments, groups[cell.number % len(groups)])

    def fitted(estimator: EnvironmentEstimator, inputs: np.ndarray) -> EnvironmentEstimator:
        return estimator.fit(inputs[~out], targets[~out], environments=environments[~out])

    def error(estimator: EnvironmentEstimator, inputs: np.ndarray) -> float:
        return float(np.log(np.square(estimator.predict(inputs[out]) - targets[out]).mean()))

    without, pooled = (fitted(PooledRegressor(), inputs) for inputs in (causes, kept))
    ours = {"declared": HeteroRegressor(after=[last]), "undeclared": HeteroRegressor()}
    models = {name: fitted(estimator, kept) for name, estimator in ours.items()}
    costs: dict[str, float] = {}
    for case, inputs in {"kept": kept, "lost": lost}.items():
        all_features = error(pooled, inputs)
        costs |= {f"error, z {case}: {name}": error(model, inputs) - all_features for name, model in models.items()}
        costs[f"error, z {case}: left out"] = error(without, causes) - all_features
    return {"z first": rank == 1, "z first or second": rank <= 2} | _shares("z", relations["verdict"][-1:]) | costs


def _mixing(scales: np.ndarray, effects: np.ndarray, noise: float, strengths: np.ndarray) -> np.ndarray:
    """(environments, variables, variables): the causes, z and y of each environment from as many unit normals."""
    environments, causes = scales.shape
    mixing = np.zeros((environments, causes + 2, causes + 2))
    mixing[:, range(causes), range(causes)] = scales
    mixing[:, -1, :causes] = scales * effects
    mixing[:, -1, causes] = noise
    mixing[:, causes] = strengths[:, None] * mixing[:, -1]
    mixing[:, causes, -1] = NOISE
    return mixing


def _relations(random: np.random.Generator, mixing: np.ndarray, rows: int, consequence: bool, means: float = 0.0):
    environments, variables, _ = mixing.shape
    values = random.standard_normal((environments, rows, variables)) @ mixing.transpose(0, 2, 1)
    spread = np.append(np.full(variables - 1, means), means > 0)
    values = (values + spread * random.standard_normal((environments, 1, variables))).reshape(-1, variables)
    codes = np.repeat(np.arange(environments), rows)
    return HeteroRegressor().fit(values[:, : variables - 2 + consequence], values[:, -1], environments=codes).relations_


def _shifted(environments: int, rows: int, causes: int, consequence: bool, cell: SuiteCell) -> dict[str, float]:
    random = np.random.default_rng([cell.number, environments, rows, causes, consequence])
    scales = random.uniform(*SCALES, (environments, causes))
    effects = random.uniform(0.5, 1.5, causes) * random.choice([-1, 1], causes)
    noise = random.uniform(0.5, 1.5)
    deviation = np.sqrt(((scales * effects) ** 2).sum(1).mean() + noise**2)
    strengths = random.uniform(*STRENGTHS, environments) / deviation
    found = _relations(random, _mixing(scales, effects, noise, strengths), rows, consequence)
    verdicts = found["verdict"]
    numbers = _shares("causes", verdicts[:causes]) | {"any cause dangerous": "dangerous" in set(verdicts[:causes])}
    if consequence:
        numbers |= {"z first": found["rank"].iloc[-1] == 1} | _shares("z", verdicts[-1:])
    return numbers


# What changes between environments besides rows.
LAWS: dict[str, frozenset[str]] = {
    "nothing changes": frozenset(),
    "means change": frozenset({"means"}),
    "an effect changes": frozenset({"effects"}),
    "nothing changes but z": frozenset({"z"}),
    "variances change, and z": frozenset({"variances", "z"}),
}


def _law(changes: frozenset[str], random: np.random.Generator, environments: int) -> np.ndarray:
    shape = (environments, len(EFFECTS))
    effects = np.tile(EFFECTS, (environments, 1))
    if "effects" in changes:
        effects[:, VARYING] += SPREAD * random.standard_normal(environments)
    scales = random.uniform(*SCALES, shape) if "variances" in changes else np.ones(shape)
    return _mixing(scales, effects, 1.0, random.uniform(*STRENGTHS, environments))


@cache
def _true_effects(changes: frozenset[str], given: tuple[bool, ...]) -> np.ndarray:
    """(features,), the mean effect of each feature given those of its company, from the exact covariances."""
    mixing = _law(changes, np.random.default_rng(0), MANY)
    covariances = mixing @ mixing.transpose(0, 2, 1)
    means = []
    for feature in range(len(given)):
        company = np.flatnonzero([chosen or other == feature for other, chosen in enumerate(given)])
        inner, cross = covariances[:, company[:, None], company], covariances[:, company, -1:]
        means.append(np.linalg.solve(inner, cross)[:, company == feature].mean())
    return np.array(means)


def _covered(law: str, environments: int, rows: int, cell: SuiteCell) -> dict[str, float]:
    changes = LAWS[law]
    random = np.random.default_rng([cell.number, crc32(law.encode()), environments])
    means = MEANS if "means" in changes else 0.0
    found = _relations(random, _law(changes, random, environments), rows, "z" in changes, means)
    truth = _true_effects(changes, tuple(found["given"].tolist()))
    inside = ((found["low"] <= truth) & (truth <= found["high"])).to_numpy(float)
    equal = [feature for feature in range(len(EFFECTS)) if feature != VARYING or "effects" not in changes]
    shares = _shares("equal effects", found["verdict"].iloc[equal])
    z = {"covered, z": inside[-1]} if "z" in changes else {}
    return {"covered, causes": inside[: len(EFFECTS)].mean()} | z | shares


Claim = Callable[[Half, int | None, Progress | None], "pd.DataFrame"]


def _claims() -> dict[str, Claim]:
    regressions = [name for name, suite in SUITES.items() if suite.kind == "regression"]
    claims: dict[str, Claim] = {f"errors: {name}": partial(errors, name) for name in regressions}
    claims["planted"] = planted
    for size in ((6, 400, 3), (10, 1000, 3), (10, 1000, 6), (40, 25, 3)):
        about = "shifted: {} environments of {} rows, {} causes".format(*size)
        claims[about] = partial(shifted, *size, False)
        claims[f"{about} and z"] = partial(shifted, *size, True)
    for law in LAWS:
        for count, rows in ((8, 250), (40, 25)):
            claims[f"coverage: {law}, {count} environments of {rows} rows"] = partial(coverage, law, count, rows)
    return claims


CLAIMS = _claims()
"""Name -> a function of the half, how many tables or seeds, and progress, with a row for each table or seed."""


def write_claims(path: Path, claims: dict[str, Claim] = CLAIMS, units: int | None = None) -> None:
    """All numbers of both halves as CSV, with the numbers of tables or seeds.

    Args:
        path: of the file.
        claims: which of `CLAIMS`, or all.
        units: of each claim the first so many tables or seeds of a half.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["claim", "number", "chosen on", "put aside", "tables or seeds"])
        for name, measure in claims.items():
            found = []
            for half in FIRST_SEED:
                with watched(1, f"{name}, {half}") as progress:
                    found.append(measure(half, units, progress))
            chosen, aside = map(with_intervals, found)
            for number in chosen:
                cells = ("{:.3f} ({:.3f} to {:.3f})".format(*half[number]) for half in (chosen, aside))
                writer.writerow([name, number, *cells, " and ".join(str(len(half)) for half in found)])


if __name__ == "__main__":
    write_claims(Path(sys.argv[1]), units=int(sys.argv[2]) if len(sys.argv) > 2 else None)
