"""The kit of the studies: claims, ranges, settings in words, progress, and figures with legends."""

from dataclasses import replace

import numpy as np
import pytest

from holdfast import Settings
from holdfast.completion.settings import CompletionSettings
from holdfast.core.statistics import Estimate, exact_proportion, proportion
from holdfast.plots import new_figure
from holdfast_studies.claims import AS_STATED, Position
from holdfast_studies.kit.drawing import draw_map, finished
from holdfast_studies.kit.runs import tracked
from holdfast_studies.kit.study import ClaimBuilder, above, around, below, exact_share, over, plain, share, summary


def test_a_claim_has_the_common_fields_but_for_those_that_it_names():
    claim = ClaimBuilder("figure-9", "figure 9", "M=6", AS_STATED)
    common = claim("grows", "It grows.", Estimate(2.0, 1.5, 2.5), above(1.0), "as ever")
    assert (common.id, common.source, common.settings, common.conditions) == (
        "figure-9-grows",
        "figure 9",
        "M=6",
        AS_STATED,
    )
    own = claim("falls", "It falls.", Estimate(2.0, 1.5, 2.5), below(1.0), "", settings="", expected=Position.OUTSIDE)
    assert (own.settings, own.source, own.expected) == ("", "figure 9", Position.OUTSIDE)
    assert not own.broken
    assert ClaimBuilder("")("eq-7", "", Estimate(0.0, 0.0, 0.0), below(1.0), "").id == "eq-7"


def test_ranges_and_ratios():
    assert around(5.0, 0.25) == (3.75, 6.25)
    assert over(Estimate(6.0, 3.0, 9.0), 3.0) == (2.0, 1.0, 3.0)


def test_shares_are_those_of_their_flags():
    flags = np.arange(20).reshape(4, 5) % 4 == 0
    assert share(flags) == proportion(5, 20)
    assert exact_share(flags) == exact_proportion(5, 20)
    assert exact_share([])[1:] == (0.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 1e-3, 7e-6, 2.5e-24, 0.05, 1.0, 8000, 12_000, 2_000_000])
def test_numbers_in_words_are_the_numbers(value):
    assert float(plain(value).replace(",", "")) == value


def test_settings_in_words_leave_out_what_is_swept_and_what_does_not_count():
    settings = Settings(dimension=30, invariant_rank=3, spurious_rank=2, step_size=(0.01, 0.1), batch_size=20_000)
    words = "d=30, r1=3, r2=2, m=20,000, s=1, M=6, alpha=1e-3, T=200, symmetric measurements, exact law"
    assert summary(settings) == words
    assert summary(replace(settings, oracle="population", ensemble="gaussian")).endswith("T=200, infinite batches")
    assert "lambda=0.01" in summary(CompletionSettings(ridge=0.01), "ours")


@pytest.mark.parametrize("total", [None, 3])
def test_progress_is_reported_when_an_item_is_done(total):
    seen = []
    for item in tracked(iter("abc") if total else "abc", lambda *report: seen.append(report), total):
        seen.append(item)
    assert seen == ["a", (1, 3), "b", (2, 3), "c", (3, 3)]
    assert list(tracked("ab", None)) == ["a", "b"]


def test_a_finished_figure_has_legends_where_there_is_something_to_explain():
    figure, (left, middle, right) = new_figure(3, "Signals")
    left.plot([0, 1], label="spurious")
    draw_map(middle, [0, 1], [0, 1], np.eye(2), "share")
    right.plot([0, 1], label="invariant")
    right.legend(title="its own")
    own = right.get_legend()
    assert finished(figure) is figure
    assert [axes.get_legend() is not None for axes in figure.axes] == [True, False, True, False]
    assert right.get_legend() is own
    assert figure.axes[-1].get_ylabel() == "share"
