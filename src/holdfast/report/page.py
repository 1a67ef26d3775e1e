"""One HTML file from figures and claims."""

import base64
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from holdfast.report import markup
from holdfast.reproduction.claims import Claim, Verdict

# The class that colours a verdict. The word always stands beside the colour.
TONES = {
    Verdict.HOLDS: "good",
    Verdict.HOLDS_WITH_OUR_CHOICE: "good",
    Verdict.DOES_NOT_HOLD: "bad",
    Verdict.OUTSIDE_CONSTANTS: "aside",
    Verdict.UNDECIDED: "open",
}
# On a screen narrower than this share of a figure's own width the figure scrolls, so that its labels can be read.
NARROWEST = 0.94
# Wider than a phone, in the units of an SVG, which are pixels of the page.
WIDE = 360

_LEAD = (
    "The figures of the papers, drawn again, and their claims, tested. Each claim is a number that was measured, with "
    "a 95 % interval: it holds if the whole interval lies in the allowed range, does not hold if none of it does, and "
    "is undecided otherwise. It holds with our choice where the paper leaves something open that we had to choose, and "
    "is outside the theorem's constants where the constants that the theorem asks for are not met."
)
_FOOTER = (
    'The paper: Y. Xu, Y. Gu and C. Fang, <a href="https://arxiv.org/abs/2403.01420">The Implicit Bias of '
    "Heterogeneity towards Invariance: A Study of Multi-Environment Matrix Sensing</a>, NeurIPS 2024. Experiments on "
    "jumps: Z. Wang and A. Jacot, Implicit Bias of SGD in L2-regularized Linear DNNs: One-way Jumps from High to Low "
    "Rank, ICLR 2024.",
    'Methods for tables with environments, compared: <a href="comparison.html">comparison.html</a>, which '
    "<code>holdfast compare</code> writes beside this page.",
)


@dataclass(frozen=True)
class Section:
    """What the report shows of one experiment.

    Attributes:
        name: of the experiment, as on the command line.
        title: what the figure shows.
        about: where it comes from, one sentence.
        seeds: of each curve.
        figure: the figure as SVG text.
        left_open: what the paper does not say and we had to choose.
        claims: tested on it.
    """

    name: str
    title: str
    about: str
    seeds: int
    figure: str
    left_open: tuple[str, ...]
    claims: tuple[Claim, ...]


def page(
    sections: Sequence[Section],
    *,
    versions: Mapping[str, str],
    quick: bool = False,
    failures: Mapping[str, str] | None = None,
) -> str:
    """The report as HTML.

    Args:
        sections: one an experiment, in the order they are shown.
        versions: of the packages that computed it.
        quick: whether this was a look with few seeds, which the report then says.
        failures: the error of each experiment that stopped with one, by name.
    """
    failures = failures or {}
    claims = [claim for section in sections for claim in section.claims]
    body = [_section(section) for section in sections]
    contents = {f"experiment-{section.name}": f"{label(section.name)}: {section.title}" for section in sections}
    if failures:
        body.append(_failures(failures))
        contents["failures"] = "Experiments that failed"
    if claims:
        body.append(_ledger(claims))
        contents["ledger"] = "All claims"
    return markup.document(
        "Holdfast: reproduction report" + (" (quick look)" if quick else ""),
        lead=_LEAD,
        summary=_summary(sections, claims, versions, quick, failures),
        contents=contents,
        sections=body,
        footer=_FOOTER,
    )


def label(name: str) -> str:
    """The name of an experiment as a heading.

    Example:
        >>> label("figure_3")
        'Figure 3'
    """
    return name.replace("_", " ").capitalize()


def number(value: float) -> str:
    """Four significant digits; a dash for what could not be measured.

    Example:
        >>> number(0.98765), number(float("nan"))
        ('0.9877', '–')
    """
    if math.isnan(value):
        return "–"  # noqa: RUF001
    return f"{value:.4g}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")


def interval(low: float, high: float) -> str:
    """An interval in words.

    Example:
        >>> interval(4, 6)
        '4 to 6'
    """
    return "none" if math.isnan(low) or math.isnan(high) else f"{number(low)} to {number(high)}"


def allowed(low: float, high: float) -> str:
    """A range with ends that may be open, in words.

    Example:
        >>> allowed(0.9, float("inf")), allowed(4, 6)
        ('at least 0.9', '4 to 6')
    """
    if math.isinf(low) and math.isinf(high):
        return "any"
    if math.isinf(high):
        return f"at least {number(low)}"
    return f"at most {number(high)}" if math.isinf(low) else interval(low, high)


def _summary(
    sections: Sequence[Section],
    claims: Sequence[Claim],
    versions: Mapping[str, str],
    quick: bool,
    failures: Mapping[str, str],
) -> str:
    parts = []
    if quick:
        parts.append(markup.notice("open", "Quick look: few seeds. The verdicts are no test of the claims."))
    broken = [claim for claim in claims if claim.broken]
    if broken:
        links = ", ".join(f'<a href="#claim-{escape(claim.id)}">{escape(claim.id)}</a>' for claim in broken)
        parts.append(markup.notice("bad", f"Recorded as holding, but not this time: {links}."))
    if failures:
        names = ", ".join(map(escape, failures))
        parts.append(markup.notice("bad", f'Stopped with an error: {names} (<a href="#failures">see below</a>).'))
    counts = Counter(claim.verdict for claim in claims)
    items = [
        f'<li class="{TONES[verdict]}"><strong>{counts[verdict]}</strong> {escape(verdict)}</li>'
        for verdict in Verdict
        if counts[verdict]
    ]
    if items:
        parts.append(f"<p>{_count(len(claims), 'claim')} from {_count(len(sections), 'experiment')}:</p>")
        parts.append('<ul class="counts">\n' + "\n".join(items) + "\n</ul>")
    known = {
        "Seeds": ", ".join(f"{label(section.name)}: {section.seeds}" for section in sections) or "none",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    return "\n".join([*parts, markup.facts(known)])


def _count(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def _section(section: Section) -> str:
    parts = [f"<p>{escape(section.about)}</p>", _figure(section)]
    if section.left_open:
        parts += ["<h3>What the paper leaves open</h3>", markup.items(section.left_open)]
    if section.claims:
        columns = ("claim", "measured", "interval", "allowed", "verdict", "why")
        parts += ["<h3>Claims</h3>", markup.table(columns, [_row(claim) for claim in section.claims])]
    return markup.section(f"experiment-{section.name}", f"{label(section.name)}: {section.title}", *parts)


def _figure(section: Section) -> str:
    # As an image, not as part of the page: matplotlib names the parts of every figure alike, and ids must be unique.
    source = base64.b64encode(section.figure.encode()).decode()
    width, height = _size(section.figure)
    alternative = f"{label(section.name)}, a plot: {section.title}"
    hint = '<span class="narrow"> Swipe sideways to see all of it.</span>' if width > WIDE else ""
    return "\n".join([
        "<figure>",
        # What scrolls must be reachable by keyboard.
        f'<div class="scroll" role="group" tabindex="0" aria-label="{escape(label(section.name))}">',
        f'<img src="data:image/svg+xml;base64,{source}" alt="{escape(alternative)}" width="{width:.0f}" '
        f'height="{height:.0f}" style="min-width: {NARROWEST * width:.0f}px; max-width: {1.5 * width:.0f}px">',
        "</div>",
        f"<figcaption>{section.seeds} seeds. The same figure is in <code>{escape(section.name)}.png</code> and "
        f"<code>.svg</code>, its numbers in <code>{escape(section.name)}.csv</code>.{hint}</figcaption>",
        "</figure>",
    ])  # fmt: skip


def _size(figure: str) -> tuple[float, float]:
    """Width and height of an SVG in its own units."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure)
    if found is None:
        raise ValueError("figure must be an SVG with a viewBox that starts at 0 0")
    return float(found[1]), float(found[2])


def _row(claim: Claim) -> str:
    cells = {
        "measured": f'<span class="number">{number(claim.measured.value)}</span>',
        "interval": f'<span class="number">{interval(claim.measured.low, claim.measured.high)}</span>',
        "allowed": f'<span class="number">{allowed(*claim.allowed)}</span>',
        "verdict": _verdict(claim.verdict),
        "why": f"<span>{escape(claim.why)}</span>",
    }
    head = f'{escape(claim.statement)}<br><span class="faint">{escape(claim.source)}</span>'
    return markup.row(head, cells, place=f"claim-{claim.id}")


def _ledger(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        cells = {
            "source": f"<span>{escape(claim.source)}</span>",
            "settings": f"<span>{escape(claim.settings)}</span>",
            "measured": f"<span>{number(claim.measured.value)}</span>",
            "interval": f"<span>{interval(claim.measured.low, claim.measured.high)}</span>",
            "allowed": f'<span class="number">{allowed(*claim.allowed)}</span>',
            "recorded": f"<span>{escape(claim.recorded)}</span>",
            "verdict": _verdict(claim.verdict),
        }
        rows.append(markup.row(f'<a href="#claim-{escape(claim.id)}">{escape(claim.id)}</a>', cells))
    note = "<p>Recorded is the verdict this project stands by; verdict is what this run measured.</p>"
    columns = ("claim", "source", "settings", "measured", "interval", "allowed", "recorded", "verdict")
    return markup.section("ledger", "All claims", note, markup.table(columns, rows))


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict {TONES[verdict]}">{escape(verdict)}</span>'


def _failures(failures: Mapping[str, str]) -> str:
    parts = [f"<h3>{escape(label(name))}</h3>\n<pre>{escape(error)}</pre>" for name, error in failures.items()]
    return markup.section("failures", "Experiments that failed", *parts)
