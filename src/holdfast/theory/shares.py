"""The law of the spurious share after T steps, with sampling error, saturation and divergence.

The signals span r1 + r2 of d directions. In a basis of them U has a block B of r1 + r2 rows; what the other d - r1 - r2
rows do to it is a sum over many independent numbers, so only its mean matters. One step of HeteroSGD is then a
recursion of small matrices, which a computer repeats for thousands of runs in a fraction of a second at any d and m.
docs/theory.md derives it.
"""

from collections.abc import Iterator
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from holdfast.core.statistics import Estimate, proportion
from holdfast.core.validation import COUNT, require
from holdfast.core.worker import StoppedError, current_worker
from holdfast.sensing.environments import Environments, finitely_many
from holdfast.theory.finite_time import check_numbers
from holdfast.theory.order import check_order, ordered_visits
from holdfast.theory.sampling import Sampling, SamplingOptions
from holdfast.theory.strengths import sample_strengths

# Runs that are advanced together: few enough for the second-level cache of a core.
SLAB = 2000
# A run has diverged when its squared size passes this many times 1 / eta: the next step multiplies it by about as much.
ESCAPE = 100.0


class SimulatedShares(NamedTuple):
    """What many runs of HeteroSGD have learned after T steps.

    Attributes:
        spurious: ||Q||^2 of each run, the share of the spurious direction that is learned most; infinite where the run
            diverged.
        invariant: the mean share of the invariant directions; NaN where the run diverged.
        diverged: whether the run diverged.

    Example:
        >>> shares = SimulatedShares(np.array([0.001, 0.002, np.inf, 0.5]), np.ones(4), np.array([0, 0, 1, 0], bool))
        >>> shares.above(0.01).value, round(shares.mean, 3)
        (0.5, 0.168)
    """

    spurious: np.ndarray
    invariant: np.ndarray
    diverged: np.ndarray

    def above(self, level: float) -> Estimate:
        """The probability that the share is above a level or the run has diverged, with the error of the simulation."""
        return proportion(int((self.spurious > level).sum()), len(self.spurious))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Quantiles of the share; a run that diverged counts as infinitely large."""
        return np.quantile(self.spurious, np.asarray(probability, float), method="lower")

    @property
    def median(self) -> float:
        """Half of the runs end below it."""
        return float(self.quantile(0.5))

    @property
    def mean(self) -> float:
        """Over the runs that did not diverge; the few largest shares make most of it. NaN if all diverged."""
        remaining = self.spurious[~self.diverged]
        return float(remaining.mean()) if len(remaining) else np.nan


def simulate_shares(
    environments: Environments,
    step_size: float,
    steps: int,
    init_scale: float,
    *,
    order: str = "independent",
    runs: int = 10_000,
    seed: int = 0,
    **sampling: Unpack[SamplingOptions],
) -> SimulatedShares:
    """The law of the spurious share after T steps of HeteroSGD with fresh batches, by runs in r1 + r2 dimensions.

    With B the rows of U along the signals, D = diag(A*, S(e)), W = B B^T - D and w^2 = ||residual||_F^2 + sigma^2,

        B <- B - eta (W + (g W + w Z) / sqrt(m)) B - eta (B G + w N sqrt(G tau / m)),    g, N normal, Z one measurement,

    where tau is the variance of an entry of a measurement and G = E^T E, the residual in the columns of B, follows its
    mean. Every other direction kicks a row of B by eta w alpha sqrt(tau / m), which adds up in quadrature. The batch
    is taken to be large enough for a normal law of its mean (hundreds of measurements); the subspaces do not overlap.

    Args:
        environments: the law of S(e); its strengths need not commute.
        step_size: eta.
        steps: T.
        init_scale: alpha.
        order: of the environments, "independent", or, for finitely many, "reshuffled" or "cyclic".
        runs: how many are simulated.
        seed: of the random numbers.
        sampling: the arguments of `Sampling`; the dimension is at least r1 + r2.

    Example, sampling error leaves a share of about 1 / (2 m), and a few runs keep much more:
        >>> from holdfast.sensing.environments import two_point
        >>> shares = simulate_shares(two_point(1.0, 10.0), 0.05, 200, 1e-4, batch_size=8000, runs=2000)
        >>> 5e-5 < shares.median < 8e-5, shares.mean > 20 * shares.median
        (True, True)
    """
    check_numbers(step_size, steps, init_scale)
    COUNT.check("runs", runs)
    measured = Sampling(**sampling)
    check_order(order)
    rank = len(measured.eigenvalues) + environments.rank
    require(measured.dimension >= rank, f"dimension must be at least r1 + r2 = {rank}", measured.dimension)
    block = _Block(environments, float(step_size), measured, order)
    randoms = np.random.default_rng(seed).spawn(-(-runs // SLAB))
    sizes = np.diff(np.append(np.arange(0, runs, SLAB), runs))
    parts = [block.simulate(random, int(size), steps, init_scale) for random, size in zip(randoms, sizes, strict=True)]
    return SimulatedShares(*(np.concatenate(part) for part in zip(*parts, strict=True)))


# The signal rows of U, the residual of the other rows in each of their columns, and the mean square of those elsewhere.
State = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Block(NamedTuple):
    """The recursion of the signal rows of U. Matrices have the runs as their last axis."""

    environments: Environments
    step_size: float
    sampling: Sampling
    order: str

    def simulate(self, random: np.random.Generator, runs: int, steps: int, init_scale: float) -> SimulatedShares:
        """Spurious and invariant shares, and which runs diverged."""
        invariant_rank = len(self.sampling.eigenvalues)
        rank = invariant_rank + self.environments.rank
        rows = np.repeat(init_scale * np.eye(rank)[..., None], runs, -1)
        # Of the other directions: their residual in each column of the block, and their mean square elsewhere.
        residual, start = np.zeros((rank, runs)), np.full(runs, init_scale**2)
        diverged = np.zeros(runs, bool)
        for strengths in self._strengths(random, runs, steps):
            if current_worker().stopped():
                raise StoppedError
            with np.errstate(over="ignore", invalid="ignore"):  # runs that diverge are set to zero below
                rows, residual, start = self._step(random, strengths, (rows, residual, start))
                escaped = ~(np.square(rows).sum((0, 1)) + residual.sum(0) <= ESCAPE / self.step_size)
            if escaped.any():
                diverged |= escaped
                rows[..., escaped], residual[:, escaped], start[escaped] = 0, 0, 0
        spurious = np.einsum("ian,jan->nij", rows[invariant_rank:], rows[invariant_rank:])
        largest = np.where(diverged, np.inf, np.linalg.eigvalsh(spurious)[:, -1])
        invariant = np.square(rows[:invariant_rank]).sum(1)
        shares = (invariant / self.sampling.eigenvalues[:, None]).mean(0)
        return SimulatedShares(largest, np.where(diverged, np.nan, shares), diverged)

    def _strengths(self, random: np.random.Generator, runs: int, steps: int) -> Iterator[np.ndarray]:
        """S(e) of every step, (r2, r2, runs)."""
        if self.order == "independent":
            for _ in range(steps):
                yield sample_strengths(self.environments, random, runs)
            return
        finite = finitely_many(self.environments, "environments must be finitely many to be visited in an order")
        matrices = np.moveaxis(np.asarray(finite.strengths, float), 0, -1)
        for visited in ordered_visits(finite, self.order, steps=steps, runs=runs, seed=random):
            yield matrices[..., visited]

    def _step(self, random: np.random.Generator, strengths: np.ndarray, state: State) -> State:
        (rows, residual, start), eta = state, self.step_size
        rank, runs = len(rows), rows.shape[-1]
        invariant_rank = len(self.sampling.eigenvalues)
        on_diagonal = np.arange(rank)
        error = np.einsum("ian,jan->ijn", rows, rows)  # W
        error[on_diagonal[:invariant_rank], on_diagonal[:invariant_rank]] -= self.sampling.eigenvalues[:, None]
        error[invariant_rank:, invariant_rank:] -= strengths
        batch_size = self.sampling.batch_size
        if batch_size is None:
            return rows - eta * np.einsum("ijn,jan->ian", error, rows), residual, start
        others = self.sampling.dimension - rank
        columns = np.square(rows).sum(0)
        square = (  # w^2: the blocks of the residual matrix, and the label noise
            np.square(error).sum((0, 1))
            + (residual * (2 * columns + residual + 2 * start)).sum(0)
            + others * start**2
            + self.sampling.noise_variance
        )
        variance = square * self.sampling.entry_variance / batch_size
        along = 1 + random.standard_normal(runs) / np.sqrt(batch_size)
        gradient = along * error + np.sqrt(square / batch_size) * self._noise(random, rank, runs)
        moved = rows - eta * (np.einsum("ijn,jan->ian", gradient, rows) + residual * rows)
        # The residual is large in the columns of what is learned, and its kicks matter to what is not.
        spurious, learned = slice(invariant_rank, None), slice(None, invariant_rank)
        kicks = random.standard_normal((rank - invariant_rank, invariant_rank, runs), np.float32)
        moved[spurious, learned] -= eta * np.sqrt(variance * residual[learned]) * kicks
        own = moved[on_diagonal, on_diagonal]
        moved[on_diagonal, on_diagonal] = np.copysign(np.sqrt(own**2 + eta**2 * variance * others * start), own)
        noise = eta**2 * variance * others
        return (
            moved,
            residual * (1 - eta * (residual + columns)) ** 2 + noise * (residual + columns),
            start * ((1 - eta * start) ** 2 + noise),
        )

    def _noise(self, random: np.random.Generator, rank: int, runs: int) -> np.ndarray:
        """One measurement, in the directions of the signals: a symmetric part, and an antisymmetric one."""
        if self.sampling.entry_variance == 1:  # both together are independent entries
            return random.standard_normal((rank, rank, runs), np.float32)
        entries = np.empty((rank, rank, runs), np.float32)
        off_diagonal = np.float32(np.sqrt(0.5))
        for row in range(rank):
            random.standard_normal(out=entries[row, : row + 1], dtype=np.float32)
            entries[row, :row] *= off_diagonal
            entries[:row, row] = entries[row, :row]
        if self.sampling.entry_variance > 0.5:
            above = np.triu_indices(rank, 1)
            size = np.float32(np.sqrt(self.sampling.entry_variance - 0.5))
            turned = size * random.standard_normal((len(above[0]), runs), np.float32)
            entries[above] += turned
            entries[above[::-1]] -= turned
        return entries
