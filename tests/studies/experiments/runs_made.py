"""What a quick look has run, and whether the texts of its claims name it."""

import importlib
import re

import jax
import numpy as np

# Numbers such as 2000 or 2,000 after the name of what they count, as claims and answers write them.
DIMENSION = re.compile(r"\bd ?= ?([\d,]*\d)")
BATCH_SIZE = re.compile(r"\bm ?= ?([\d,]*\d)\b(?! ?d)")
STEPS = re.compile(r"\bT ?= ?([\d,]*\d)")
STEPS_IN_WORDS = re.compile(r"(?:[Aa]fter|with|,) ([\d,]*\d) steps")


def named(pattern, text):
    """The numbers that a text names."""
    return {int(number.replace(",", "")) for number in pattern.findall(text)}


def whole_numbers(parameters):
    """The whole numbers among the parameters of runs."""
    leaves = (np.asarray(leaf, float).ravel() for leaf in jax.tree.leaves(parameters))
    return {int(value) for leaf in leaves for value in leaf[np.isfinite(leaf)].tolist() if value.is_integer()}


class RunsMade:
    """Sizes of states, whole numbers among parameters and settings, and numbers of steps of all runs from now on."""

    def __init__(self, monkeypatch):
        self._sizes, self._numbers, self._lengths = set(), set(), set()
        loop = importlib.import_module("holdfast.core.run")
        begin, go = loop._Slab.__init__, loop._Slab.to

        def started(slab, chunk, form, program, shape):
            begin(slab, chunk, form, program, shape)
            build, _, _, parameters, _ = program
            self._sizes.update(size for leaf in jax.tree.leaves(slab.carry.state) for size in leaf.shape)
            # A batch size is a parameter of the runs, or a setting of the program.
            settings = {int(number) for number in re.findall(r"\b\d+\b", repr(build))}
            self._numbers.update(whole_numbers(parameters) | settings)

        def advanced(slab, first, last):
            self._lengths.add(last)
            return go(slab, first, last)

        monkeypatch.setattr(loop._Slab, "__init__", started)
        monkeypatch.setattr(loop._Slab, "to", advanced)

    def check_texts(self, experiment, data):
        """Texts are true of what was run, or of the theory of a product (`theory.order_exponents`), which has no T."""
        texts = [experiment.answer(data)] if experiment.answer else []
        for claim in experiment.claims(data):
            texts += [claim.settings, *claim.conditions.chosen]
        for text in texts:
            assert named(DIMENSION, text) <= self._sizes, text
            assert named(BATCH_SIZE, text) <= self._numbers, text
            assert named(STEPS, text) | named(STEPS_IN_WORDS, text) <= self._lengths, text
