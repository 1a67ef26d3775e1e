"""The commands behind recorded results on coloured MNIST: methods are written as they come, and a file is completed."""

import argparse
import json
import platform
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from holdfast.core.statistics import mean_interval
from holdfast.core.writing import write_text
from holdfast_studies.images.coloured_problem import make_problem, read_small_mnist
from holdfast_studies.images.image_methods import Candidates, ImageProblem

PROBLEMS = {"0.8 and 0.9": (0.8, 0.9), "0.9 and 0.3": (0.9, 0.3)}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def recording_parser(description: str, *, seeds: Sequence[int], steps: int, images: int) -> argparse.ArgumentParser:
    """The options of a command that records; the arguments are the defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, help="folder with the IDX files of MNIST")
    parser.add_argument("--out", required=True, type=Path, help="JSON file to write")
    parser.add_argument("--seeds", type=int, default=len(seeds))
    parser.add_argument("--first-seed", type=int, default=seeds[0])
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--images", type=int, default=images, help="images to use, 5/6 of them for training")
    return parser


def about_session(began: float) -> dict[str, Any]:
    """Where a session computes: device, versions, and seconds since `began`.

    Example:
        >>> sorted(about_session(time.monotonic()))
        ['device', 'seconds', 'versions']
    """
    return {
        "device": torch.cuda.get_device_name() if DEVICE == "cuda" else platform.machine(),
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
        "seconds": round(time.monotonic() - began, 1),
    }


def together(parts: Sequence[Candidates]) -> Candidates:
    """Candidates of several trainings with the same seeds."""
    settings = tuple(setting for part in parts for setting in part.settings)
    arrays = zip(*(part[1:] for part in parts), strict=True)
    return Candidates(settings, *(np.concatenate(each, axis=1) for each in arrays))


def only(found: Candidates, wanted: Sequence[bool]) -> Candidates:
    """Some of the candidates: those whose settings are wanted."""
    chosen = np.array(wanted, bool)
    settings = tuple(setting for setting, take in zip(found.settings, wanted, strict=True) if take)
    return Candidates(settings, *(each[:, chosen] for each in found[1:]))


def chosen_results(found: Candidates) -> dict[str, Any]:
    """For each seed the setting of the best score, and what it does on test rows.

    Beside it, for methods that were published otherwise: the last step instead of the chosen one, with the setting of
    its best score, and with the setting that is best on test rows.
    """
    best, last = found.best, np.argmax(found.last_score, axis=1)
    return {
        "test": found.at(best, found.test).round(5).tolist(),
        "score": found.at(best, found.score).round(5).tolist(),
        "step": found.at(best, found.step).astype(int).tolist(),
        "settings": [found.settings[number] for number in best],
        "last_step": {
            "test": found.at(last, found.last_test).round(5).tolist(),
            "best_on_test": found.last_test.max(1).astype(float).round(5).tolist(),
        },
    }


def record(
    description: str,
    protocol: Sequence[str],
    run: Callable[[ImageProblem, int, Collection[str]], Iterator[tuple[str, dict[str, Any]]]],
    arguments: Sequence[str] | None = None,
    *,
    seeds: Sequence[int] = range(10),
) -> None:
    """Run methods on both problems and write their results as JSON; with a file that exists, what it lacks.

    Args:
        description: of the command.
        protocol: names of the methods.
        run: (problem, steps, methods that are finished) -> (method, results with the accuracies `test`), as they come.
        arguments: of the command line.
        seeds: by default, one after the other.
    """
    parser = recording_parser(f"{description} A file that exists is completed.", seeds=seeds, steps=600, images=60_000)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--limit", type=float, default=float("inf"), help="no further method after so many seconds")
    options = parser.parse_args(arguments)
    torch.backends.cuda.matmul.allow_tf32 = True
    source = read_small_mnist(options.data, options.images)
    chosen = range(options.first_seed, options.first_seed + options.seeds)
    settings = {"seeds": list(chosen), "images": len(source.digits), "steps": options.steps}
    out, began = options.out, time.monotonic()
    written: dict[str, Any] = {"settings": settings, "protocol": protocol, "sessions": [], "problems": {}}
    if out.exists():
        written |= json.loads(out.read_text(encoding="utf-8")) | {"protocol": protocol}
        if written["settings"] != settings:
            parser.error(f"--out must be a new file or one with the settings {settings}, got {written['settings']}")
    finished = {name: tuple(written["problems"].get(name, {})) for name in options.problems}
    written["sessions"].append({})
    for name in options.problems:
        if set(protocol) <= set(finished[name]):
            continue
        found = written["problems"].setdefault(name, {})
        problem = make_problem(source, PROBLEMS[name], chosen, DEVICE)
        for method, result in run(problem, options.steps, finished[name]):
            if method in finished[name]:
                continue
            found[method] = result
            written["sessions"][-1] = about_session(began)
            mean, seconds = mean_interval(result["test"]), time.monotonic() - began
            print(
                f"{seconds:4.0f} s  {name}  {method:40} {mean.value:.4f} [{mean.low:.4f}, {mean.high:.4f}]", flush=True
            )
            write_text(out, json.dumps(written) + "\n")
            if seconds > options.limit:
                return
