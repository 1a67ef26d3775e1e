"""Summaries as they are printed: a headline, a table, sentences and notes, as text in a fixed width or as HTML."""

import html
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

# The table is at most this wide; columns give way to so many characters of the names of features, longer ones are cut,
# and so many are left of them in any case.
WIDTH, NAME_WIDTH, FEWEST = 120, 24, 3


@dataclass(frozen=True, repr=False)
class PrintedSummary:
    """A headline, a table of cells, sentences and notes: as text in a fixed width (`str`), in notebooks as HTML.

    Attributes:
        headline: what was fitted.
        cells: of text; a row for each name in the index.
        notes: what to mind, in sentences.
        advice: the sentences that matter most.
        legend: column -> what it is, for those that are shown.
        spare: columns that a narrow table can do without, in this order.
        width: of the text.

    Example:
        >>> cells = pd.DataFrame({"coef": ["2", "-1.5"], "std err": ["0.1", "0.12"]}, ["light", "water"])
        >>> print(PrintedSummary("Least squares.", cells, ["Of 20 rows."]))
        Least squares.
        ===================
               coef std err
        -------------------
        light     2     0.1
        water  -1.5    0.12
        ===================
        [1] Of 20 rows.
    """

    headline: str
    cells: pd.DataFrame
    notes: Sequence[str] = ()
    advice: Sequence[str] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    spare: Sequence[Sequence[str]] = ()
    width: int = WIDTH

    def text(self, width: int | None = None) -> str:
        """In lines of at most this width: a narrow table leaves out the columns that are needed least."""
        width = self.width if width is None else width
        names, cells = [str(name) for name in self.cells.index], self.cells.set_axis([""] * len(self.cells))
        for spare in ([], *self.spare):
            cells = cells.drop(columns=spare, errors="ignore")
            room = width - len(cells.to_string().partition("\n")[0])
            if room >= min(max(map(len, names)), NAME_WIDTH):
                break
        body = cells.set_axis(shortened(names, max(room, FEWEST))).to_string().splitlines()
        length = len(body[0])
        rule, line = "=" * length, "-" * length
        lines = [*textwrap.wrap(self.headline, length), rule, body[0], line, *body[1:], rule]
        for sentence in self.advice:
            lines += textwrap.wrap(f"> {sentence}", length, subsequent_indent="  ")
        for number, note in enumerate([*self.explained(cells), *self.notes], 1):
            lines += textwrap.wrap(f"[{number}] {note}", length, subsequent_indent="    ")
        return "\n".join(lines)

    def explained(self, cells: pd.DataFrame) -> list[str]:
        """What the columns are, in a sentence if anything is known about them."""
        words = "; ".join(self.legend[str(name)] for name in cells if name in self.legend)
        return [f"{words}."] if words else []

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        advice, notes = (
            "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
            for sentences in (self.advice, [*self.explained(self.cells), *self.notes])
        )
        said = f"<ul>{advice}</ul>" if advice else ""
        folded = f"<details><summary>Notes</summary><ol>{notes}</ol></details>" if notes else ""
        return f"<p>{html.escape(self.headline)}</p>{said}{self.cells.to_html()}{folded}"


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Names of at most this width, cut in the middle, and as different from each other as they were.

    Names that would read the same are cut nearer to where they differ, and numbered if there is no such place.

    Example:
        >>> shortened(["temperature of the soil", "temperature of the air", "light"], 12)
        ['tempe…e soil', 'tempe…he air', 'light']
    """
    found: list[str] = []
    for name in names:
        candidates = (_cut(name, width, front) for front in range((width - 1) // 2, width))
        taken = set(found) | {other for other in names if len(other) <= width and other != name}
        free = (short for short in candidates if short not in taken)
        numbered = (_cut(name, width - len(str(k)) - 1, 0) + f"~{k}" for k in itertools.count(2))
        found.append(next(itertools.chain(free, (short for short in numbered if short not in taken))))
    return found


def _cut(name: str, width: int, front: int) -> str:
    """The name with an ellipsis after the first letters."""
    return name if len(name) <= width else f"{name[:front]}…{name[len(name) - (width - 1 - front) :]}"
