import pytest
from jinja2 import UndefinedError

from holdfast.plots.pages import render


def test_values_are_text_and_never_markup(parse_page):
    page = parse_page(render("base.html", title="<script>alert(1)</script>", contents={'a" b': "<b>"}))
    page.assert_stands_alone('#a" b')
    assert page.text.count("<script>alert(1)</script>") == 2  # title and heading
    assert "<b>" in page.text


def test_a_template_does_not_guess_a_missing_value():
    with pytest.raises(UndefinedError, match="'contents' is undefined"):
        render("base.html", title="title")
