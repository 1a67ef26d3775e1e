"""The sizes that the claims of a quick look name are those of runs that were made."""

import importlib
import re

import jax
import numpy as np
import pytest

from holdfast_studies import load

# Numbers such as 2000 or 2,000 after the name of what they count, as claims and answers write them.
DIMENSION = re.compile(r"\bd ?= ?([\d,]*\d)")
BATCH_SIZE = re.compile(r"\bm ?= ?([\d,]*\d)\b(?! ?d)")
STEPS = re.compile(r"\bT ?= ?([\d,]*\d)")
STEPS_IN_WORDS = re.compile(r"(?:[Aa]fter|with|,) ([\d,]*\d) steps")
# Those whose quick look has other sizes than the full run.
SHORTENED = (
    "algorithm_4", "collapse", "continuum", "entering", "factors", "jump_rates", "jump_recovery", "jumps",
    "number_of_environments", "optimizers", "order", "order_limits", "theorem_2",
)  # fmt: skip


def named(pattern, text):
    """The numbers that a text names."""
    return {int(number.replace(",", "")) for number in pattern.findall(text)}


def whole_numbers(parameters):
    """The whole numbers among the parameters of runs."""
    leaves = (np.asarray(leaf, float).ravel() for leaf in jax.tree.leaves(parameters))
    return {int(value) for leaf in leaves for value in leaf[np.isfinite(leaf)].tolist() if value.is_integer()}


def test_named_numbers_are_found():
    text = "d=100, m=8,000, T = 200; offshoots with 20,000 steps, m=400 d"
    assert named(DIMENSION, text) == {100}
    assert named(BATCH_SIZE, text) == {8000}
    assert named(STEPS, text) == {200}
    assert named(STEPS_IN_WORDS, text) == {20000}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTENED)
def test_claims_of_a_quick_look_name_what_was_run(name, monkeypatch):
    """Texts are true of what was run, or of the theory of a product (`theory.order_exponents`), which has no T."""
    loop = importlib.import_module("holdfast.core.run")
    sizes, numbers, lengths = set(), set(), set()
    begin, go = loop._Slab.__init__, loop._Slab.to

    def started(slab, chunk, form, program, shape):
        begin(slab, chunk, form, program, shape)
        build, _, _, parameters, _ = program
        sizes.update(size for leaf in jax.tree.leaves(slab.carry.state) for size in leaf.shape)
        # A batch size is a parameter of the runs, or a setting of the program.
        numbers.update(whole_numbers(parameters) | {int(number) for number in re.findall(r"\b\d+\b", repr(build))})

    def advanced(slab, first, last):
        lengths.add(last)
        return go(slab, first, last)

    monkeypatch.setattr(loop._Slab, "__init__", started)
    monkeypatch.setattr(loop._Slab, "to", advanced)
    experiment = load(name)
    data = experiment.simulate(experiment.effort(quick=True), None)
    texts = [experiment.answer(data)] if experiment.answer else []
    for claim in experiment.claims(data):
        texts += [claim.settings, *claim.conditions.chosen]
    for text in texts:
        assert named(DIMENSION, text) <= sizes, text
        assert named(BATCH_SIZE, text) <= numbers, text
        assert named(STEPS, text) | named(STEPS_IN_WORDS, text) <= lengths, text
