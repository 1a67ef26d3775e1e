"""Matrix completion by annealed SGD on a deep linear network, which jumps to a low rank on its way."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from holdfast.completion.annealing import (
    ANNEALING,
    Assignment,
    Trained,
    anneal,
    largest_singular_value,
    stable_step_size,
    threshold_ridge,
)
from holdfast.completion.jumps import GONE, Jump, jumps, ranks
from holdfast.completion.observations import Centred, CompletionRegressor, Fold, balanced_factors, held_out_errors
from holdfast.core.progress import Progress, stages, watched
from holdfast.core.validation import COUNT, POSITIVE, Count, Rule

# The grid of ridges: they lose singular values from the largest of the data down to this share of it.
RIDGES, SMALLEST_SHARE = 8, 0.05
# The step size, as a share of what is stable for random matrices; it is divided by the second number if a run diverges.
STABLE_SHARE, SMALLER_STEP, ATTEMPTS = 0.7, 3.0, 6
# A batch holds one entry for so many rows and columns. Up to about one for each the noise of a step, and not the
# curvature of the loss, bounds the step size, so that larger batches with larger steps have the same noise.
LINES_PER_ENTRY = 8
# Singular values of the start, relative to the largest of the data: above all that noise makes.
START = 0.5
# The default width of the network lies between these, and is about the rank at which all entries could be fitted.
SMALLEST_WIDTH, LARGEST_WIDTH = 8, 32


class _Plan(NamedTuple):
    """What was chosen for one way to take offsets off.

    Attributes:
        centre: the observations less their offsets.
        largest: singular value of the data.
        width: of the network.
        batch_size: m.
        step_size: eta.
        ridge: lambda.
        stage: at which the annealing ends.
        error: on held-out entries.
        path: of all candidates.
    """

    centre: Centred
    largest: float
    width: int
    batch_size: int
    step_size: float
    ridge: float
    stage: int
    error: float
    path: pd.DataFrame


@dataclass(kw_only=True, eq=False, repr=False)
class DeepMatrixFactorization(CompletionRegressor):
    """Matrix completion by SGD on a deep linear network with an L2 penalty, annealed.

        y_ij = mean + a_i + b_j + A_ij + noise,    A = W_L ... W_1
        W_l <- (1 - 2 eta lambda) W_l - eta G_l,    G: gradient of half the mean square over a batch of entries

    The first stage has a large step size and ridge: the network starts with full rank, and its rank falls in jumps,
    which SGD does not take back. Then step size and ridge are annealed, which removes the noise and the bias of what
    is left. The ridge is chosen from a grid that spans what the observed entries can support, and the stage at which
    the annealing ends with it, by the error on held-out entries. The step size is 0.7 of what is stable for random
    matrices of this size.

    Args:
        ridge: lambda of the first stage, for standardised values; None: chosen on held-out entries.
        step_size: eta of the first stage; None: from the size of the data.
        depth: number of layers L, at least 3; with two of them lost directions come back.
        width: of the hidden layers, the largest possible rank; None: from the number of entries.
        center: whether rows and columns have offsets a_i and b_j, shrunk by an amount chosen on held-out entries.
            Without them nothing is taken off: A alone is fitted.
        folds: parts of the entries that are held out, one after the other.
        steps: of the first stage; each of the others has 0.3 times as many.
        restarts: runs of the final fit, from several starts; the one with the least penalised error is used.
        random_state: of folds, starts and batches.
        verbose: 0: nothing is printed; 1: a progress bar on stderr; or a function of (done, total).

    Attributes:
        rank_: of A.
        row_factors_, column_factors_: (rows, rank_), (columns, rank_); A = row_factors_ @ column_factors_.T.
        mean_, row_offsets_, column_offsets_: mean, a and b.
        row_labels_, column_labels_: the labels, in the order of factors and offsets.
        jumps_: table of the changes of the rank: step, before, after, stay.
        singular_values_: (records, width), of A over the run, in the units of y.
        record_steps_: (records,), the steps of the records.
        annealed_at_: the step at which the annealing began.
        ridge_, step_size_: those used in the first stage.
        ridge_path_: table of the candidates: ridge, stage, and the root mean square error on held-out entries.

    A row or column that is not in the data is predicted by the mean and the offset of the other label; see `predict`.
    Entries observed several times count several times.

    References: Wang and Jacot (ICLR 2024), the jumps; Arora, Cohen, Hu and Luo (NeurIPS 2019), deep matrix
    factorization.

    Example, two thirds of a multiplication table:
        >>> X = np.array([[i, j] for i in range(12) for j in range(12) if (i + 2 * j) % 3 > 0])
        >>> y = (X[:, 0] - 5.5) * (X[:, 1] - 5.5)
        >>> model = DeepMatrixFactorization(folds=2).fit(X, y)
        >>> model.rank_, bool(abs(model.predict([[2, 2]])[0] - 12.25) < 1)
        (1, True)
    """

    ridge: Annotated[float | None, POSITIVE] = None
    step_size: Annotated[float | None, POSITIVE] = None
    depth: Annotated[int, Rule("a whole number of at least 3", lambda value: value >= 3, whole=True)] = 3
    width: Annotated[int | None, COUNT] = None
    steps: Count = 3000
    restarts: Count = 4
    verbose: Any = 0

    def _completed(self, centres: list[Centred], seed: int) -> tuple[Centred, np.ndarray, np.ndarray]:
        ridges = RIDGES if self.ridge is None else 1
        with watched(self.verbose, "completing") as progress:
            *choosing, finishing = stages(progress, [ridges * self.folds] * len(centres) + [self.restarts])
            plans = [self._choose(centre, seed, each) for centre, each in zip(centres, choosing, strict=True)]
            plan, trained = min(plans, key=lambda each: each.error), None
            if plan.largest > 0:
                whole = Fold(plan.centre.observations, 0, 0)
                final = [Assignment(whole, plan.ridge, seed + number) for number in range(self.restarts)]
                plan, trained = self._run(plan, final, stages=plan.stage, record=True, progress=finishing)
        self.ridge_, self.step_size_, self.ridge_path_ = plan.ridge, plan.step_size, plan.path
        return plan.centre, *self._best(plan, trained)

    def _choose(self, centre: Centred, seed: int, progress: Progress) -> _Plan:
        """Ridge and last stage with the least error on held-out entries."""
        shape, count = centre.observations.shape, len(centre.observations.values)
        largest = largest_singular_value(centre.observations)
        width = min(*shape, self.width or _default_width(count, sum(shape)))
        batch_size = 1 << max(0, round(np.log2(sum(shape) / LINES_PER_ENTRY)))
        step_size = self.step_size or STABLE_SHARE * stable_step_size(largest or 1.0, self.depth, shape, batch_size)
        shares = np.geomspace(1.0, SMALLEST_SHARE, RIDGES)
        spanning = [threshold_ridge(largest * share, self.depth, shape) for share in shares]
        ridges = spanning if self.ridge is None else [float(self.ridge)]
        path = pd.DataFrame(columns=["ridge", "stage", "error"])
        plan = _Plan(centre, largest, width, batch_size, float(step_size), ridges[0], 1, centre.scale, path)
        if largest == 0 or not centre.folds:  # nothing to fit, or too little to choose by: the largest ridge
            return plan
        assignments = [Assignment(fold, ridge, seed) for ridge in ridges for fold in centre.folds]
        plan, trained = self._run(plan, assignments, stages=len(ANNEALING), progress=progress)
        grid = [(ridge, stage) for stage in range(len(ANNEALING) + 1) for ridge in ridges]
        predicted = (
            [
                fold.held_out.products(left[run], right[run])
                for left, right in trained.factors
                for run in range(number, len(assignments), len(centre.folds))
            ]
            for number, fold in enumerate(centre.folds)
        )
        path = held_out_errors(centre, pd.DataFrame(grid, columns=["ridge", "stage"]), predicted)
        best = int(path["error"].argmin())
        return plan._replace(ridge=grid[best][0], stage=grid[best][1], error=float(path["error"][best]), path=path)

    def _run(self, plan: _Plan, assignments: list[Assignment], **options: Any) -> tuple[_Plan, Trained]:
        """All runs; again with a smaller step size as long as one diverges."""
        for _ in range(ATTEMPTS):
            trained = anneal(
                assignments, depth=self.depth, width=plan.width, step_size=plan.step_size,
                start=START * plan.largest, batch_size=plan.batch_size, steps=self.steps, **options,
            )  # fmt: skip
            if not trained.diverged.any():
                return plan, trained
            plan = plan._replace(step_size=plan.step_size / SMALLER_STEP)
        raise ValueError(f"step_size must be small enough for SGD to be stable, got {self.step_size!r}")

    def _best(self, plan: _Plan, trained: Trained | None) -> tuple[np.ndarray, np.ndarray]:
        """The factors of the run with the least penalised error, and its jumps; none if there was nothing to fit."""
        observations = plan.centre.observations
        if trained is None:
            self.jumps_ = pd.DataFrame(columns=list(Jump._fields))
            self.singular_values_, self.record_steps_, self.annealed_at_ = np.zeros((1, 0)), np.zeros(1, int), 0
            height, width = observations.shape
            return np.zeros((height, 0)), np.zeros((width, 0))
        runs = list(zip(*trained.factors[-1], strict=True))
        errors = [np.square(observations.products(*factors) - observations.values).mean() for factors in runs]
        ridge = plan.ridge * (1.0, *(part for _, part in ANNEALING))[plan.stage]
        best = int(np.argmin(np.array(errors) / 2 + ridge * trained.norms[-1]))
        path = ranks(trained.singular_values[best], plan.largest)
        self.jumps_ = pd.DataFrame(jumps(trained.steps, path), columns=list(Jump._fields))
        self.singular_values_ = trained.singular_values[best] * plan.centre.scale
        self.record_steps_, self.annealed_at_ = trained.steps, self.steps
        u, spectrum, v = balanced_factors(*runs[best])
        alive = spectrum > GONE * plan.largest
        return (u * spectrum)[:, alive], v[:, alive]


def _default_width(count: int, lines: int) -> int:
    """The rank whose factors have as many numbers as there are observations, as a multiple of eight."""
    return min(max(-(-count // (8 * lines)) * 8, SMALLEST_WIDTH), LARGEST_WIDTH)
