import json
import shutil
from functools import partial

import numpy as np
import pytest

import holdfast_studies.comparison.runner as comparing
from holdfast.datasets import toy_dataset
from holdfast.sweeps.engines.dask import ProcessEngine
from holdfast.sweeps.store.store import LOST, Store
from holdfast_studies.comparison import (
    METHODS,
    PUBLIC_TESTS,
    ComparedMethod,
    PublicTest,
    compare,
    summarize,
    to_markdown,
)
from holdfast_studies.comparison.public_tests import GROUPS
from holdfast_studies.comparison.recorded import PUBLISHED, recorded_file
from sweeps.store.cell_files import cell_files

SMALL = {"tests": ("toy_1_1", "Example2"), "methods": ("oracle", "least_squares", "irm")}
FEW_ROWS = PublicTest("few_rows", "toy model", "regression", 2, partial(toy_dataset, 1.0, 1.0, samples=200))


def test_every_pair_that_applies_has_a_record_for_each_seed(small):
    comparison, _ = small
    assert {pair: len(records) for pair, records in comparison.cells.items()} == {
        ("toy_1_1", "oracle"): 2,
        ("toy_1_1", "least_squares"): 2,
        ("toy_1_1", "irm"): 2,
        ("Example2", "oracle"): 2,
        ("Example2", "irm"): 2,
    }
    assert max(comparison.values("toy_1_1", "oracle", "coefficient_error").values()) < 0.06
    assert comparison.values("Example2", "irm", "coefficient_error") == {}
    assert comparison.values("Example2", "least_squares", "error") == {}


def test_what_was_computed_is_reused(small, monkeypatch):
    comparison, out = small

    def refuse(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr("holdfast_studies.comparison.runner.compute_cells", refuse)
    assert compare(**SMALL, data_seeds=2, out=out) == comparison


def test_a_damaged_cell_is_computed_again_and_no_other(small, monkeypatch, tmp_path):
    comparison, out = small
    shutil.copytree(out, tmp_path, dirs_exist_ok=True)
    cell = cell_files(tmp_path)[0]
    cell.write_bytes(cell.read_bytes()[:30])
    counted = []
    compute = comparing.compute_cells
    monkeypatch.setattr(
        "holdfast_studies.comparison.runner.compute_cells", lambda *arguments: counted.append(1) or compute(*arguments)
    )
    again = compare(**SMALL, data_seeds=2, out=tmp_path)
    assert len(counted) == 1
    assert again.values("toy_1_1", "irm", "error") == comparison.values("toy_1_1", "irm", "error")
    assert compare(**SMALL, data_seeds=2, out=tmp_path) == again


def test_our_method_on_a_users_own_test(tmp_path):
    """On the toy model ours recovers the causes, least squares on all rows does not; objects and names mix."""
    comparison = compare([FEW_ROWS], [METHODS["hetero"], "least_squares"], out=tmp_path)
    assert {pair: set(cells) for pair, cells in comparison.cells.items()} == {
        ("few_rows", "hetero"): {0, 1},
        ("few_rows", "least_squares"): {0, 1},
    }
    ours, pooled = (comparison.values("few_rows", name, "coefficient_error") for name in ("hetero", "least_squares"))
    assert all(ours[seed] < 0.3 < pooled[seed] for seed in (0, 1))
    assert comparison.ranking("few_rows", "false_coefficient").leaders[0] == "hetero"
    (group,) = summarize(comparison).groups
    assert group.group.name == "own tests"
    assert "few_rows: Hetero (ours) leads" in to_markdown(summarize(comparison))
    # Nobody says which code decides the data of this test, so nothing is cached.
    assert compare([FEW_ROWS], ["least_squares"], out=tmp_path, only_cached=True).cells == {}


def test_a_users_own_method(tmp_path):
    """The mean of the training targets; the toy model is centred, so its error is the variance of the target."""

    def fit(dataset, seed):
        mean = dataset.train.targets.mean()
        return METHODS["least_squares"].fit(dataset, seed)._replace(predict=lambda inputs: np.full(len(inputs), mean))

    method = ComparedMethod("mean", "mean", "nothing to tune", ("regression",), fit, home=None)
    values = compare([FEW_ROWS], [method, "oracle"], out=tmp_path).values("few_rows", "mean", "error")
    targets = [FEW_ROWS.draw(seed).test.targets for seed in (0, 1)]
    assert np.allclose(list(values.values()), [np.var(each) for each in targets], rtol=0.02)


def test_a_result_that_is_deleted_meanwhile_is_a_failure_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(Store, "load", lambda self, key: None)
    comparison = compare([FEW_ROWS], ["least_squares"], out=tmp_path)
    assert list(comparison.failures.values()) == [LOST, LOST]
    assert comparison.cells == {}


def test_two_objects_of_one_name_are_refused(tmp_path):
    other = PublicTest("few_rows", "another", "regression", 2, FEW_ROWS.draw)
    with pytest.raises(ValueError, match="tests must have different names, got two of the name 'few_rows'"):
        compare([FEW_ROWS, other], ["hetero"], out=tmp_path)


def test_nothing_but_the_cache_is_used_if_asked(small):
    comparison, out = small
    wider = compare((*SMALL["tests"], "structural"), SMALL["methods"], data_seeds=3, out=out, only_cached=True)
    assert {pair: set(cells) for pair, cells in wider.cells.items()} == {
        pair: {0, 1, 2} if pair == ("Example2", "irm") else set(cells) for pair, cells in comparison.cells.items()
    }
    assert " n=2 (" in to_markdown(summarize(wider))


def test_groups_are_those_of_the_tests():
    assert tuple(dict.fromkeys(test.group for test in PUBLIC_TESTS.values())) == GROUPS
    assert {test for row in PUBLISHED.values() for test in row} <= set(PUBLIC_TESTS)


def test_seeds_side_by_side_are_saved_one_by_one(small, tmp_path, monkeypatch):
    """What is computed in blocks is found again seed by seed, and agrees with what each seed gives by itself."""
    monkeypatch.setattr("holdfast_studies.comparison.methods.explicit.STEPS", 30)
    chosen = {"tests": ["Example2"], "methods": ["irm", "oracle"], "recompute": True}
    blocks = compare(**chosen, data_seeds=3, out=tmp_path / "blocks", side_by_side=2)
    singly = compare(**chosen, data_seeds=3, out=tmp_path / "singly")
    for method in chosen["methods"]:
        one, other = (each.values("Example2", method, "error") for each in (blocks, singly))
        # 3 environments of 10,000 rows: rounding may take a row across the boundary
        assert np.allclose(list(one.values()), list(other.values()), atol=1e-3)
    assert compare(**chosen, data_seeds=2, out=tmp_path / "blocks", only_cached=True).cells == {
        pair: {seed: cells[seed] for seed in (0, 1)} for pair, cells in blocks.cells.items()
    }


def test_what_is_recorded_can_be_written_again(small, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast_studies.comparison.methods.explicit.STEPS", 30)
    comparison = compare(["Example2", "toy_1_1"], ["irm"], data_seeds=2, out=tmp_path, recompute=True)
    written = json.loads(recorded_file(comparison))
    assert list(written["cells"]) == ["Example2"]
    assert written["cells"]["Example2"]["irm"] == list(comparison.values("Example2", "irm", "error").values())
    assert "hours" in written["about"]


@pytest.mark.slow
def test_other_processes_compute_the_same(small, tmp_path):
    comparison, _ = small
    elsewhere = compare(**SMALL, data_seeds=2, out=tmp_path, engine=ProcessEngine(2))
    assert not elsewhere.failures
    for test, method in comparison.cells:
        assert elsewhere.values(test, method, "error") == comparison.values(test, method, "error")
