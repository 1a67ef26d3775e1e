import json
import re

from holdfast_studies.comparison import summarize, to_html, to_json, to_markdown
from holdfast_studies.comparison.rendering import show_comparison
from holdfast_studies.comparison.summary import number


def test_the_page_stands_alone(small, parse_page):
    page = parse_page(to_html(summarize(small[0]), quick=True))
    page.assert_stands_alone("report.html")
    for words in ("quick look", "IRMv1, published", "toy_1_1", "least squares", "scikit-learn"):
        assert words in page.text


def test_tables_show_published_results_and_recorded_ones(small):
    summary = summarize(small[0])
    text = to_markdown(summary)
    assert "| *ERM, published* | 0.421 |" in text
    assert " r (" in text
    assert [table.title for group in summary.groups for table in group.tables] == [
        "Unit tests: test error",
        "Toy model: distance of the coefficients to the invariant ones",
        "Toy model: largest coefficient that should be 0",
    ]
    tests = json.loads(to_json(summary))["tests"]
    assert tests["Example2"]["measures"]["error"]["irm"]["recorded"]
    assert tests["toy_1_1"]["measures"]["coefficient_error"]["oracle"]["seeds"] == 2


def test_markdown_json_html_and_terminal_say_the_same_numbers(small, capsys):
    summary = summarize(small[0])
    show_comparison(summary)
    printed, text, page = capsys.readouterr().out, to_markdown(summary), to_html(summary)
    count = 0
    for name, test in json.loads(to_json(summary))["tests"].items():
        assert all(sentence in text and sentence in page for sentence in test["findings"]), name
        for scores in test["measures"].values():
            for score in scores.values():
                value, between = number(score["value"]), f"{number(score['low'])} to {number(score['high'])}"
                assert f"({between})" in text
                assert f">{between}</span>" in page
                assert f">{value}" in page
                assert value in printed
                assert between in printed
                count += 1
    assert count == 8
    assert page.count('class="number leads"') == len(re.findall(r"\| \*\*[\d.]+\*\*", text)) == 5
