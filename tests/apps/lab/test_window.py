"""The window that is drawn is that of the library, and no strengths that a pointer can choose break it."""

import re
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.apps.cli.main import _parse
from holdfast.apps.lab.inputs import read
from holdfast.apps.lab.server import STATIC, encoded
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.window import (
    FEWEST,
    LARGEST_STRENGTH,
    MOST,
    RUN,
    RUNS,
    SEARCHED,
    VIEW,
    WindowSettings,
    code,
)
from holdfast.core.worker import StoppedError, working
from holdfast.sensing.environments import table
from holdfast.theory.advice import advise
from holdfast.theory.lyapunov import two_point_exponent, two_point_threshold
from holdfast.theory.shares import simulate_shares
from holdfast.theory.tails import stationary_law


def computed(chosen):
    parts = {}
    data = VIEW.compute(chosen, Context(parts.__setitem__, lambda done, total: None, lambda number: None))
    return parts | data


def test_curves_and_window_are_those_of_two_strengths():
    """The closed forms for strengths s -+ M, at s = 1 and M = 6."""
    found = computed(WindowSettings())
    curve = found["exponents"]
    np.testing.assert_allclose(curve["spurious"], two_point_exponent(curve["step_size"], 1.0, 6.0), atol=1e-12)
    np.testing.assert_allclose(curve["invariant"], np.log(1 + curve["step_size"]))
    assert two_point_threshold(found["window"]["low"], 1.0) == pytest.approx(6.0)
    within = (curve["step_size"] > found["window"]["low"]) & (curve["step_size"] < found["window"]["high"])
    assert (curve["spurious"][within] < 0).all()
    assert within.any()
    assert found["point"]["exponent"] == pytest.approx(two_point_exponent(0.1, 1.0, 6.0))


def test_the_tail_is_drawn_as_the_library_knows_it():
    chosen = WindowSettings(strengths="-6, 0.5, 1, 8", step_size=0.08, batch_size=2000, steps=60)
    tail, environments = computed(chosen)["tail"], table([-6.0, 0.5, 1.0, 8.0])
    law = stationary_law(environments, 0.08, batch_size=2000)
    drawn = tail["law"]
    assert len(drawn["share"]) > 50
    np.testing.assert_allclose(drawn["probability"], [law.above(share) for share in drawn["share"]], atol=1e-12)
    shares = simulate_shares(environments, 0.08, 60, 1e-3, batch_size=2000, dimension=100, runs=RUNS)
    # Of so many runs, counted by themselves, as many have at least the share of each point.
    reached = [(shares.spurious >= share).mean() for share in tail["simulated"]["share"]]
    np.testing.assert_allclose(tail["simulated"]["probability"], reached)
    slope = np.diff(np.log(tail["power"]["probability"])) / np.diff(np.log(tail["power"]["share"]))
    np.testing.assert_allclose(slope, -law.tail_index / 2)


@pytest.mark.slow
def test_a_search_gives_the_advice_of_the_library():
    chosen = WindowSettings(strengths="-9, 11", advice="on", confidence=0.9, batch_size=20_000)
    found = computed(chosen)
    advised = advise(table([-9.0, 11.0]), confidence=0.9, tolerance=0.01, dimension=100, batch_size=20_000)
    settings = f"step size {advised.step_size:.3g}, init scale {advised.init_scale:.2g}, {advised.steps} steps."
    assert f"Advised: {settings}" in found["summary"]
    assert found["advice"][1].startswith(f"Advised: {settings}")
    assert "With batches of 20000" in found["advice"][-1]


def test_a_search_can_be_stopped():
    asked = iter([False] * 300)  # the simulation before the search has 200 steps
    with working(stopped=lambda: next(asked, True)), pytest.raises(StoppedError):
        computed(WindowSettings(advice="on", tolerance=0.02))


def test_nothing_is_searched_for_where_nothing_can_be_washed_out():
    found = computed(WindowSettings(strengths="1, 2", advice="on"))
    assert "never change sign" in found["advice"][0]
    assert found["summary"].startswith("The strengths never change sign (from 1 to 2). ")


@pytest.mark.parametrize(
    "strengths", ["", "1", "1, x", "1,,2", "nan, 1", "inf, 1", "1, 20.5", "1, 2, 3, 4, 5, 6, 7, 8, 9", "1; 2"]
)
def test_what_are_no_strengths_is_refused_by_the_computation(strengths):
    """As an event that the page shows, and not as a request that it should not have made."""
    chosen = read(WindowSettings, {"strengths": strengths})
    with pytest.raises(ValueError, match="strengths must be 2 to 8 numbers from -20 to 20"):
        computed(chosen)


@given(
    st.lists(st.integers(-200, 200).map(lambda tenth: tenth / 10), min_size=FEWEST, max_size=MOST),
    st.sampled_from([0.002, 0.05, 0.1, 0.4, 1.0]),
)
@settings(max_examples=15, deadline=None)
def test_any_strengths_have_an_answer(strengths, step_size):
    chosen = WindowSettings(strengths=", ".join(map(str, strengths)), step_size=step_size, steps=20)
    found = computed(chosen)
    assert len(re.findall(rf"[Ss]tep size {step_size:g} ", found["summary"])) == 1
    assert found["advice"]
    assert b"NaN" not in encoded(found)


@pytest.mark.parametrize("strengths", ["0, 0", "3, 3", "-10, 10", "-20, 20", "-3, -2", "0, 20", "-20, -20"])
@pytest.mark.parametrize("step_size", [0.1, 1.0])
def test_strengths_at_the_edges_have_an_answer(strengths, step_size):
    """No spread, a factor 1 + eta xi of zero, and step sizes at which all runs diverge."""
    assert computed(WindowSettings(strengths=strengths, step_size=step_size, steps=20))["summary"]


@pytest.mark.parametrize("strengths", ["-5, 7", "3, -2.5", "-5, 1, 7"])
def test_copied_code_asks_what_the_page_asks(strengths, monkeypatch):
    """Python and the command reach `diagnose` with the strengths and the settings of the page."""
    import holdfast
    from holdfast.apps.cli.commands.simulations import execute_window
    from holdfast.theory import diagnosis

    asked = []

    def listen(environments, **given):
        asked.append((sorted(np.asarray(environments.strengths).ravel().tolist()), given))
        raise StoppedError

    monkeypatch.setattr(holdfast, "diagnose", listen)
    monkeypatch.setattr(diagnosis, "diagnose", listen)
    chosen = WindowSettings(strengths=strengths, step_size=0.07, batch_size=500, tolerance=0.02)
    copied = code(chosen)
    words = shlex.split(copied["command"])
    with pytest.raises(StoppedError):
        exec(copied["python"], {})
    with pytest.raises(StoppedError):
        execute_window(_parse(words[1:]))
    for values, given_settings in asked:
        assert values == sorted(chosen.values)
        given_settings.pop("noise_variance", None)
        assert given_settings == chosen.arguments((*RUN, *SEARCHED))
    assert len(asked) == 2


def test_the_page_allows_the_strengths_that_the_server_allows():
    script = (STATIC / "views" / "window.js").read_text(encoding="utf-8")
    (found,) = re.findall(r"BOUNDS = \{ fewest: (\d+), most: (\d+), largest: (\d+) \}", script)
    assert [float(each) for each in found] == [FEWEST, MOST, LARGEST_STRENGTH]
