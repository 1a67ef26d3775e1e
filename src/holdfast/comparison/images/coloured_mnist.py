"""Coloured MNIST: every method under one protocol, settings chosen on held-out rows of the training environments.

    python -m holdfast.comparison.images.coloured_mnist --data FOLDER --out coloured_mnist.json

FOLDER holds the IDX files of MNIST. The rules, written down before any result was seen:

- 50,000 training images of 14 x 14 pixels and 2 colours, label noise 0.25, a fifth of them held out; 10,000 test images
  in which the colour agrees with the label in 0.1. Perceptron 392-256-256-1, full gradients, Adam at 0.001.
- pooled: mean accuracy on held-out rows chooses step and weight decay.
- in turn (HeteroSGD) and pooled SGD, weights averaged over 200 steps: worst environment chooses step and step size.
- IRM, V-REx, Group DRO: worst environment on held-out rows chooses step and settings; beside it, the same at the last
  step, since that rule prefers steps before the penalty acts; and the best on test at the last step, as published.
- head: on held-out rows of the pooled network, at that step and weight decay whose head has the largest margin.
- discover and balance: the pooled network finds the attribute, a fresh network is trained on balanced rows; accuracy on
  held-out rows by the same weights chooses step and weight decay.
- without colour: pooled on grey images, the best that can be expected.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from holdfast.comparison.images.batched_networks import BatchedNetwork, hidden
from holdfast.comparison.images.image_methods import (
    AVERAGED,
    ImageMethod,
    ImageProblem,
    ImageRows,
    TrainedImages,
    group_dro,
    irm,
    mean_risk,
    one_in_turn,
    train_method,
    v_rex,
)
from holdfast.core.statistics import mean_interval
from holdfast.core.writing import write_text
from holdfast.datasets.coloured_digits import coloured_digits
from holdfast.datasets.digit_images import DigitImages, read_mnist
from holdfast.embeddings.attributes import group_scores
from holdfast.embeddings.balancing import balance_rows
from holdfast.embeddings.linear_head import LinearHead, invariant_head_of
from holdfast.embeddings.variation import find_variation
from holdfast.estimators.class_moments import collect_class_moments
from holdfast.estimators.grouping import Grouping

PROBLEMS = {"0.8 and 0.9": (0.8, 0.9), "0.9 and 0.3": (0.9, 0.3)}
TEST_AGREEMENT = 0.1
TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
HELD_OUT = 0.2
WEIGHT_DECAYS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3)
# The value of the authors of IRM, rounded, for the methods that they compare.
PUBLISHED_DECAY = 1e-3
PENALTIES = (1e2, 1e3, 1e4, 1e5)
ANNEAL = 200
STEP_SIZES = (0.1, 0.3, 1.0, 2.0)
SNAPSHOT_EVERY = 100
# SGD takes more steps than Adam.
SGD_STEPS = 5 / 3


def _same(value: float, like: Sequence[float]) -> tuple[float, ...]:
    return (value,) * len(like)


PENALISED = {
    "penalty": PENALTIES,
    "anneal": _same(float(ANNEAL), PENALTIES),
    "weight_decay": _same(PUBLISHED_DECAY, PENALTIES),
}
SGD = {"step_size": STEP_SIZES, "weight_decay": _same(0.0, STEP_SIZES)}
GROWTH = (0.01, 0.1, 1.0)
POOLED = ImageMethod(mean_risk, {"weight_decay": WEIGHT_DECAYS})
METHODS = {
    "pooled SGD, averaged": ImageMethod(mean_risk, SGD, sgd=True),
    "in turn, averaged": ImageMethod(one_in_turn, SGD, sgd=True),
    "IRM": ImageMethod(irm, PENALISED),
    "V-REx": ImageMethod(v_rex, PENALISED),
    "Group DRO": ImageMethod(group_dro, {"growth": GROWTH, "weight_decay": _same(PUBLISHED_DECAY, GROWTH)}),
}


def make_problem(source: DigitImages, agreements: Sequence[float], seeds: Sequence[int], device: str) -> ImageProblem:
    """The rows of all seeds, those of the first environment first."""
    training = min(TRAINING_IMAGES, len(source.digits) * 5 // 6) // 2 * 2  # two environments of equal size
    test = min(TEST_IMAGES, len(source.digits) - training) // 2 * 2
    parts: list[list[ImageRows]] = [[], [], []]
    for seed in seeds:
        seen = DigitImages(source.images[:training], source.digits[:training])
        rows = coloured_digits(agreements, seed=seed, source=seen)
        unseen = DigitImages(source.images[training : training + test], source.digits[training : training + test])
        # a seed of its own, so that the noise of the test rows does not repeat that of the training rows
        other = coloured_digits([TEST_AGREEMENT], seed=1_000_000 + seed, source=unseen)
        aside = np.arange(training) < 2 * int(HELD_OUT * training / 2)
        for found, part, chosen in zip(parts, (rows, rows, other), (~aside, aside, None), strict=True):
            order = np.arange(len(part.labels)) if chosen is None else np.flatnonzero(chosen)
            order = order[np.argsort(part.environments[order], kind="stable")]
            flat = part.images[order].reshape(len(order), -1)
            found.append(
                ImageRows(*(torch.from_numpy(np.asarray(a)) for a in (flat, part.labels[order], part.attribute[order])))
            )
    train, held_out, tested = (
        ImageRows(*(torch.stack(column).to(device, torch.float32) for column in zip(*part, strict=True)))
        for part in parts
    )
    return ImageProblem(train, held_out, tested, tuple(seeds))


def mean_accuracy(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.mean(-1)


def worst_environment(right: torch.Tensor) -> torch.Tensor:
    """(S, C)."""
    return right.unflatten(-1, (2, -1)).mean(-1).amin(-1)


def weighted_by(weights: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """The accuracy by weights of the rows of each seed."""
    return lambda right: (right * weights[:, None]).sum(-1) / weights.sum(-1)[:, None]


def _report(method: ImageMethod, trained: TrainedImages) -> dict[str, Any]:
    """For each seed the setting of the best score, and what it does on test rows."""

    def chosen(scores: np.ndarray, *values: np.ndarray) -> list[np.ndarray]:
        best = np.argmax(scores, axis=1)[:, None]
        return [best[:, 0], *(np.take_along_axis(each, best, 1)[:, 0] for each in values)]

    best, score, step, test = chosen(trained.score, trained.score, trained.step, trained.test)
    last, _, last_test = chosen(trained.last_score, trained.last_score, trained.last_test)
    settings = [{name: values[number] for name, values in method.grid.items()} for number in best]
    return {
        "test": test.tolist(),
        "score": score.tolist(),
        "step": step.tolist(),
        "settings": settings,
        "test_at_last_step": last_test.tolist(),
        "settings_at_last_step": [{name: values[number] for name, values in method.grid.items()} for number in last],
        "best_on_test_at_last_step": trained.last_test.max(1).tolist(),
        "test_by_setting_at_last_step": trained.last_test.mean(0).tolist(),
        "test_by_setting": trained.test.mean(0).tolist(),
    }


def _features(network: BatchedNetwork, inputs: torch.Tensor, seed: int, setting: int) -> np.ndarray:
    one = BatchedNetwork(
        tuple(each[seed : seed + 1, setting : setting + 1] for each in network.weights),
        tuple(each[seed : seed + 1, setting : setting + 1] for each in network.biases),
    )
    with torch.no_grad():
        return hidden(one, inputs[seed : seed + 1])[0, 0].double().cpu().numpy()


def _moments(features: np.ndarray, labels: np.ndarray, environments: np.ndarray) -> Any:
    return collect_class_moments(features, labels, Grouping(environments, ["first", "second"]))


def _halves(rows: int) -> np.ndarray:
    return np.arange(rows) // (rows // 2)


def _labels(rows: ImageRows, seed: int) -> np.ndarray:
    return rows.labels[seed].cpu().numpy().astype(int)


def fit_heads(problem: ImageProblem, snapshots: dict[int, BatchedNetwork]) -> dict[str, Any]:
    """For each seed the head with the largest margin on held-out rows, over steps and weight decays."""
    found: list[dict[str, Any]] = []
    for seed in range(len(problem.seeds)):
        labels, tested = _labels(problem.held_out, seed), _labels(problem.test, seed)
        tried: list[tuple[LinearHead, float, dict[str, Any]]] = []
        for step, network in snapshots.items():
            for setting, decay in enumerate(WEIGHT_DECAYS):
                features = _features(network, problem.held_out.inputs, seed, setting)
                head = invariant_head_of(_moments(features, labels, _halves(len(labels))))
                new = _features(network, problem.test.inputs, seed, setting)
                scores = new @ np.diff(head.coefficients, axis=0)[0] + np.diff(head.intercepts)[0]
                about = {"step": step, "weight_decay": decay, "components": head.quality.components}
                tried.append((head, float(np.mean((scores > 0) == tested)), about))
        head, test, about = max(tried, key=lambda each: (each[0].quality.varying, each[0].quality.margin))
        quality = head.quality
        found.append(
            about
            | {"test": test, "margin": quality.margin, "varying": quality.varying, "share": head.variation.share}
            | {"tried": [(each.quality.margin, accuracy) for each, accuracy, _ in tried]}
        )
    keys = found[0].keys()
    return {key: [each[key] for each in found] for key in keys}


def discover_attribute(problem: ImageProblem, network: BatchedNetwork, settings: np.ndarray) -> dict[str, Any]:
    """For each seed the discovered attribute of all rows, and weights that balance it."""
    parts = (problem.train, problem.held_out)
    weights: list[list[np.ndarray]] = [[], []]
    about: dict[str, list[Any]] = {"agreement": [], "directions": [], "significance": [], "share": []}
    for seed, setting in enumerate(settings):
        features = [_features(network, rows.inputs, seed, int(setting)) for rows in parts]
        labels = [_labels(rows, seed) for rows in parts]
        environments = np.concatenate([_halves(len(each)) for each in labels])
        found = find_variation(_moments(np.concatenate(features), np.concatenate(labels), environments))
        about["directions"].append(found.count)
        about["significance"].append(float(found.p_values[0]))
        about["share"].append(found.share)
        if found.count == 0:
            about["agreement"].append(0.5)
            balanced = np.ones(len(environments))
        else:
            scores = (np.concatenate(features) - found.components.centre) @ found.loadings[:, 0]
            groups = group_scores(scores, 2)
            colours = np.concatenate([rows.attribute[seed].cpu().numpy() for rows in parts])
            about["agreement"].append(float(max(np.mean(groups == colours), np.mean(groups != colours))))
            balanced = balance_rows(np.concatenate(labels), groups).weights
        for part, own in zip(weights, np.split(balanced, [len(labels[0])]), strict=True):
            part.append(own)
    device = problem.train.inputs.device
    train, held_out = (torch.from_numpy(np.stack(part)).to(device, torch.float32) for part in weights)
    return {"about": about, "train": train, "held_out": held_out}


def run_problem(problem: ImageProblem, steps: int) -> dict[str, Any]:
    """All methods on one problem."""
    found: dict[str, Any] = {}
    snapshots = tuple(range(SNAPSHOT_EVERY, steps + 1, SNAPSHOT_EVERY)) or (steps,)
    pooled = train_method(POOLED, problem, mean_accuracy, steps=steps, snapshots=snapshots)
    found["pooled"] = _report(POOLED, pooled)
    for name, method in METHODS.items():
        longer = max(AVERAGED, int(SGD_STEPS * steps)) if method.sgd else steps
        found[name] = _report(method, train_method(method, problem, worst_environment, steps=longer))
    found["head"] = fit_heads(problem, pooled.snapshots)
    discovered = discover_attribute(problem, pooled.best, np.argmax(pooled.score, axis=1))
    balanced = train_method(
        POOLED, problem, weighted_by(discovered["held_out"]), steps=steps, weights=discovered["train"]
    )
    found["discover and balance"] = _report(POOLED, balanced) | {"discovery": discovered["about"]}
    grey = problem._replace(train=_grey(problem.train), held_out=_grey(problem.held_out), test=_grey(problem.test))
    found["without colour"] = _report(POOLED, train_method(POOLED, grey, mean_accuracy, steps=steps))
    for each in found.values():
        each["mean"] = list(mean_interval(np.array(each["test"])))
    return found


def _grey(rows: ImageRows) -> ImageRows:
    """Both channels hold the sum of the colours."""
    total = rows.inputs.unflatten(-1, (2, -1)).sum(-2)
    return rows._replace(inputs=torch.cat([total, total], -1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison and write it as JSON."""
    parser = argparse.ArgumentParser(description="Coloured MNIST: every method under one protocol.")
    parser.add_argument("--data", required=True, help="folder with the IDX files of MNIST")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--images", type=int, default=60_000, help="images to use, 5/6 of them for training")
    options = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    digits = read_mnist(options.data)
    # every second pixel, as in the code of IRM
    source = DigitImages(digits.images[: options.images, ::2, ::2], digits.digits[: options.images])
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    began, results = time.monotonic(), {}
    for name, agreements in PROBLEMS.items():
        results[name] = run_problem(make_problem(source, agreements, seeds, device), options.steps)
        for method, each in results[name].items():
            print(
                f"{name}  {method:24} {each['mean'][0]:.3f} [{each['mean'][1]:.3f}, {each['mean'][2]:.3f}]", flush=True
            )
    about = {
        "seeds": list(seeds),
        "steps": options.steps,
        "images": len(source.digits),
        "device": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seconds": round(time.monotonic() - began, 1),
    }
    write_text(Path(options.out), json.dumps({"about": about, "problems": results}, indent=1))


if __name__ == "__main__":
    main()
