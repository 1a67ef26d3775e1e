"""The views of the window and of jumps in a real browser: with a pointer, with keys, and without complaints."""

from pathlib import Path

import numpy as np
import pytest

from apps.lab.test_browser import SIZES, browser, drawn, fits_and_is_accessible, numbers, open_page  # noqa: F401
from holdfast.apps.lab.views.jumps import JumpsSettings
from holdfast.sensing.environments import table
from holdfast.theory.window import sharp_window

pytestmark = pytest.mark.slow


def answered(page, text):
    page.locator("#summary", has_text=text).wait_for(timeout=60_000)
    page.locator("#work").wait_for(state="hidden", timeout=60_000)


def test_a_point_follows_pointer_keys_and_numbers(open_page):  # noqa: F811
    page = open_page("#window")
    drawn(page)
    point = page.get_by_role("slider", name="Strength of environment 2")
    assert point.get_attribute("aria-valuenow") == "7"
    box = point.locator(".mark").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for moved in range(30):
        page.mouse.move(x, y - moved)
    page.mouse.up()
    dragged = float(point.get_attribute("aria-valuenow"))
    pixels = page.evaluate("document.querySelector('.handle').ownerSVGElement.getBoundingClientRect().height")
    # 40 units of strength are as high as the picture without its margins of 8 and 42 of 260 pixels.
    assert dragged == pytest.approx(7 + 29 * 40 / 210 * 260 / pixels, abs=0.06)
    point.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowUp")
    assert float(point.get_attribute("aria-valuenow")) == pytest.approx(dragged - 0.9)
    page.keyboard.press("End")
    assert point.get_attribute("aria-valuenow") == "20"
    page.get_by_label("ξ of 2").fill("8")
    page.get_by_role("button", name="Add an environment").click()
    assert page.get_by_role("slider", name="Strength of environment 3").get_attribute("aria-valuenow") == "1.5"
    window = sharp_window(table([-5.0, 8.0, 1.5]))
    answered(page, f"Step sizes between {window.low:.4g} and {window.high:.4g}")
    found = numbers(page)
    assert found["settings"]["strengths"] == "-5, 8, 1.5"
    np.testing.assert_allclose([found["window"]["low"], found["window"]["high"]], window[:2], rtol=1e-5)
    again = open_page(page.url.partition("/#")[2].join(["#", ""]))
    answered(again, f"Step sizes between {window.low:.4g}")
    assert numbers(again)["exponents"] == found["exponents"]


def test_a_finger_moves_a_point_and_not_the_page(open_page):  # noqa: F811
    page = open_page("#window", "phone", has_touch=True, is_mobile=True)
    drawn(page)
    point = page.get_by_role("slider", name="Strength of environment 2")
    box = point.locator(".mark").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = page.context.new_cdp_session(page)
    touch = lambda kind, *at: fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(at)})  # noqa: E731
    touch("touchStart", {"x": x, "y": y})
    for moved in range(30):
        touch("touchMove", {"x": x, "y": y - moved})
    touch("touchEnd")
    assert float(point.get_attribute("aria-valuenow")) == pytest.approx(7 + 29 * 40 / 210, abs=0.06)
    assert page.evaluate("scrollY") == 0


def test_a_search_for_settings_goes_on_visibly_and_ends_when_a_point_moves(open_page):  # noqa: F811
    page = open_page("#window?strengths=-6,-4,-2,0,2,4,6,8")
    drawn(page)
    assert page.get_by_role("button", name="Add an environment").is_disabled()
    page.get_by_role("button", name="Search for settings").click()
    page.get_by_role("button", name="Stop").wait_for(timeout=60_000)
    assert "advice=on" in page.url
    page.get_by_role("slider", name="Strength of environment 1").press("ArrowUp")
    assert "advice" not in page.url
    page.locator("#work").wait_for(state="hidden", timeout=60_000)
    page.evaluate("location.hash = '#window?strengths=-5,7&advice=on'")
    answered(page, "Advised: step size")
    assert page.locator(".advice li").count() == 4


def test_strengths_that_are_typed_wrong_are_explained(open_page):  # noqa: F811
    page = open_page("#window")
    drawn(page)
    field = page.get_by_label("Strengths ξ of the environments")
    field.fill("1, two")
    field.press("Enter")
    page.locator("#alert", has_text="strengths must be 2 to 8 numbers").wait_for(timeout=60_000)
    field.fill("1, 2")
    field.press("Enter")
    answered(page, "The strengths never change sign (from")
    page.locator(".advice", has_text="never change sign").wait_for()
    page.locator("#alert").wait_for(state="hidden")


def test_jumps_are_those_of_the_library_and_offshoots_an_action(open_page):  # noqa: F811
    from holdfast.completion.training import simulate_completion

    page = open_page("#jumps?steps=5000&offshoot_steps=2000&seed=4")
    drawn(page)
    page.get_by_role("button", name="Add offshoots").click()
    answered(page, "Offshoots from rank")
    found = numbers(page)
    settings = JumpsSettings(**found["settings"])
    assert (settings.steps, settings.offshoots) == (5000, 5)
    simulation = simulate_completion(settings.simulated())
    errors = simulation.problem.test_error(simulation.paths.fitted)
    np.testing.assert_allclose(found["curves"]["test_error"], errors, rtol=1e-5)
    np.testing.assert_allclose(found["curves"]["offshoots"]["end"], simulation.offshoot_errors, rtol=1e-5)
    with page.expect_download() as download:
        page.get_by_role("button", name="“Test error” as PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as download:
        page.get_by_role("button", name="Numbers (CSV)").click()
    heading = Path(download.value.path()).read_text(encoding="utf-8").splitlines()[0]
    assert heading.startswith('"step","ratio_run_1"')
    page.get_by_role("button", name="Remove the offshoots").click()
    page.wait_for_timeout(500)
    drawn(page)
    assert "offshoots=" not in page.url


def test_a_long_training_can_be_stopped(open_page):  # noqa: F811
    page = open_page("#jumps?steps=1000")
    drawn(page)
    page.evaluate("location.hash = '#jumps?problem=random&dimension=20&width=20&depth=6&steps=100000&seeds=32'")
    page.get_by_role("button", name="Stop").click(timeout=60_000)
    page.locator("#notice", has_text="Stopped").wait_for()
    page.locator("#work").wait_for(state="hidden")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fragment", ["#window?strengths=-8,-5,-2,0,1,4,7,9", "#jumps?steps=2000&offshoots=2"])
def test_views_fit_their_window_and_everything_has_a_name(open_page, fragment, size, scheme):  # noqa: F811
    page = open_page(fragment, size, color_scheme=scheme)
    drawn(page)
    fits_and_is_accessible(page)
    assert page.evaluate("[...document.querySelectorAll('figure svg')].every((each) => each.ariaLabel.length > 5)")
    assert page.evaluate("[...document.querySelectorAll('[role=slider]')].every((each) => each.ariaValueNow !== null)")


def test_inputs_that_mean_nothing_are_hidden(open_page):  # noqa: F811
    page = open_page("#jumps?steps=1000")
    drawn(page)
    of_random = ("Dimension", "Rank", "Share of entries observed", "Seed of the matrix")
    assert not any(page.get_by_label(label, exact=True).is_visible() for label in of_random)
    assert page.get_by_label("ε of the matrix").is_visible()
    assert not page.get_by_label("Ridge of offshoots").is_visible()
    page.get_by_label("Matrix", exact=True).select_option("random")
    page.get_by_label("Algorithm").select_option("mini-batch")
    assert all(page.get_by_label(label, exact=True).is_visible() for label in of_random)
    assert page.get_by_label("Entries in a mini-batch").is_visible()
    assert not page.get_by_label("ε of the matrix").is_visible()
    drawn(page)
