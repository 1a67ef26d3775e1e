"""Sweeps that run: the values are those of the simulation, whatever was computed before, together or elsewhere."""

import importlib.metadata
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from holdfast import Settings, simulate
from holdfast.core.outcome import outcome_codes, outcomes
from holdfast.core.run import _advance
from holdfast.sensing.simulation import execute
from holdfast.sweeps import QUANTILES, open_sweep, plot_sweep, results, run_sweep, specify, sweep, sweep_status
from holdfast.sweeps.cells import CellProgram
from holdfast.sweeps.engines import RefusedWorkerError, ThreadEngine
from holdfast.sweeps.engines.remote import Payload
from holdfast.sweeps.programs import program_of
from holdfast.sweeps.results import results_path
from holdfast.sweeps.store.work import CellWork
from holdfast_studies import reproduce
from holdfast_studies.comparison import compare
from sweeps.store.cell_files import cell_files, contents, notes
from sweeps.store.waiting import wait_until

pytestmark = pytest.mark.usefixtures("users_folder")

SMALL = {"dimension": 6, "steps": 20, "every": 5, "oracle": "population"}
AXES = {"step_size": [0.05, 0.1], "heterogeneity": [1.0, 3.0, 6.0]}


@pytest.fixture(scope="module")
def trajectory():
    axes = {name: tuple(values) for name, values in AXES.items()}
    return simulate(Settings(**SMALL, **axes, seeds=4, seed=3))


def test_trajectories_are_those_of_the_simulation(trajectory, tmp_path):
    data = sweep({**SMALL, "seed": 3}, AXES, seeds=4, record="trajectories", out=tmp_path)
    assert data["seed"].values.tolist() == [3, 4, 5, 6]
    for name, values in trajectory.data.data_vars.items():
        assert data[name].dims == values.dims
        # Slabs of other shapes differ by rounding, which a run amplifies in 20 steps by less than 100.
        np.testing.assert_allclose(data[name], values, rtol=2e-5, atol=1e-7)


def test_final_values_are_the_last_of_the_trajectories(trajectory, tmp_path):
    data = sweep({**SMALL, "seed": 3}, AXES, seeds=4, out=tmp_path)
    np.testing.assert_allclose(data["spurious"], trajectory.final["spurious"], rtol=2e-5, atol=1e-7)
    assert data["spurious"].dims == ("step_size", "heterogeneity", "seed")
    assert data["outcome"].values.tolist() == trajectory.final["outcome"].values.tolist()


def test_quantiles_are_those_of_the_trajectories(trajectory, tmp_path):
    data = sweep({**SMALL, "seed": 3}, AXES, seeds=4, record="quantiles", out=tmp_path)
    expected = trajectory.data["spurious"].quantile(list(QUANTILES), "seed")
    np.testing.assert_allclose(data["spurious"].transpose(*expected.dims), expected, rtol=2e-5, atol=1e-7)
    assert run_sweep(specify({**SMALL, "seed": 3}, AXES, seeds=5, record="quantiles"), tmp_path).computed == 6


def test_quantiles_leave_out_runs_that_diverged(tmp_path):
    settings = {"dimension": 4, "steps": 40, "every": 10, "oracle": "population", "step_size": 0.5}
    whole = sweep(settings, {"heterogeneity": [3.0]}, seeds=32, record="trajectories", out=tmp_path / "whole")
    data = sweep(settings, {"heterogeneity": [3.0]}, seeds=32, record="quantiles", out=tmp_path / "quantiles")
    gone = (whole["diverged_at"] >= 0) & (whole["step"] >= whole["diverged_at"])
    share = gone.mean("seed").values[0]
    assert 0 < share[-1] < 1
    np.testing.assert_allclose(data["diverged"].values[0], share)
    left = whole["spurious"].where(~gone).quantile(0.5, "seed").values[0]
    np.testing.assert_allclose(data["spurious"].sel(quantile=0.5).values[0], left, rtol=2e-5)


def test_outcome_codes_are_those_of_the_outcomes():
    settings = Settings(dimension=4, steps=60, seeds=24, oracle="population", step_size=(0.05, 0.2, 0.5))
    records = execute(settings)
    expected = [int(outcome.code) for outcome in outcomes(records)]
    assert outcome_codes(records).tolist() == expected
    assert len(set(expected)) > 1


def test_cells_that_differ_in_swept_settings_share_one_compilation(tmp_path):
    before = _advance._cache_size()
    settings = {"dimension": 11, "oracle": "population"}  # no other test has this dimension
    sweep(settings, {**AXES, "init_scale": [1e-3, 1e-2]}, seeds=3, out=tmp_path)
    assert _advance._cache_size() == before + 1


def test_more_values_and_seeds_compute_only_what_is_new(tmp_path):
    settings, few = {**SMALL, "seed": 3}, {"step_size": [0.1], "heterogeneity": [1.0, 6.0]}
    sweep(settings, few, seeds=4, out=tmp_path / "grown")
    old = contents(tmp_path / "grown")
    more = specify(settings, {"step_size": [0.05, 0.1], "heterogeneity": [1.0, 3.0, 6.0]}, seeds=8)
    assert run_sweep(more, results_path(tmp_path / "grown")).computed == 2 * 3 * 2 - 2
    assert old.items() <= contents(tmp_path / "grown").items()
    whole = sweep(settings, {**AXES, "seeds_per_cell": 4}, seeds=8, out=tmp_path / "whole")
    xr.testing.assert_identical(
        open_sweep(tmp_path / "grown").drop_vars("seconds").drop_attrs(), whole.drop_vars("seconds").drop_attrs()
    )


def test_a_sweep_that_resumes_reports_what_was_finished_before(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.sweeps.store.work.REPORTING", 0.0)
    path = results_path(tmp_path)
    few, more = (
        specify({}, {"scale": [*range(number)]}, seeds=2, program="programs_of_a_user:square") for number in (2, 5)
    )
    reports = []
    run_sweep(few, path)
    outcome = run_sweep(more, path, ThreadEngine(1), lambda *words: reports.append(words))
    assert reports[0] == (2, 5, 0.0, None, {})
    assert [words[:2] for words in reports] == [(done, 5) for done in (2, 3, 4, 5, 5)]
    assert (outcome.computed, outcome.finished_before) == (3, 2)
    cell_files(tmp_path)[1].write_bytes(b"")  # damage, which is found late
    damaged = []
    outcome = run_sweep(more, path, ThreadEngine(1), lambda *words: damaged.append(words))
    assert [words[:2] for words in damaged] == [(5, 5)] * 3
    assert (outcome.computed, outcome.finished_before, outcome.damaged) == (1, 4, 1)
    calls = []
    progress = lambda done, total: calls.append((done, total))  # noqa: E731
    sweep({}, {"scale": [*range(6)]}, seeds=2, program="programs_of_a_user:square", out=tmp_path, progress=progress)
    assert (calls[0], calls[-1]) == ((5, 6), (6, 6))


def test_a_sweep_returns_what_it_was_asked_for_whatever_another_one_asks_for_meanwhile(tmp_path):
    other = []

    def interfere(done, total):
        if not other:
            other.append(sweep({}, {"scale": [3.0]}, seeds=5, program="programs_of_a_user:square", out=tmp_path))

    options = {"seeds": 2, "program": "programs_of_a_user:square", "out": tmp_path}
    data = sweep({}, {"scale": [2.0, 1.0]}, progress=interfere, **options)
    assert data["scale"].values.tolist() == [2.0, 1.0]
    assert data["square"].sel(seed=1).values.tolist() == [2.0, 1.0]
    assert other[0]["square"].values.tolist() == [[0.0, 3.0, 12.0, 27.0, 48.0]]
    assert open_sweep(tmp_path)["scale"].values.tolist() == [3.0]


def test_another_setting_is_refused_by_name(tmp_path):
    sweep(SMALL, {"bias": [0.0]}, seeds=4, out=tmp_path)
    before = contents(tmp_path)
    for change, words in (
        ({"dimension": 7}, r"settings.dimension must be 6 as in the folder \(choose another folder\), got 7"),
        ({"every": 10}, r"settings.every must be 5 as in the folder"),
    ):
        with pytest.raises(ValueError, match=words):
            sweep({**SMALL, **change}, {"bias": [0.0]}, seeds=1, out=tmp_path)
    for options, words in (
        ({"record": "trajectories"}, "record must be 'final' as in the folder"),
        ({"program": "quadratic-network"}, "program must be 'matrix-sensing' as in the folder"),
    ):
        with pytest.raises(ValueError, match=words):
            sweep({"dimension": 6, "steps": 20}, {"bias": [0.0]}, seeds=1, out=tmp_path, **options)
    assert contents(tmp_path) == before


def test_something_that_is_no_engine_is_refused_before_anything_is_written(tmp_path):
    chosen = specify(SMALL, {"bias": [0.0]}, seeds=4)
    calls = {
        "swept": lambda out: sweep(SMALL, {"bias": [0.0]}, out=out, engine="threads"),
        "run": lambda out: run_sweep(chosen, out, "threads"),
        "reproduced": lambda out: reproduce({}, out, engine="threads"),
        "compared": lambda out: compare(out=out, engine="threads"),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=r"engine must be None or .* ThreadEngine\(4\), .*, got 'threads'"):
            call(tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("package", ["jax", "jaxlib", "numba", "numpy"])
def test_cells_of_another_version_of_what_computes_are_left_aside(package, tmp_path, monkeypatch):
    chosen = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:square")
    run_sweep(chosen, tmp_path / "r.zarr")
    version = importlib.metadata.version
    other = lambda name: "0.0.1" if name == package else version(name)  # noqa: E731
    monkeypatch.setattr("holdfast.sweeps.store.naming.installed_version", other)
    outcome = run_sweep(chosen, tmp_path / "r.zarr")
    assert (outcome.computed, outcome.finished_before) == (1, 0)
    assert outcome.notes == ("1 cell of other code left aside; `holdfast sweep-status --prune` deletes them",)
    assert open_sweep(tmp_path / "r.zarr").attrs["packages"][package] == "0.0.1"


def test_overwriting_replaces_what_is_of_another_setting_and_nothing_for_a_request_that_is_wrong(tmp_path):
    path = tmp_path / "results.zarr"
    program = "programs_of_a_user:square"
    run_sweep(specify({"other": "x"}, {"scale": [1.0]}, seeds=2, program=program), path)
    before = contents(tmp_path)
    for name in ("width/scale", ".width"):
        with pytest.raises(ValueError, match=f"must be plain words, got '{name}'"):
            run_sweep(specify({}, {name: [1.0]}, seeds=2, program=program), path, overwrite=True)
    assert contents(tmp_path) == before
    for settings, axes in (({"other": "y"}, {"scale": [1.0]}), ({"other": "y"}, {"width": [1.0], "scale": [2.0]})):
        with pytest.raises(ValueError, match="choose another folder"):
            run_sweep(specify(settings, axes, seeds=2, program=program), path)
        assert run_sweep(specify(settings, axes, seeds=2, program=program), path, overwrite=True).computed == 1
        assert len(cell_files(tmp_path)) == 1
        run_sweep(specify({"other": "x"}, {"scale": [1.0]}, seeds=2, program=program), path, overwrite=True)


def test_points_of_a_random_design(tmp_path):
    axes = {"design": "random", "count": 5, "bias": {"low": 0.0, "high": 1.0}, "init_scale": [1e-3, 1e-2]}
    data = sweep(SMALL, axes, seeds=4, out=tmp_path)
    assert data["spurious"].dims == ("point", "seed")
    one = data.isel(point=3)
    alone = execute(Settings(**SMALL, bias=float(one["bias"]), init_scale=float(one["init_scale"]), seeds=4))
    np.testing.assert_allclose(one["spurious"], alone.values["spurious"][:, -1], rtol=1e-5)


def test_a_folder_that_takes_no_files_is_refused_before_anything_is_computed():
    chosen = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:square")
    words = r"out must lie in a folder that can be written to, got '/proc/xx'"
    for call in (
        lambda: sweep({}, {"scale": [1.0]}, program="programs_of_a_user:square", out="/proc/xx"),
        lambda: run_sweep(chosen, "/proc/xx"),
        lambda: run_sweep(chosen, "/proc/xx/results.zarr"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_failing_cell_leaves_the_others_alone_and_is_tried_again(tmp_path):
    chosen = specify({}, {"scale": [1.0, 2.0, 3.0, 4.0]}, seeds=2, program="programs_of_a_user:picky")
    for _ in range(2):
        outcome = run_sweep(chosen, results_path(tmp_path), ThreadEngine(2))
        assert {reason: len(cells) for reason, cells in outcome.failures.items()} == {
            "programs_of_a_user.py:14: ArithmeticError: scale 3.0 is too large": 1,
            "programs_of_a_user.py:14: ArithmeticError: scale 4.0 is too large": 1,
        }
    data = open_sweep(tmp_path)
    assert data["finished"].all("seed").values.tolist() == [True, True, False, False]
    assert np.isnan(data["square"].sel(scale=3.0)).all()
    status = sweep_status(tmp_path)
    assert (status.finished, status.cells, sum(status.failures.values())) == (2, 4, 2)
    with pytest.warns(UserWarning, match=r"1 cell failed: .* is too large \(at scale=3\.0, seeds 0 to 1\); the same"):
        sweep({}, {"scale": [1.0, 3.0]}, seeds=2, program="programs_of_a_user:picky", out=tmp_path)


def test_a_worker_that_knows_an_older_program_is_refused(tmp_path, monkeypatch):
    """It would answer in no time, take cell after cell, and fail nearly the whole sweep."""
    chosen = specify({}, {"scale": [1.0]}, seeds=2, program="programs_of_a_user:square")
    code, folder = program_of(chosen.program).code(), str(Path(__file__).parent)
    store, cells = results.prepare(chosen, tmp_path / "results.zarr")
    current, missing = (
        Payload.of(CellWork(store, CellProgram(replace(chosen, program=name, axes=()), folder), None, code))
        for name in (chosen.program, "no_such_module:square")
    )
    assert current.open("worker 3")([*cells])[0].state == "computed"
    current.forget()
    digest = code.versions["code with the digest"]
    monkeypatch.setattr("holdfast.sweeps.store.naming.fingerprint", lambda modules: "an older program")
    words = f"worker 3 has code with the digest an older program, we have {digest}; install the same"
    with pytest.raises(RefusedWorkerError, match=words):
        current.open("worker 3")
    with pytest.raises(RefusedWorkerError, match=r"worker 3 cannot open the work: .*imported here, got 'no_such_mod"):
        missing.open("worker 3")


def test_a_program_that_returns_something_else_fails_with_the_reason(tmp_path):
    outcome = run_sweep(specify({}, {"scale": [1.0]}, program="programs_of_a_user:wrong"), tmp_path / "x.zarr")
    assert list(outcome.failures) == [
        "ValueError: the program must return one value of each name for each of 16 seeds, got 17"
    ]


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        "[settings]\ndimension = 40\nsteps = 4000\n[sweep]\nbias = [0.0, 0.5, 1.0]\nseeds = 64\nseeds_per_cell = 8"
    )
    command = [sys.executable, "-m", "holdfast", "sweep", str(spec), "--out", str(tmp_path / "runs")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: cell_files(tmp_path / "runs") or process.poll() is not None)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "holdfast: interrupted; finished cells are saved. Run the same command to resume\n"
    assert 0 < sweep_status(tmp_path / "runs").finished < 24
    assert notes(tmp_path, ".lease") == []


def test_figures_have_labels_bands_and_the_medians(tmp_path):
    data = sweep(SMALL, {**AXES, "batching": ["hetero", "pooled"]}, seeds=4, out=tmp_path)
    figure = plot_sweep(data, "heterogeneity", quantity="invariant", at={"step_size": 0.09})
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["hetero", "pooled"]
    expected = data["invariant"].sel(step_size=0.1).median("seed").values.T
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], expected)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("heterogeneity", "invariant")
    for over in ("mean", "share"):
        figure = plot_sweep(data, "step_size", "heterogeneity", over=over, threshold=1e-6)
        panels = [axes for axes in figure.axes if axes.get_xlabel()]
        assert [axes.get_title("left") for axes in panels] == ["batching hetero", "batching pooled"]
        values = data["spurious"].isel(batching=1)
        wanted = values.mean("seed") if over == "mean" else (values > 1e-6).mean("seed")
        drawn = panels[1].collections[0].get_array()
        np.testing.assert_allclose(drawn, wanted.transpose("heterogeneity", "step_size"), rtol=1e-6)
    for arguments, words in (
        ({"x": "heterogenity"}, r"x and y must be axes .*, got 'heterogenity' \(perhaps heterogeneity\)"),
        ({"x": "bias"}, "x and y must be axes"),
        ({"x": "step_size", "quantity": "spurius"}, r"quantity must be one of .* \(perhaps spurious\)"),
        ({"x": "step_size", "at": {"batching": "full"}}, "batching must be fixed at one of hetero, pooled, got 'full'"),
    ):
        with pytest.raises(ValueError, match=words):
            plot_sweep(data, **arguments)


def test_bands_are_two_standard_errors_and_axes_are_sorted():
    generator = np.random.default_rng(0)
    values = generator.normal(size=(3, 4, 6))
    coordinates = {"step_size": [0.3, 0.1, 0.2], "bias": [0.0, 3.0, 1.0, 2.0]}
    data = xr.Dataset({"spurious": (("step_size", "bias", "seed"), values)}, coordinates)
    (band,) = plot_sweep(data, "step_size", over="mean", at={"bias": 1.0}).axes[0].collections
    points, heights = band.get_paths()[0].vertices.T
    for point, row in ((0.1, values[1, 2]), (0.3, values[0, 2])):
        error = np.sqrt(((row - row.mean()) ** 2).sum() / 5 / 6)
        ends = heights[points == point]
        np.testing.assert_allclose([ends.min(), ends.max()], [row.mean() - 2 * error, row.mean() + 2 * error])
    shuffled, ordered = (plot_sweep(each, "step_size", "bias") for each in (data, data.sortby(["step_size", "bias"])))
    one, other = (figure.axes[0].collections[0] for figure in (shuffled, ordered))
    np.testing.assert_array_equal(one.get_array(), other.get_array())
    np.testing.assert_array_equal(one.get_coordinates(), other.get_coordinates())
    assert (np.diff(one.get_coordinates()[:, :, 0], axis=1) > 0).all()
    assert len(plot_sweep(data.isel(seed=[0]), "step_size", over="mean").axes[0].lines) == 4  # one run has no band


@pytest.mark.slow
def test_a_sweep_runs_where_nothing_but_jax_is_installed(tmp_path):
    script = (
        "import sys\n"
        "absent = 'xarray zarr pandas matplotlib sklearn rich cyclopts lazy_loader threadpoolctl fsspec'.split()\n"
        "sys.modules.update(dict.fromkeys(absent))\n"
        "from holdfast.sweeps.running import run_sweep\n"
        "from holdfast.sweeps.specification import specify\n"
        "settings = {'dimension': 6, 'steps': 20, 'every': 5, 'oracle': 'population', 'seed': 3}\n"
        "axes = {'step_size': [0.05, 0.1], 'heterogeneity': [1.0, 3.0, 6.0]}\n"
        "print(run_sweep(specify(settings, axes, seeds=4), sys.argv[1]).computed)\n"
    )
    path = tmp_path / "results.zarr"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert done.stdout == "6\n", done.stderr
    whole = sweep({**SMALL, "seed": 3}, AXES, seeds=4, out=tmp_path / "here")
    xr.testing.assert_equal(open_sweep(path).drop_vars("seconds"), whole.drop_vars("seconds"))
