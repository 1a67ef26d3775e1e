"""Settings of a view: what a browser may send, and what is said about everything else."""

import json
import math
import shlex
from dataclasses import fields

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.apps.cli.main import _parse
from holdfast.apps.lab.inputs import inputs, read, schema
from holdfast.apps.lab.view import VIEWS
from holdfast.apps.lab.views.oscillation import RECORDS, OscillationSettings, code


@pytest.mark.parametrize("name", VIEWS)
def test_defaults_are_allowed_and_the_form_can_be_sent(name):
    settings = VIEWS[name].load().settings
    described = json.loads(json.dumps(schema(settings), allow_nan=False))
    assert read(settings, {each["name"]: each["default"] for each in described}) == settings()
    assert all(each["label"] for each in described)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_size", 0.0),
        ("step_size", math.nan),
        ("step_size", math.inf),
        ("step_size", "0.1"),
        ("step_size", True),
        ("steps", 100.5),
        ("steps", 10**400),
        ("steps", None),
        ("dimension", 10_000),
        ("order", "sideways"),
        ("order", ["cyclic"]),
        ("seeds", "16"),
        ("seeds", 16.0),
        ("colour", 1),
    ],
)
def test_what_is_out_of_bounds_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        read(OscillationSettings, {name: value})


def test_a_slider_may_send_a_whole_number_as_a_float_and_gets_one():
    settings = read(OscillationSettings, {"steps": 300.0, "heterogeneity": 3})
    assert isinstance(settings.steps, int)
    assert isinstance(settings.heterogeneity, float)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
names = st.sampled_from([field.name for field in fields(OscillationSettings)])


@given(st.dictionaries(names | st.text(max_size=5), anything, max_size=4) | anything)
@settings(deadline=None)
@example({"step_size": -0.0})
def test_settings_are_within_their_bounds_or_refused_in_a_sentence(sent):
    try:
        found = read(OscillationSettings, sent)
    except ValueError:
        return
    for name, each in inputs(OscillationSettings).items():
        value = getattr(found, name)
        assert each.checked(name, value) == value
    assert found.simulated()["hetero"].steps // found.simulated()["hetero"].every <= 2 * RECORDS


@given(st.fixed_dictionaries({
    "step_size": st.floats(0.005, 0.5),
    "order": st.sampled_from(["independent", "reshuffled", "cyclic"]),
    "batching": st.sampled_from(["pooled", "full"]),
    "steps": st.integers(50, 2000),
}))  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_copied_code_is_the_simulation_that_is_drawn(sent):
    """The command line's own parser, and Python, read the copied text back to the settings that were simulated."""
    chosen = read(OscillationSettings, sent)
    copied = code(chosen)
    simulated = chosen.simulated()
    read_back = [_parse(shlex.split(each)[1:]).settings for each in copied["command"].split(" && ")]
    assert read_back == list(simulated.values())
    seen = []
    script = copied["python"].replace("hf.simulate(", "seen.append(").split("for trajectory")[0]
    exec(script, {"seen": seen})
    assert seen == list(simulated.values())
