"""The page in a real browser: what a person does, and that nothing complains."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from apps.lab.serving import FLAGS, chromium
from holdfast.apps.lab.views.oscillation import OscillationSettings
from holdfast.sensing.simulation import execute

pytestmark = pytest.mark.slow
SIZES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no browser test")
    path = chromium()
    if path is None:
        pytest.skip(
            "no Chromium on this machine (Debian: apt-get install chromium): the page was not tested in a browser"
        )
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, address):
    """Opens the page; at the end of the test nothing may have complained, and nobody else may have been asked."""
    complaints, opened = [], []

    def open_(fragment="", size="wide", **options):
        context = browser.new_context(viewport=SIZES[size], accept_downloads=True, **options)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if own(request.url) else complaints.append(request.url))
        page.goto(f"{address}/{fragment}")
        opened.append(context)
        return page

    def own(url):
        return url.startswith((address, f"blob:{address}", "data:"))

    yield open_
    for context in opened:
        context.close()
    assert complaints == []


def drawn(page):
    page.locator("#summary:not(:empty)").wait_for(timeout=60_000)
    page.locator("#stage:not(.stale)").wait_for(timeout=60_000)
    page.locator("#work").wait_for(state="hidden", timeout=60_000)


def numbers(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="Numbers (JSON)").click()
    return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def test_the_curves_are_those_of_the_library_and_the_link_brings_them_back(open_page):
    page = open_page("#oscillation?heterogeneity=4&seed=5")
    drawn(page)
    page.get_by_label("Bias s").focus()
    page.keyboard.press("ArrowLeft")
    page.locator("#summary", has_text="runs").wait_for()
    assert "bias=0.9" in page.url
    page.wait_for_timeout(1500)
    drawn(page)
    found = numbers(page)
    settings = OscillationSettings(**found["settings"])
    assert (settings.bias, settings.heterogeneity, settings.seed) == (0.9, 4.0, 5)
    records = execute(settings.simulated()["hetero"])
    expected = np.median(records.values["spurious"], axis=0)
    np.testing.assert_allclose(found["trajectories"]["hetero"]["spurious"]["median"], expected, rtol=1e-5)
    again = open_page(page.url.partition("/#")[2].join(["#", ""]))
    drawn(again)
    assert numbers(again)["trajectories"] == found["trajectories"]


def test_pictures_and_numbers_can_be_saved_and_code_copied(open_page):
    page = open_page("#oscillation?scale=linear", permissions=["clipboard-read", "clipboard-write"])
    drawn(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="“HeteroSGD” as PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as download:
        page.get_by_role("button", name="“Phase diagram” as SVG").click()
    picture = Path(download.value.path()).read_text(encoding="utf-8")
    assert "class=" not in picture
    assert "fill=" in picture
    with page.expect_download() as download:
        page.get_by_role("button", name="Numbers (CSV)").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('"step","hetero_invariant_low","hetero_invariant_median"')
    assert len(lines) == 1 + 51
    page.get_by_role("button", name="Copy as command").click()
    page.locator("#notice", has_text="Copied").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    simulate = "holdfast simulate --dimension=20 --heterogeneity=7.0"
    assert command == f"{simulate} --every=4 && {simulate} --batching=pooled --every=4"


def test_long_work_shows_that_it_is_going_on_and_can_be_stopped(open_page):
    page = open_page()
    drawn(page)
    page.evaluate("location.hash = '#oscillation?dimension=100&steps=2000&seeds=64'")
    page.get_by_role("button", name="Stop").click(timeout=60_000)
    page.locator("#notice", has_text="Stopped").wait_for()
    page.locator("#work").wait_for(state="hidden")
    page.evaluate("location.hash = '#oscillation?heterogeneity=3'")
    page.wait_for_timeout(500)
    drawn(page)


def test_what_does_not_go_together_is_said_on_the_page(open_page):
    page = open_page("#oscillation?environments=gaussian&order=cyclic")
    page.locator("#alert", has_text="order").wait_for(timeout=60_000)
    page.get_by_label("Order").select_option("independent")
    page.locator("#alert").wait_for(state="hidden", timeout=60_000)


@pytest.mark.parametrize(
    "fragment", ["#nothing", "#oscillation?step_size=x&seed=1e9&order=up", "#oscillation?%ff=1&&="]
)
def test_a_broken_link_opens_what_can_be_understood_of_it(open_page, fragment):
    page = open_page(fragment)
    drawn(page)
    assert page.locator("h1").inner_text() == "Oscillation"


def fits_and_is_accessible(page):
    """Nothing is wider than the window, every input has a label, and axe, if it is there, finds nothing serious."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("[...document.querySelectorAll('input, select')].every((each) => each.labels.length === 1)")
    source = os.environ.get("HOLDFAST_AXE")  # path of axe.min.js, which is not part of the project
    if source:
        page.evaluate(Path(source).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_fits_its_window_and_everything_has_a_name(open_page, size, scheme):
    page = open_page("", size, color_scheme=scheme)
    drawn(page)
    fits_and_is_accessible(page)
    assert page.evaluate("[...document.querySelectorAll('figure svg')].every((each) => each.ariaLabel.length > 20)")
