"""A sheet that shows what varies: the rows with the lowest and highest scores, and their shares by class."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.image import imsave

from holdfast.core.validation import require
from holdfast.core.writing import write_text
from holdfast.embeddings.discovery import Discovery
from holdfast.plots.bands import COLOURS
from holdfast.plots.pages import render

# Rows of each class at either end of the score.
EXAMPLES = 10
# Classes of a sheet; the most frequent ones if there are more.
CLASSES_ON_SHEET = 6
# Letters of a text or row, above which the end is left out.
LONGEST_TEXT = 300
# Images of two channels are drawn in orange and blue, which everybody can tell apart.
TWO_COLOURS = ((1.0, 0.6, 0.0), (0.2, 0.6, 1.0))
# Inches of a picture, and of a panel below them.
PICTURE, PANEL = 0.62, 2.6


def write_sheet(discovery: Discovery, rows: Any, path: str | Path, *, title: str = "What varies") -> None:
    """Write an HTML page, which needs no other file, with the rows at both ends of each score.

    Args:
        discovery: what varies.
        rows: what the rows are, in the order of the data: images (rows, height, width), (rows, channels, height, width)
            or (rows, height, width, channels); texts; or records, such as the rows of a pandas table.
        path: of the page.
        title: of the page.

    Example:
        >>> import tempfile
        >>> from holdfast.embeddings import discover
        >>> random = np.random.default_rng(0)
        >>> label, environment = np.arange(4000) % 2, np.arange(4000) // 2000
        >>> colour = np.where(random.random(4000) < np.where(environment == 0, 0.7, 0.9), label, 1 - label)
        >>> embedding = np.column_stack([colour, label]) + 0.3 * random.standard_normal((4000, 2))
        >>> found = discover(embedding, label, environment)
        >>> path = Path(tempfile.mkdtemp()) / "sheet.html"
        >>> write_sheet(found, [f"colour {each}" for each in colour], path)
        >>> page = path.read_text()
        >>> "colour 0" in page and "class 1: highest scores" in page
        True
    """
    items = _items(rows, len(discovery.targets))
    shown = "pictures" if isinstance(items, np.ndarray) else "texts"
    names = _class_names(discovery)
    attributes = []
    for number, (cut, is_binary) in enumerate(zip(discovery.cuts, discovery.is_binary, strict=True)):
        kind = ": two groups." if is_binary else ", too little for two groups of similar size."
        table = [
            (str(label), list(zip(names, ["" if np.isnan(share) else f"{share:.1%}" for share in own], strict=True)))
            for label, own in zip(discovery.grouping.labels, discovery.shares(number), strict=True)
        ]
        parts = [{"title": end, shown: [_shown(items[row]) for row in own]} for end, own in _ends(discovery, number)]
        about = f"The best cut in two explains {cut.explained:.0%} of the variance of the score{kind}"
        attributes.append({"title": f"Attribute {number + 1}", "about": about, "parts": parts, "shares": table})
    page = render(
        "discovery.html",
        title=title,
        rows=len(discovery.targets),
        environments=discovery.grouping.labels,
        sentences=discovery.sentences,
        attributes=attributes,
        classes=names,
        contents={f"attribute-{number + 1}": one["title"] for number, one in enumerate(attributes)},
    )
    write_text(Path(path), page)


def draw_sheet(discovery: Discovery, images: Any, attribute: int = 0) -> Figure:
    """A figure: images of each class with the lowest and highest scores, all scores, and shares above the cut.

    Args:
        discovery: what varies.
        images: of the rows, as for `write_sheet`.
        attribute: which of the attributes.

    Example:
        >>> from holdfast.embeddings import discover
        >>> random = np.random.default_rng(0)
        >>> label, environment = np.arange(4000) % 2, np.arange(4000) // 2000
        >>> colour = np.where(random.random(4000) < np.where(environment == 0, 0.7, 0.9), label, 1 - label)
        >>> embedding = np.column_stack([colour, label]) + 0.3 * random.standard_normal((4000, 2))
        >>> figure = draw_sheet(discover(embedding, label, environment), np.ones((4000, 4, 4)) * colour[:, None, None])
        >>> len(figure.axes)
        6
    """
    contract = f"attribute must be below {discovery.count}, the number of those found"
    require(0 <= attribute < discovery.count, contract, repr(attribute))
    items = _items(images, len(discovery.targets))
    drawn, hint = isinstance(items, np.ndarray), "write_sheet shows texts and rows"
    require(drawn, "images must be an array of images", f"{type(images)}; {hint}")
    names, ends = _class_names(discovery), list(_ends(discovery, attribute))
    classes = len(ends) // 2
    height = classes * (PICTURE + 0.35)
    figure = Figure(figsize=(2 * EXAMPLES * PICTURE * 0.8, height + PANEL + 0.9), layout="constrained")
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[height, PANEL + 0.6])[:, 0]
    panels = above.subplots(classes, 2, squeeze=False)
    for axes, (title, chosen) in zip(panels.ravel(), ends, strict=True):
        # a white frame of one pixel keeps neighbours apart
        framed = np.pad(items[chosen], ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.0)
        axes.imshow(np.concatenate(framed, axis=1), interpolation="nearest")
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_axis_off()
    histogram, bars = below.subplots(1, 2)
    scores = discovery.scores[:, attribute]
    histogram.hist(scores, bins=60, color=COLOURS["spurious"])
    histogram.axvline(discovery.cuts[attribute].threshold, color="black", linewidth=1)
    histogram.set(xlabel="score (standard deviations within classes)", ylabel="rows")
    histogram.set_title("all scores, and the best cut in two", fontsize=9, loc="left")
    shares = discovery.shares(attribute)
    width = 0.8 / len(shares)
    for number, (label, own) in enumerate(zip(discovery.grouping.labels, shares, strict=True)):
        at = np.arange(len(names)) + (number - (len(shares) - 1) / 2) * width
        # greys: a colour could be taken for one of the images
        grey = str(0.3 + 0.5 * number / max(len(shares) - 1, 1))
        bars.bar(at, own, width * 0.95, color=grey, label=str(label))
    bars.set_xticks(np.arange(len(names)), names)
    bars.set(ylabel="share of rows above the cut", ylim=(0, 1))
    below_axes = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12), "ncols": min(4, len(shares))}
    bars.legend(title="environment", frameon=False, **below_axes)
    return figure


def _items(rows: Any, count: int) -> np.ndarray | list[str]:
    """Images as (rows, height, width, 3) from 0 to 1, or a text for each row."""
    if isinstance(rows, pd.DataFrame):
        records = rows.to_dict("records")
        rows = [", ".join(f"{name} {value}" for name, value in record.items()) for record in records]
    # texts come as a list, array or pandas column
    found = [_short(str(row)) for row in rows] if np.ndim(rows) == 1 else _coloured(np.asarray(rows))
    contract = f"rows must hold one item for each of the {count} rows that were scored"
    require(len(found) == count, contract, len(found))
    return found


def _coloured(images: np.ndarray) -> np.ndarray:
    if images.ndim == 3:
        images = images[..., None]
    elif images.ndim == 4 and images.shape[1] in (1, 2, 3) and images.shape[-1] not in (1, 2, 3):
        images = np.moveaxis(images, 1, -1)
    drawn = images.ndim == 4 and images.shape[-1] in (1, 2, 3)
    require(drawn, "rows must be images of 1 to 3 channels, texts or a table", f"the shape {images.shape}")
    low, high = float(images.min()), float(images.max())
    scaled = (images - low) / max(high - low, 1e-300)
    if scaled.shape[-1] == 2:
        return np.clip(scaled @ np.array(TWO_COLOURS), 0, 1)
    return np.repeat(scaled, 3, axis=-1) if scaled.shape[-1] == 1 else scaled


def _ends(discovery: Discovery, attribute: int) -> Iterator[tuple[str, np.ndarray]]:
    """A title and rows for both ends of the scores of each class: the lowest and the highest, extreme ones first."""
    names, counts = _class_names(discovery), np.bincount(discovery.codes)
    for code in sorted(np.argsort(-counts, kind="stable")[:CLASSES_ON_SHEET].tolist()):
        rows = np.flatnonzero(discovery.codes == code)
        order = rows[np.argsort(discovery.scores[rows, attribute], kind="stable")]
        yield f"{names[code]}: lowest scores", order[:EXAMPLES]
        yield f"{names[code]}: highest scores", order[::-1][:EXAMPLES]


def _class_names(discovery: Discovery) -> list[str]:
    return [f"class {name}" for name in discovery.classes] if discovery.classes else ["lower half", "upper half"]


def _shown(item: np.ndarray | str) -> str:
    """A picture as base64 of PNG; texts as they are."""
    if isinstance(item, str):
        return item
    buffer = io.BytesIO()
    imsave(buffer, item, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 3] + "..."
