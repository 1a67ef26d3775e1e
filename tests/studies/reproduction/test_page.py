import numpy as np
import pytest
from markupsafe import escape

from holdfast.core.statistics import Estimate
from holdfast_studies.claims import AS_STATED, OUR_SETTINGS, Claim, Conditions, Verdict
from holdfast_studies.page import RecordedSection, Section, page

DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 662.4 302.4"><g id="axes_1"/></svg>'
VERSIONS = {"holdfast": "0.1.0", "jax": "0.10.2"}


MISSED = Conditions(missed=("eta is too large",))


def claim(name, value=0.95, conditions=AS_STATED, allowed=(0.9, np.inf), why="a <b> & c"):
    measured = Estimate(value, value - 0.01, value + 0.01)
    return Claim(name, "figure 3, left", f"Statement of {name}.", "d=100", measured, allowed, conditions, why)


def section(name, *claims, left_open=("The number of seeds.",)):
    return Section(name, f"title of {name}", f"About {name}.", 12, DRAWING, left_open, claims)


SECTIONS = (
    section("figure_3", claim("recovers"), claim("breaks", 0.1), claim("unknown", np.nan)),
    section("theorem_1", claim("seen", conditions=MISSED), claim("between", 0.9), left_open=()),
    section("theorem_2", claim("ours", conditions=OUR_SETTINGS), claim("not-seen", 0.1, MISSED), left_open=()),
    section("theorem_3", claim("not-ours", 0.1, OUR_SETTINGS), left_open=()),
)
NAMES = [claim.id for section in SECTIONS for claim in section.claims]


def test_every_figure_and_claim_is_on_the_page(parse_page):
    read = parse_page(page(SECTIONS, versions=VERSIONS))
    assert len(read.all("img")) == len(read.all("figure")) == len(SECTIONS)
    for name in NAMES:
        assert f"claim-{name}" in read.ids
        assert f"Statement of {name}." in read.text
        assert {"href": f"#claim-{name}"} in read.all("a")  # from the ledger
    verdicts = [each for each in read.all("span") if "verdict" in each.get("class", "")]
    assert len(verdicts) == 2 * len(NAMES)  # with the figure and in the ledger
    words = [claim.verdict for section in SECTIONS for claim in section.claims]
    assert set(words) == set(Verdict)
    assert "eta is too large" in read.text
    for verdict in words:  # as a word, never as a colour alone
        assert page(SECTIONS, versions=VERSIONS).count(f">{escape(verdict)}</span>") >= 2 * words.count(verdict)
    for text in ("Figure 3: title of figure_3", "About theorem_1.", "at least 0.9", "0.94 to 0.96", "a <b> & c"):
        assert text in read.text
    assert read.text.count("What is our choice") == 1
    assert "jax 0.10.2" in read.text


def test_the_page_stands_alone_and_its_links_lead_somewhere(parse_page):
    read = parse_page(page(SECTIONS, versions=VERSIONS, failures={"figure_9": "TypeError: <no>"}))
    read.assert_stands_alone("https://arxiv.org/abs/2403.01420", "comparison.html")
    assert all(image["alt"] for image in read.all("img"))


def test_recorded_results_are_on_the_page_and_not_counted(parse_page):
    rows = (("balance", "0.7 (0.6 to 0.8)"), ("pooled", "0.1 < 0.2"))
    recorded = RecordedSection("digits", "Coloured digits", "On an H200.", ("method", "accuracy"), rows)
    plain, read = (parse_page(page(SECTIONS, versions=VERSIONS, recorded=each)) for each in ((), (recorded,)))
    assert "recorded-digits" in read.ids
    for text in ("Coloured digits (recorded, not computed here)", "On an H200.", "0.7 (0.6 to 0.8)", "0.1 < 0.2"):
        assert text in read.text
        assert text not in plain.text
    count = f"{len(NAMES)} claims from {len(SECTIONS)} experiments"
    assert count in plain.text
    assert count in read.text
    read.assert_stands_alone("https://arxiv.org/abs/2403.01420", "comparison.html")


def test_the_summary_counts_verdicts_and_names_what_broke():
    text = page(SECTIONS, versions=VERSIONS)
    assert "8 claims from 4 experiments" in text
    assert '<li class="bad"><strong>1</strong> does not hold</li>' in text
    assert '<li class="open"><strong>1</strong> undecided</li>' in text
    assert '<li class="open"><strong>1</strong> not measured</li>' in text
    assert 'than expected: <a href="#claim-breaks">breaks</a>, <a href="#claim-not-seen"' in text
    assert "uick look" not in text
    assert "quick look" in page(SECTIONS, versions=VERSIONS, quick=True)


def test_failures_are_listed_even_if_nothing_else_is(parse_page):
    read = parse_page(page((), versions=VERSIONS, failures={"figure_9": "TypeError: <no>"}))
    assert "TypeError: <no>" in read.text
    assert "failures" in read.ids
    assert "ledger" not in read.ids


def test_a_drawing_without_a_size_is_refused():
    broken = Section("figure_3", "title", "about", 12, "<svg></svg>", (), ())
    with pytest.raises(ValueError, match="figure must be an SVG"):
        page((broken,), versions=VERSIONS)
