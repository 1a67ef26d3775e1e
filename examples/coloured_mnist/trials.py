"""Coloured MNIST: ideas that did not help, each against what it would replace.

The rules were written down before the first run. What came of them is in docs/coloured_mnist.md, from the file that
this script writes:

    python examples/coloured_mnist/trials.py --data FOLDER --out further_trials.json

FOLDER holds the IDX files of MNIST; the script takes minutes on a large GPU. Rows, network and optimiser are those of
`table.py`. Seeds 1002 to 1004 had been looked at before; 1005 to 1014 had not, and were
run once. A gain is clear if the mean over the first is above zero, and so is the 95 % interval over the others, seed by
seed. The rules, and what was expected:

- discover and offset, decaying: the last training of `discover and remove`, by offsets, with dropout of 0.4 and a
  weight decay of 0.0003, as seeds 0 to 9 chose. The step size falls to 0, linearly in 600 steps, or as a cosine in 600
  or 300; the likelihood of held-out rows, balanced, chooses schedule and step. Against: a constant step size, with the
  same rule for the step. Expected: a gain of 0.003 at most, since a running mean of the weights is judged already.
- in turn, growing and decaying: one environment a step, with step sizes that grow linearly from 0.2 to 2 or 0.4 to 4,
  or fall as far; worst environment chooses step and setting, as for the constant step sizes 1 and 2. Expected: growing
  ends where the growth of the colour is smallest, and gains a little with 0.9 and 0.3; nothing with 0.8 and 0.9.
- in turn, amplified: the gradient is that of the mean plus k times how the environment differs from it, at the length
  that the gradient of the environment has; k of 2, 5, 10, 30, step size 1, worst environment. The correlations 0.6 and
  0.8 of the colour change sign from k = 7 on, so that it could be washed out with 0.8 and 0.9; the rule would not show
  it there, so that the last step with the best k on test is recorded as well.
- head after in turn: `invariant_head` on the network of the constant step sizes 1 and 2 after 800 steps, by its own
  margin. Against: the head after pooled training, at 400 or 600 steps. Expected: a gain below 0.01, with 0.9 and 0.3.
- directions of variances, in the pooled network. An attribute that agrees with the label in a share p of the rows has
  the variance p (1 - p) within each class: 0.16 and 0.09 of its squared size for shares of 0.8 and 0.9, 0.09 and 0.21
  for 0.9 and 0.3. Expected to find the colour, in 99 % of the images or more, and nothing among images of one colour.
"""

import math

import numpy as np
import torch
from attribute_removal import HIDDEN_DROPOUT, adjustment
from recording import chosen_results, only, record, together
from table import POOLED, SNAPSHOT_EVERY
from threadpoolctl import threadpool_limits

from holdfast.embeddings.attributes import bimodal_rotation, group_scores
from holdfast.embeddings.variation import LEVEL, find_variation
from holdfast_studies.images.coloured_problem import train_on_mnist
from holdfast_studies.images.frozen_networks import device_moments, discover_attribute, features_of, fit_heads, halves
from holdfast_studies.images.image_methods import (
    AVERAGED,
    ImageMethod,
    log_likelihood,
    mean_accuracy,
    mean_risk,
    one_in_turn,
    weighted_by,
    worst_environment,
)

OF_POOLED = ("discover and offset, constant", "discover and offset, decaying", "head after pooled")
IN_TURN = ("in turn, constant", "in turn, growing", "in turn, decaying", "head after in turn")
AMPLIFIED = "in turn, amplified"
PROTOCOL = (*OF_POOLED, *IN_TURN, AMPLIFIED, "pooled")
SEEDS = range(1002, 1015)
# What seeds 0 to 9 chose on held-out rows.
DROPOUT, DECAY = (0.4, HIDDEN_DROPOUT), 3e-4
# SGD takes so many times the steps of Adam.
LONGER = 4 / 3
CONSTANT_SIZES = (1.0, 2.0)
# Growing ones begin here and end at so many times as much; falling ones the other way round.
SMALL_SIZES, RANGE = (0.2, 0.4), 10.0
AMPLIFICATIONS = (2.0, 5.0, 10.0, 30.0)
# Directions in which variances vary: permutations of a test, and the most directions that are looked for.
PERMUTATIONS, MOST = 200, 5


# Schedules of the step size: functions of the steps taken.


def falling(horizon, cosine=False):
    """From 1 to 0 within `horizon` steps, linearly or as a cosine."""

    def factor(step):
        progress = min(step / horizon, 1.0)
        return (1 + math.cos(math.pi * progress)) / 2 if cosine else 1 - progress

    return factor


def linear(last, horizon):
    """From 1 to `last` within `horizon` steps."""
    return lambda step: 1 + (last - 1) * min(step / horizon, 1.0)


# One environment a step, in turn, with its difference from the mean gradient amplified, at the same length:
# g = mean + k (g_e - mean), and the step goes along g |g_e| / |g|.


def amplified(losses, penalties, grid, step, state):
    """An inner product of the parameters whose gradient is that."""
    parameters = state["parameters"]
    each = [torch.autograd.grad(losses[..., number].sum(), parameters, retain_graph=True) for number in (0, 1)]
    own = each[step % 2]
    factor = grid["amplification"][:, None, None]
    mean = [(one + other) / 2 for one, other in zip(*each, strict=True)]
    larger = [middle + factor * (one - middle) for middle, one in zip(mean, own, strict=True)]
    scale = (squares(own) / squares(larger).clamp(min=1e-30)).sqrt()
    products = ((one * gradient).sum((-2, -1)) for one, gradient in zip(parameters, larger, strict=True))
    return scale * sum(products, torch.zeros_like(scale))


def squares(gradient):
    """(S, C): the squared length."""
    return torch.stack([(each**2).sum((-2, -1)) for each in gradient]).sum(0)


# Directions in which covariances within classes differ between the environments: eigenvectors of
# A = sum over classes c of (S_1c - S_2c)^2, with the covariances S_ec of whitened rows. The test that at most r of them
# vary compares the largest eigenvalue of A outside of the first r with those of rows permuted between the environments,
# class by class, each about its mean.


def varying_variances(rows, cells, level=LEVEL):
    """Directions, first those that vary most, p-values of the tests, and the number of directions that vary.

    Rows (rows, components) have the covariance 1 within classes and environments; cells are 2 environment + class.
    """
    generator = torch.Generator(rows.device).manual_seed(0)
    observed, permuted = [], []
    for label in (0, 1):
        first, second = (rows[cells == 2 * environment + label] for environment in (0, 1))
        both = torch.cat([first - first.mean(0), second - second.mean(0)])
        total = both.T @ both

        def difference(part, total=total, rows=len(both)):  # noqa: B008
            inner = part.T @ part
            return inner / len(part) - (total - inner) / (rows - len(part))

        observed.append(difference(both[: len(first)]))
        orders = (torch.randperm(len(both), generator=generator, device=rows.device) for _ in range(PERMUTATIONS))
        permuted.append(torch.stack([difference(both[order[: len(first)]]) for order in orders]))
    differences, draws = torch.stack(observed), torch.stack(permuted, 1)  # (classes, ...), (permutations, classes, ...)
    directions = torch.linalg.eigh((differences @ differences).sum(0))[1].flip(-1)
    p_values = []
    for rank in range(min(MOST, len(directions))):
        rest = directions[:, rank:]
        own, others = (rest.T @ each @ rest for each in (differences, draws))
        largest, drawn = (torch.linalg.eigvalsh((each @ each).sum(-3))[..., -1] for each in (own, others))
        p_values.append((1 + int((drawn >= largest).sum())) / (1 + PERMUTATIONS))
        if p_values[-1] >= level:
            break
    return directions, p_values, sum(value < level for value in p_values)


def whitened(features, labels, environments):
    """(rows, components): the components that `discover` compares, of covariance 1 within classes and environments."""
    components = find_variation(device_moments(features, labels, environments)).components
    centre, directions = (torch.from_numpy(each).to(features) for each in (components.centre, components.directions))
    rows = (features - centre) @ directions
    cells = (2 * environments + labels).long()
    means = torch.stack([rows[cells == cell].mean(0) for cell in range(4)])
    residuals = rows - means[cells]
    values, vectors = torch.linalg.eigh(residuals.T @ residuals / len(rows))
    return rows @ (vectors / values.sqrt()) @ vectors.T


def variances_of_features(problem, network, settings, found):
    """For each seed what variances show in the last hidden layer, beside what means show.

    The number of directions, the p-value of the first, the share of rows in which two groups are the colours, and the
    p-value of the test that no variances vary among rows of the same group of `found`. Scores along the directions are
    rotated as `discover` rotates them, and the one whose groups are closest to the colours counts.
    """
    parts = (problem.train, problem.held_out)
    environments = torch.cat([halves(rows.labels.shape[1]) for rows in parts]).to(problem.train.labels)
    about = {"agreement": [], "directions": [], "p_value": [], "p_value_within": []}
    with threadpool_limits(limits=1, user_api="blas"):
        for seed, setting in enumerate(settings):
            features = torch.cat([features_of(network, rows.inputs, seed, int(setting)) for rows in parts])
            labels = torch.cat([rows.labels[seed] for rows in parts])
            groups = torch.cat([found.groups[seed], found.held_out_groups[seed]])
            cells = 2 * environments + labels
            rows = whitened(features, labels, environments)
            directions, p_values, count = varying_variances(rows, cells)
            scores = (rows @ directions[:, : max(count, 1)]).cpu().numpy()
            attributes = [group_scores(column, 2) for column in (scores @ bimodal_rotation(scores)).T]
            colours = torch.cat([each.attribute[seed] for each in parts]).cpu().numpy()
            agreements = [float(np.mean(each == colours)) for each in attributes]
            within = []
            for same in (groups == code for code in groups.unique()):
                own = whitened(features[same], labels[same], environments.to(same.device)[same])
                within.append(varying_variances(own, cells[same])[1][0])
            about["agreement"].append(round(max(max(each, 1 - each) for each in agreements), 5))
            about["directions"].append(count)
            about["p_value"].append(p_values[0])
            about["p_value_within"].append(min(1.0, len(within) * min(within)))  # the smaller of two counts twice
    return about


# The trials on one problem, as they come; what is finished is left out.


def run_trials(problem, steps, finished=()):
    """(trial, results) of each trial that is not finished."""
    left = set(PROTOCOL).difference(finished)
    if left.intersection((*OF_POOLED, "pooled")):
        snapshots = tuple(range(2 * SNAPSHOT_EVERY, steps + 1, SNAPSHOT_EVERY)) or (steps,)
        pooled = train_on_mnist(POOLED, problem, mean_accuracy, steps=steps, snapshots=snapshots)
        best = pooled.tried.best
        found = discover_attribute(problem, pooled.best, best)
    if left.intersection(OF_POOLED):
        tried = without_attribute(problem, found, steps)
        is_constant = np.array([each["schedule"] == "constant" for each in tried.settings])
        constant, decaying = only(tried, is_constant), only(tried, ~is_constant)
        heads = rounded_heads(problem, pooled.snapshots, POOLED.settings)
        yield from zip(OF_POOLED, (chosen_results(constant), chosen_results(decaying), heads), strict=True)
    longer = max(AVERAGED, int(LONGER * steps))
    if left.intersection(IN_TURN):
        yield from zip(IN_TURN, in_turn(problem, longer), strict=True)
    if AMPLIFIED in left:
        grid = {"amplification": AMPLIFICATIONS} | repeated(len(AMPLIFICATIONS), step_size=1.0, weight_decay=0.0)
        method = ImageMethod(amplified, grid, sgd=True)
        trained = train_on_mnist(method, problem, worst_environment, steps=longer)
        yield AMPLIFIED, chosen_results(trained.tried)
    if "pooled" in left:
        variances = variances_of_features(problem, pooled.best, best, found)
        about = {"means": found.about, "variances": variances}
        yield "pooled", chosen_results(pooled.tried) | {"discovery": about}


def in_turn(problem, steps):
    """One environment a step: with constant, growing and falling step sizes, and heads."""
    snapshots = {}
    for name, sizes, last in (
        ("constant", CONSTANT_SIZES, 1.0),
        ("growing", SMALL_SIZES, RANGE),
        ("falling", tuple(RANGE * size for size in SMALL_SIZES), 1 / RANGE),
    ):
        method = ImageMethod(one_in_turn, {"step_size": sizes} | repeated(len(sizes), weight_decay=0.0), sgd=True)
        settings = {"steps": steps, "snapshots": (steps,), "schedule": linear(last, steps)}
        trained = train_on_mnist(method, problem, worst_environment, **settings)
        snapshots[name] = trained.snapshots, method.settings
        yield chosen_results(trained.tried)
    yield rounded_heads(problem, *snapshots["constant"])


def without_attribute(problem, found, steps):
    """Trained by offsets and with dropout, with a constant step size and with falling ones, by name."""
    schedules = {
        "constant": lambda step: 1.0,
        "linear": falling(steps),
        "cosine": falling(steps, cosine=True),
        "short cosine": falling(steps // 2, cosine=True),
    }
    method = ImageMethod(mean_risk, repeated(1, weight_decay=DECAY), dropout=DROPOUT)
    _, offsets = adjustment("offsets", problem.train.labels, found.groups, found.train)
    rule = weighted_by(found.held_out)
    parts = []
    for name, schedule in schedules.items():
        settings = {"steps": steps, "offsets": offsets, "row_score": log_likelihood, "schedule": schedule}
        tried = train_on_mnist(method, problem, rule, **settings).tried
        parts.append(tried._replace(settings=({"schedule": name} | tried.settings[0],)))
    return together(parts)


def rounded_heads(problem, snapshots, settings):
    """The results of `fit_heads`, for the file."""
    found = fit_heads(problem.held_out, problem.test, snapshots, settings)
    return {name: np.round(values, 5).tolist() for name, values in found.items()}


def repeated(count, **values):
    """Settings that are the same in all networks."""
    return {name: (value,) * count for name, value in values.items()}


def main(arguments=None):
    """Run the trials and write them as JSON; with a file that exists, what it lacks."""
    about = "Coloured MNIST: further ideas, each against what it would replace."
    record(about, PROTOCOL, run_trials, arguments, seeds=SEEDS)


if __name__ == "__main__":
    main()
