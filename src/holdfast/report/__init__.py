"""HTML pages that need no other file: one jinja2 environment, the templates and the style of all of them."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["render"]
__dir__ = __all__.copy


def render(template: str, **context: object) -> str:
    """A page as HTML.

    Values are escaped where a template prints them; markup is written in templates only.

    Args:
        template: a file in `report/templates`.
        context: the names that the template uses; a missing one is an error.

    Example:
        >>> page = render("base.html", title="a < b", contents={"summary": "Summary"})
        >>> "<h1>a &lt; b</h1>" in page, '<a href="#summary">Summary</a>' in page
        (True, True)
    """
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(__name__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
