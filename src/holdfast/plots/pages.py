"""HTML pages that need no other file: one jinja2 environment, the templates and the style of all of them."""

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def render(template: str, *, package: str = "holdfast.plots", **context: object) -> str:
    """A page as HTML.

    Values are escaped where a template prints them; markup is written in templates only.

    Args:
        template: a file in the folder `templates` of a package, which may extend those of `holdfast.plots`.
        package: that has the template.
        context: the names that the template uses; a missing one is an error.

    Example:
        >>> page = render("base.html", title="a < b", contents={"summary": "Summary"})
        >>> "<h1>a &lt; b</h1>" in page, '<a href="#summary">Summary</a>' in page
        (True, True)
    """
    return _environment(package).get_template(template).render(context)


@cache
def _environment(package: str) -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("holdfast.plots")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
