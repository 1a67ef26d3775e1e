"""The views of tables and of results in a real browser: files of strangers, the keyboard, and no complaints."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from apps.lab.cheap_views import cheap_signals
from apps.lab.serving import server
from apps.lab.test_browser import SIZES, browser, drawn, fits_and_is_accessible, numbers, open_page  # noqa: F401
from apps.lab.test_results import reproduction  # noqa: F401
from holdfast.apps.lab.tables import example_table
from holdfast.estimators.files import fit_table
from holdfast.sweeps import open_sweep, sweep
from holdfast.tables import TableModel
from holdfast_studies.claims import Verdict

pytestmark = pytest.mark.slow
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def plants(tmp_path_factory):
    """A table whose names are markup and formulas."""
    random = np.random.default_rng(2)
    site = np.repeat(["north", HOSTILE, "=1+1", "größe"], 60)
    light = random.normal(size=240)
    height = 2 * light + random.normal(size=240)
    fruit = np.repeat([1.5, 0.2, -0.5, 1.0], 60) * height + random.normal(size=240)
    path = tmp_path_factory.mktemp("plants") / "my plants.csv"
    frame = pd.DataFrame({"=light()": light, HOSTILE: fruit, "site": site, "height": height})
    frame.round(3).to_csv(path, index=False)
    return path


def saved(page, name):
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return Path(download.value.path())


def upload(page, path):
    page.get_by_label("Your file").set_input_files(path)
    page.locator("#stage", has_text=path.name).wait_for(timeout=60_000)
    drawn(page)


def test_an_example_is_fitted_at_once_and_the_model_predicts(open_page, tmp_path):  # noqa: F811
    page = open_page("#table")
    drawn(page)
    assert "6 features: 2 dangerous" in page.locator("#summary").inner_text()
    shown = page.locator("tbody tr").first.inner_text()
    assert shown.split()[:2] == ["pests", "dangerous"]
    titles = [each.inner_text() for each in page.locator("#stage h2:visible").all()]
    assert titles[:3] == ["In short", "What holds, and what is dangerous", "Effect of pests by environment"]
    assert page.locator("section.chart", has=page.get_by_role("heading", name="In short")).locator("li").count() == 3
    note = page.get_by_text("danger: growth of the squared error")
    assert not note.is_visible()
    page.locator("summary", has_text="Notes").click()
    assert note.is_visible()
    model, table = tmp_path / "model.json", tmp_path / "gardens.csv"
    model.write_bytes(saved(page, "Save the model").read_bytes())
    example_table("gardens").to_csv(table, index=False)
    out = tmp_path / "predictions.csv"
    command = [sys.executable, "-m", "holdfast", "predict", str(model), str(table), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    expected = fit_table(table, "height", "garden").model.predict(example_table("gardens"))["prediction"]
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected)


def test_a_file_is_fitted_and_its_names_stay_words(open_page, plants, tmp_path):  # noqa: F811
    page = open_page("#table", permissions=["clipboard-read", "clipboard-write"])
    drawn(page)
    upload(page, plants)
    assert page.title() == "Your table · Holdfast laboratory"
    assert page.locator("#stage img:not(.figure)").count() == 0
    page.get_by_role("button", name=HOSTILE, exact=True).click()
    page.locator("h2", has_text=f"Effect of {HOSTILE}").wait_for()
    assert saved(page, "Save the code").read_text(encoding="utf-8").startswith("from pathlib import Path")
    model = TableModel.load(saved(page, "Save the model"))
    assert model == fit_table(plants, "height", "site").model
    rows = list(csv.DictReader(saved(page, "Numbers (CSV)").read_text(encoding="utf-8").splitlines()))
    assert {row["feature"] for row in rows} == {"'=light()", HOSTILE}  # a spreadsheet sees no formula
    assert {row["environment"] for row in rows} == {"north", HOSTILE, "'=1+1", "größe"}
    page.get_by_role("button", name="Copy as command").click()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == "holdfast fit 'my plants.csv' --held-out --out=model.json --target=height --environment=site"


def test_columns_are_chosen_by_keyboard_and_only_settings_are_in_the_link(open_page, plants):  # noqa: F811
    page = open_page("#table")
    drawn(page)
    upload(page, plants)
    page.get_by_role("group", name="Features to leave out").get_by_label("=light()").focus()
    page.keyboard.press("Space")
    page.locator("#summary", has_text=" 1 feature: ").wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.type") == "checkbox"
    assert "exclude=" in page.url
    assert "upload" not in page.url
    assert "plants" not in page.url
    page.get_by_label("Target, to be predicted").select_option(label="=light()")
    page.locator("#summary", has_text="of =light()").wait_for(timeout=60_000)
    # Another view and back: the file is still that of this tab.
    page.evaluate("location.hash = '#oscillation'")
    page.locator("h1", has_text="Oscillation").wait_for()
    page.evaluate("location.hash = '#table'")
    page.locator("#stage", has_text=plants.name).wait_for(timeout=60_000)
    drawn(page)


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(999), "a.csv", "cannot be read"),
        (b"a\n1\n", "a.csv", "two columns"),
        (b"", "a.csv", "empty"),
    ],
)
def test_a_bad_file_gets_a_sentence_and_no_old_result_is_left(open_page, tmp_path, content, name, words):  # noqa: F811
    page = open_page("#table")
    drawn(page)
    path = tmp_path / name
    path.write_bytes(content)
    page.get_by_label("Your file").set_input_files(path)
    page.locator("#alert", has_text=words).wait_for(timeout=60_000)
    if content:
        assert page.get_by_role("button", name="Save the model").count() == 0


def test_claims_are_filtered_and_figures_are_drawn(browser, reproduction):  # noqa: F811
    with server("--results", str(reproduction)) as (address, _):
        page = browser.new_page()
        page.goto(f"{address}/#results")
        drawn(page)
        assert page.locator("tbody tr").count() == 3
        assert page.locator("tbody b").count() == 0  # the statements have markup in them
        page.get_by_label("Verdict").select_option(Verdict.DOES_NOT_HOLD.value)
        assert page.locator("tbody tr").count() == 1
        assert "verdict=does+not+hold" in page.url
        page.get_by_role("button", name="figure-30-strong").click()
        page.locator("h2", has_text="Figure 30").wait_for()
        assert page.locator("img.figure").get_attribute("src").startswith("data:image/png")
        assert saved(page, "Save the figure").read_bytes().startswith(b"\x89PNG")
        assert not page.get_by_label("Quantity").is_visible()
        page.close()


def test_a_sweep_is_drawn_as_lines_and_as_a_map(browser, tmp_path):  # noqa: F811
    axes = {"step_size": [0.02, 0.05, 0.1], "heterogeneity": [1.0, 4.0], "order": ["independent", "cyclic"]}
    sweep({}, axes, seeds=3, out=tmp_path / "runs", program=cheap_signals)
    with server("--results", str(tmp_path / "runs")) as (address, _):
        page = browser.new_page()
        page.goto(f"{address}/#results")
        drawn(page)
        assert page.locator("figure:visible svg .line").count() == 2 * 2  # two lines, each once more in the legend
        page.get_by_label("Vertical axis").select_option("heterogeneity")
        page.locator("#summary", has_text="step_size and heterogeneity").wait_for(timeout=60_000)
        drawn(page)
        assert page.locator("figure:visible svg .cell").count() == 6
        rows = list(csv.DictReader(saved(page, "Numbers (CSV)").read_text(encoding="utf-8").splitlines()))
        expected = open_sweep(tmp_path / "runs")["spurious"].sel(order="independent").median("seed")
        for row in rows:
            at = {name: float(row[name]) for name in ("step_size", "heterogeneity")}
            assert float(row["value"]) == pytest.approx(float(expected.sel(at)), rel=1e-5)
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["table", "results"])
def test_the_views_fit_their_window_and_everything_has_a_name(open_page, view, size, scheme):  # noqa: F811
    page = open_page(f"#{view}", size, color_scheme=scheme)
    drawn(page)
    fits_and_is_accessible(page)
    assert page.evaluate("[...document.querySelectorAll('figure svg')].every((each) => each.ariaLabel.length > 20)")
