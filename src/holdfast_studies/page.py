"""The report of a reproduction, as one HTML page."""

import base64
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.plots.pages import render
from holdfast_studies.claims import TONES, Claim, Covered, Verdict, counts_by_origin

# On a screen narrower than this share of a figure's own width the figure scrolls, so that its labels can be read.
NARROWEST = 0.94
# Figures grow with the screen up to this multiple of their own width.
WIDEST = 1.5
# Wider than a phone, in the units of an SVG, which are pixels of the page.
PHONE_WIDTH = 360


@dataclass(frozen=True)
class Section:
    """One experiment in the report.

    Attributes:
        name: of the experiment, as on the command line.
        title: what the figure shows.
        about: where it comes from, one sentence.
        seeds: of each curve.
        figure: the figure as SVG text.
        left_open: what the paper does not say and we had to choose.
        claims: tested on it.
        answer: to its question, in a few words.
    """

    name: str
    title: str
    about: str
    seeds: int
    figure: str
    left_open: tuple[str, ...]
    claims: tuple[Claim, ...]
    answer: str = ""


@dataclass(frozen=True)
class RecordedSection:
    """Results that come with the package, for the report: they were computed elsewhere and are no claims of this run.

    Attributes:
        name: as in a link.
        title: what was measured.
        about: where, when and how it was computed.
        columns: of the table, the first one for the names of its rows.
        rows: of the table.
    """

    name: str
    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def page(
    sections: Sequence[Section],
    *,
    versions: Mapping[str, str],
    quick: bool = False,
    failures: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
    covered: Sequence[Covered] = (),
    recorded: Sequence[RecordedSection] = (),
) -> str:
    """The report as HTML that needs no other file.

    Args:
        sections: one for each experiment, in the order of the page.
        versions: of the packages that computed it.
        quick: whether this was a quick look with few seeds; the report then says so.
        failures: the error of each experiment that stopped with one, by name.
        left_out: what each experiment needs that could not be computed here, by name.
        covered: the statements of the papers with the claims that test them.
        recorded: results that come with the package; they are not counted.

    Example:
        >>> html = page((), versions={"holdfast": "0.1"}, failures={"figure_9": "ValueError: no < yes"})
        >>> "Stopped with an error: figure_9" in html, "ValueError: no &lt; yes" in html
        (True, True)
    """
    claims = [claim for section in sections for claim in section.claims]
    counts = Counter(claim.verdict for claim in claims)
    blocks = [_section(section) for section in sections]
    contents = {block["id"]: block["heading"] for block in blocks}
    contents |= {f"recorded-{each.name}": f"{each.title} (recorded, not computed here)" for each in recorded}
    if failures:
        contents["failures"] = "Experiments that failed"
    if claims:
        contents["ledger"] = "All claims"
    if covered:
        contents["coverage"] = "What the papers state, and what tests it"
    return render(
        "reproduction.html",
        package="holdfast_studies",
        title="Holdfast: reproduction report" + (" (quick look)" if quick else ""),
        quick=quick,
        contents=contents,
        sections=blocks,
        recorded=recorded,
        claims=claims,
        covered=covered,
        origins={name: each for name, each in counts_by_origin(covered).items() if each},
        broken=[claim.id for claim in claims if claim.broken],
        failures=[{"name": name, "label": label(name), "error": error} for name, error in (failures or {}).items()],
        left_out=left_out or {},
        total=f"{_count(len(claims), 'claim')} from {_count(len(sections), 'experiment')}",
        counts={verdict: counts[verdict] for verdict in Verdict if counts[verdict]},
        origin={
            "Seeds": ", ".join(f"{label(section.name)}: {section.seeds}" for section in sections) or "none",
            "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        },
        tones=TONES,
        number=number,
        interval=interval,
        allowed=allowed,
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


def _count(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def _section(section: Section) -> dict[str, Any]:
    width, height = _size(section.figure)
    return vars(section) | {
        "id": f"experiment-{section.name}",
        "label": label(section.name),
        "heading": f"{label(section.name)}: {section.title}",
        "source": base64.b64encode(section.figure.encode()).decode(),
        "width": f"{width:.0f}",
        "height": f"{height:.0f}",
        "min_width": f"{NARROWEST * width:.0f}",
        "max_width": f"{WIDEST * width:.0f}",
        "scrolls": width > PHONE_WIDTH,
    }


def _size(figure: str) -> tuple[float, float]:
    """Width and height of an SVG in its own units."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure)
    if found is None:
        raise ValueError("figure must be an SVG with a viewBox that starts at 0 0")
    return float(found[1]), float(found[2])
