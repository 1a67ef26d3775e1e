"""Results: claims and sweeps of the folder that was named when the page was started, and of no other."""

import json
import math
import shlex

import numpy as np
import pytest
from starlette.testclient import TestClient

from apps.lab.cheap_views import cheap_signals
from holdfast.apps.cli.main import _parse
from holdfast.apps.lab.server import create_app, encoded
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.results import VIEW, ResultsSettings, open_reproduction, sweep_axes
from holdfast.core.statistics import Estimate
from holdfast.sweeps import open_sweep, sweep
from holdfast_studies.claims import Claim, Conditions

PIXEL = b"\x89PNG\r\n\x1a\n"


def computed(folder, **chosen):
    parts = {}
    context = Context(parts.__setitem__, lambda done, total: None, lambda number: None, results=folder)
    return parts | VIEW.compute(ResultsSettings(**chosen), context)


def claim(name, value, allowed=(0.5, math.inf)):
    return Claim(
        id=name,
        source="figure 3; eq. 10",
        statement=f"<b>{name}</b> is large.",
        settings="M = 6",
        measured=Estimate(value, value - 0.1, value + 0.1),
        allowed=allowed,
        conditions=Conditions(missed=("alpha is not below d^-2",)) if name.endswith("outside") else Conditions(),
        why="it grows",
    )


@pytest.fixture
def reproduction(tmp_path):
    claims = [claim("figure-3-weak", 0.9), claim("figure-30-strong", 0.2), claim("figure-3-outside", math.nan)]
    written = {
        "quick": True,
        "versions": {"jax": "0.10"},
        "seeds": {"figure_3": 64, "figure_30": 8},
        "failed": {"figure_4": "ValueError: no"},
        "claims": [each.asdict() for each in claims],
    }
    (tmp_path / "claims.json").write_text(json.dumps(written), encoding="utf-8")
    (tmp_path / "figure_3.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "figure_3.png").write_bytes(PIXEL)
    (tmp_path / "figure_30.png").write_bytes(PIXEL)
    return tmp_path


def test_claims_have_their_verdicts_ranges_and_experiments(reproduction):
    found = computed(reproduction)
    first, second, third = found["claims"]
    assert (first["verdict"], first["experiment"], first["allowed"]) == ("holds", "figure_3", (0.5, None))
    assert (second["verdict"], second["experiment"]) == ("does not hold", "figure_30")
    assert (third["verdict"], third["measured"]["value"]) == ("not measured", None)
    assert third["conditions"]["missed"] == ["alpha is not below d^-2"]
    assert "3 claims" in found["summary"]
    assert "quick look" in found["summary"]
    assert "figure_4" in found["summary"]
    assert found["figures"] == ["figure_3", "figure_30"]
    assert found["figure"]["source"].startswith("data:image/svg+xml;base64,")
    assert computed(reproduction, figure="figure_30")["figure"]["source"].startswith("data:image/png;base64,iVBORw")
    assert b"NaN" not in encoded(found)


def test_the_copied_code_lists_the_claims(reproduction, monkeypatch, capsys):
    code = computed(reproduction)["code"]
    monkeypatch.chdir(reproduction.parent)
    exec(code["python"], {})
    assert "does not hold | figure 3; eq. 10" in capsys.readouterr().out
    assert _parse(shlex.split(code["command"])[1:]).names == ("figure_3",)


def test_figures_are_listed_in_the_order_of_the_experiments(reproduction):
    path = reproduction / "claims.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"seeds": {"figure_30": 8}}))
    assert list(open_reproduction(reproduction).figures) == ["figure_30", "figure_3"]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "claims", "figure_3.svg", "figure_3/../figure_3"])
def test_a_figure_is_one_of_the_list_and_never_a_path(reproduction, name):
    (reproduction.parent / "secret.png").write_bytes(PIXEL)
    with pytest.raises(ValueError, match="figure must be one of figure_3, figure_30"):
        computed(reproduction, figure=name)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"claims": 3}', '{"claims": [{"id": 1}]}', "\x00", "[" * 10_000])
def test_a_damaged_file_is_said_to_be_one(tmp_path, content):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(ValueError, match=r"claims\.json must be written by"):
        computed(tmp_path)


def test_a_large_drawing_is_sent_as_pixels(reproduction, monkeypatch):
    monkeypatch.setattr("holdfast.apps.lab.views.results.LARGEST_DRAWING", 3)
    assert open_reproduction(reproduction).figure("figure_3").startswith("data:image/png")


def test_without_a_folder_the_page_says_how_to_name_one(tmp_path):
    assert "--results" in computed(None)["summary"]
    assert "neither" in computed(tmp_path)["summary"]
    with TestClient(create_app(), base_url="http://localhost", headers={"x-tab": "a" * 32}) as client:
        answer = client.post("/api/views/results", json={})
        assert "--results" in json.loads(answer.text.splitlines()[-1])["data"]["summary"]
        # No field of the view names a folder.
        assert client.post("/api/views/results", json={"folder": "/etc"}).status_code == 400


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    axes = {"step_size": [0.02, 0.05, 0.1, 0.2], "heterogeneity": [1.0, 4.0, 7.0], "order": ["independent", "cyclic"]}
    sweep({}, axes, seeds=5, out=folder, program=cheap_signals)
    return folder


def test_lines_are_medians_over_seeds(swept):
    found = computed(swept, at="order=cyclic")
    data = open_sweep(swept)
    assert list(sweep_axes(data)) == ["step_size", "heterogeneity", "order"]
    expected = data["spurious"].sel(order="cyclic").median("seed")
    for number, line in enumerate(found["drawn"]["series"]):
        np.testing.assert_allclose(line["y"], expected.isel(heterogeneity=number))
        assert (line["low"] <= line["y"]).all()
    assert [line["label"] for line in found["drawn"]["series"]] == [f"heterogeneity {m}" for m in (1, 4, 7)]
    assert all(line in found["summary"] for line in found["drawn"]["title"].splitlines())


def test_a_single_line_needs_no_further_axis(swept):
    (line,) = computed(swept, at="heterogeneity=4, order=cyclic", over="mean")["drawn"]["series"]
    expected = open_sweep(swept)["spurious"].sel(heterogeneity=4, order="cyclic").mean("seed")
    np.testing.assert_allclose(line["y"], expected)
    assert line["label"] == "spurious"


def test_a_map_has_rows_upwards_and_mean_over_seeds(swept):
    found = computed(swept, x="heterogeneity", y="step_size", over="mean", quantity="invariant")["drawn"]
    expected = open_sweep(swept)["invariant"].sel(order="independent").mean("seed").transpose("step_size", ...)
    np.testing.assert_allclose(found["values"], expected)
    assert (found["x"]["name"], found["y"]["name"]) == ("heterogeneity", "step_size")
    assert found["y"]["log"] or found["y"]["values"].tolist() == [0.02, 0.05, 0.1, 0.2]


def test_names_on_an_axis_are_numbered(swept):
    axis = computed(swept, x="order", at="heterogeneity=4")["drawn"]["x"]
    assert axis["labels"] == ["independent", "cyclic"]
    assert axis["values"].tolist() == [0, 1]


def test_the_copied_code_draws_the_same_sweep(swept, tmp_path, monkeypatch):
    code = computed(swept, x="step_size", y="heterogeneity", at="order=cyclic")["code"]
    arguments = _parse(shlex.split(code["command"])[1:])
    assert (arguments.x, arguments.y, arguments.at) == ("step_size", "heterogeneity", ("order=cyclic",))
    (tmp_path / swept.name).symlink_to(swept)
    monkeypatch.chdir(tmp_path)
    exec(code["python"], {})
    assert (tmp_path / "sweep.png").read_bytes().startswith(PIXEL)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"x": "seed"}, "got 'seed'"),
        ({"quantity": "../x"}, "quantity must be one of"),
        ({"at": "order"}, "name=value"),
        ({"at": "moon=1"}, "got 'moon'"),
        ({"at": "order=moon"}, "order must be fixed at one of"),
        ({"x": "step_size", "y": "step_size"}, "different axes"),
    ],
)
def test_what_cannot_be_drawn_is_said(swept, chosen, words):
    with pytest.raises(ValueError, match=words):
        computed(swept, **chosen)
