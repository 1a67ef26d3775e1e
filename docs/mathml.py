"""Formulas as MathML, which browsers draw themselves, so that the site needs no script from elsewhere."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(translator, node) -> None:
    """A formula within a line; one that docutils cannot translate ends the build."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_displayed(translator, node) -> None:
    """A formula on lines of its own; a long one can be scrolled."""
    translator.body.append(f'<div class="displayed-formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
