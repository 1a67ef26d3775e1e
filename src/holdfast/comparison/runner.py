"""Runs methods over tests, and reuses what was computed before."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import jax

from holdfast.comparison.blocks import Block, BlockCells
from holdfast.comparison.measures import Values
from holdfast.comparison.methods import METHODS, ComparedMethod
from holdfast.comparison.public_tests import PUBLIC_TESTS, PublicTest
from holdfast.comparison.recorded import recorded_error
from holdfast.comparison.results import CellIndex, Comparison
from holdfast.execution.engines.base import Engine
from holdfast.execution.engines.threads import ThreadEngine
from holdfast.execution.store import FOLDER, LOST, RECORDS, DamagedError, Store
from holdfast.execution.work import Report, compute

Named = TypeVar("Named", PublicTest, ComparedMethod)


def compare(
    tests: Sequence[str | PublicTest] = (),
    methods: Sequence[str | ComparedMethod] = (),
    *,
    data_seeds: int | None = None,
    out: Path,
    recompute: bool = False,
    only_cached: bool = False,
    side_by_side: int | None = None,
    engine: Engine | None = None,
    report: Report | None = None,
) -> Comparison:
    """Run methods over tests.

    Args:
        tests: keys of `PUBLIC_TESTS`, or your own; all public ones if none is given.
        methods: keys of `METHODS`, or your own; all of the package if none is given.
        data_seeds: seeds of each test instead of the number it asks for; real tables have no more than their folds.
        out: the folder in which results are cached; on a cluster, one that all workers see.
        recompute: compute also the cells that come with the package, see `holdfast.comparison.recorded`.
        only_cached: compute nothing, and return what was computed so far.
        side_by_side: seeds of a test that a method with many draws fits at once; by default one on a CPU, and all on
            an accelerator, which one would leave idle.
        engine: where cells are computed; by default a thread for each core.
        report: is called now and then with how far the work is.

    Example:
        >>> import tempfile
        >>> from functools import partial
        >>> from holdfast.datasets import toy_dataset
        >>> small = PublicTest("small", "few rows", "regression", 3, partial(toy_dataset, 1.0, 0.5, samples=100))
        >>> comparison = compare([small], ["least_squares", "eills"], out=Path(tempfile.mkdtemp()))
        >>> comparison.ranking("small", "error").leaders
        ['eills']
    """
    chosen_tests, chosen_methods = _chosen("tests", tests, PUBLIC_TESTS), _chosen("methods", methods, METHODS)
    for name, count in (("data_seeds", data_seeds), ("side_by_side", side_by_side)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, got the file {str(out)!r}")
    store = Store((out / FOLDER / "cells").absolute(), RECORDS)  # workers have working directories of their own
    blocks = [
        Block(test, method, (seed,))
        for test in chosen_tests
        for seed in range(test.seed_count(data_seeds))
        for method in chosen_methods
        if applies(method, test)
    ]
    store.prepare(key for block in blocks for key in block.keys)
    found: dict[CellIndex, Values] = {}
    for block in blocks:
        values = (None if recompute else _recorded(block)) or _cached(store, block)
        if values is not None:
            found[block.indices[0]] = values
    failures: dict[CellIndex, str] = {}
    if not only_cached:
        width = side_by_side or (1 if jax.default_backend() == "cpu" else max(len(blocks), 1))
        missing = _side_by_side([block for block in blocks if block.indices[0] not in found], width)
        with store.scratch() as scratch:
            for where, lasting in ((store, True), (scratch, False)):
                work = BlockCells(where, {block.name: block for block in missing if block.lasting is lasting})
                if work.blocks:
                    _compute(work, engine or ThreadEngine(), report, found, failures)
    cells: dict[tuple[str, str], dict[int, Values]] = {}
    for block in blocks:
        for test, method, seed in block.indices:
            if CellIndex(test, method, seed) in found:
                cells.setdefault((test, method), {})[seed] = found[CellIndex(test, method, seed)]
    return Comparison(chosen_tests, chosen_methods, cells, failures)


def applies(method: ComparedMethod, test: PublicTest) -> bool:
    """Whether a method is run on a test: its kind and size fit, and an oracle has something to know.

    Example:
        >>> applies(METHODS["oracle"], PUBLIC_TESTS["Example1"]), applies(METHODS["oracle"], PUBLIC_TESTS["Exam"])
        (True, False)
    """
    if method.groups is not None and test.group.name not in method.groups:
        return False
    sizes = ((test.features, method.most_features), (test.environments, method.most_environments))
    if any(size is not None and most is not None and size > most for size, most in sizes):
        return False
    return test.kind in method.kinds and not (method.oracle and test.folds)


def _chosen(argument: str, asked: Sequence[str | Named], known: Mapping[str, Named]) -> tuple[Named, ...]:
    chosen: dict[str, Named] = {}
    for each in asked or known.values():
        if isinstance(each, str):
            if each not in known:
                raise ValueError(f"{argument} must be among {', '.join(known)}, got {each!r}")
            each = known[each]
        if chosen.setdefault(each.name, each) is not each:
            raise ValueError(f"{argument} must have different names, got two of the name {each.name!r}")
    return tuple(chosen.values())


def _side_by_side(blocks: Sequence[Block], width: int) -> list[Block]:
    """Blocks of single seeds, put together where a method fits several at once."""
    together: dict[tuple[str, str, str], list[Block]] = {}
    for block in blocks:
        name = block.name if block.method.fit_all is None else ""
        together.setdefault((block.test.name, block.method.name, name), []).append(block)
    return [
        group[0]._replace(seeds=tuple(seed for block in group[begin : begin + width] for seed in block.seeds))
        for group in together.values()
        for begin in range(0, len(group), width)
    ]


def _compute(
    work: BlockCells,
    engine: Engine,
    report: Report | None,
    found: dict[CellIndex, Values],
    failures: dict[CellIndex, str],
) -> None:
    """Compute blocks and add what they give to what was found, and to what failed."""
    outcome = compute(work, work.compute, engine, report, total=len(work.blocks))
    reasons = {str(name): reason for reason, names in outcome.failures.items() for name in names}
    for name, block in work.blocks.items():
        for index, key in zip(block.indices, block.keys, strict=True):
            values = None if name in reasons else work.store.load(key)
            if values is None:
                failures[index] = reasons.get(name, LOST)
            else:
                found[index] = values


def _recorded(block: Block) -> Values | None:
    test, method, (seed,) = block
    # An object of the user may have the name of one that was recorded.
    if PUBLIC_TESTS.get(test.name) is not test or METHODS.get(method.name) is not method:
        return None
    error = recorded_error(test.name, method.name, seed)
    return None if error is None else {"error": error, "choice": "recorded"}


def _cached(store: Store[Values], block: Block) -> Values | None:
    (key,) = block.keys
    try:
        return store.load(key) if block.lasting else None
    except DamagedError:
        return None  # it is deleted, and computed again
