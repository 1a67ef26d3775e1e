"""Programs of sweeps: those of the library are their simulations, and those of users are imported or refused."""

import sys

import numpy as np
import pytest

from holdfast.completion.settings import CompletionSettings
from holdfast.completion.summary import summarise
from holdfast.completion.training import simulate_completion
from holdfast.sensing.network import QuadraticNetworkSettings, execute_network
from holdfast.sweeps import sweep
from holdfast.sweeps.programs import RESERVED

pytestmark = pytest.mark.usefixtures("users_folder")


def test_matrix_completion_is_that_of_its_simulation(tmp_path):
    settings = {"steps": 3000, "every": 100}
    data = sweep({**settings, "seed": 5}, {"step_size": [0.2, 0.4]}, seeds=6, program="matrix-completion", out=tmp_path)
    assert {*data["rank"].values.flat} == {1, 2}  # some of the runs have jumped
    for step_size in (0.2, 0.4):
        done = simulate_completion(CompletionSettings(**settings, step_size=step_size, seeds=6, seed=5))
        found, runs = data.sel(step_size=step_size), summarise(done).runs
        assert found["rank"].values.tolist() == [run.rank for run in runs]
        assert found["jumps"].values.tolist() == [len(run.jumps) for run in runs]
        for name in ("train_error", "test_error"):
            np.testing.assert_allclose(found[name], [getattr(run, name) for run in runs], rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(found["ratio"], [run.ratio[-1] for run in runs], rtol=1e-4, atol=1e-9)


def test_a_quadratic_network_is_that_of_its_simulation(tmp_path):
    settings = {"dimension": 5, "batch_size": 200, "steps": 30, "every": 10}
    axes = {"heterogeneity": [0.0, 4.0], "batching": ["hetero", "pooled"]}
    options = {"seeds": 3, "program": "quadratic-network", "record": "trajectories", "out": tmp_path}
    data = sweep({**settings, "seed": 5}, axes, **options)
    for point in ({"heterogeneity": 0.0, "batching": "pooled"}, {"heterogeneity": 4.0, "batching": "hetero"}):
        alone = execute_network(QuadraticNetworkSettings(**settings, **point, seeds=3, seed=5))
        found = data.sel(point)
        assert found["step"].values.tolist() == alone.steps.tolist()
        assert found["diverged_at"].values.tolist() == alone.diverged_at.tolist()
        for name, values in alone.values.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-6, err_msg=name)
    assert np.ptp(data["spurious"].isel(step=-1).values) > 1e-3  # points differ


def _of_a_notebook(settings, seeds):
    return {}


_of_a_notebook.__module__, _of_a_notebook.__name__, _of_a_notebook.__qualname__ = "__main__", "main_fn", "main_fn"


def test_a_program_of_the_user_sees_settings_and_seeds(tmp_path):
    data = sweep({"seed": 10}, {"scale": [1.0, 3.0]}, seeds=70, program="programs_of_a_user:square", out=tmp_path)
    np.testing.assert_array_equal(data["square"].sel(scale=3.0), 3.0 * np.arange(10, 80.0) ** 2)
    np.testing.assert_array_equal(data["row"].sel(scale=3.0).isel(row_1=1), 3.0 * np.arange(10, 80.0))


def test_modules_in_the_working_directory_are_found_by_the_sweep_alone(tmp_path, monkeypatch):
    (tmp_path / "lies_here.py").write_text("def f(settings, seeds):\n    import beside\n    return beside.g(seeds)")
    (tmp_path / "beside.py").write_text("def g(seeds):\n    return {'doubled': 2.0 * seeds}")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    data = sweep({}, {"scale": [1.0]}, seeds=3, program="lies_here:f", out=tmp_path / "runs")
    np.testing.assert_array_equal(data["doubled"], [[0.0, 2.0, 4.0]])
    assert sys.path == before


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("no_such_module:f", "program must name a module that can be imported here"),
        ("programs_that_break:f", "that can be imported here, got 'programs_that_break:f': SyntaxError"),
        ("programs_of_a_user:nothing", "program must name a function of the module programs_of_a_user, got 'nothing'"),
        ("programs_of_a_user:NUMBER", "program must name a function"),
        (lambda settings, seeds: {}, r"program must be a function of a module, .* and pass mine\.my_function\), got"),
        (
            _of_a_notebook,
            r"can import \(put it into a file such as mine\.py and pass mine\.main_fn\), got __main__:main_fn",
        ),
    ],
)
def test_programs_that_cannot_be_used_are_refused_before_anything_is_written(program, words, tmp_path, monkeypatch):
    (tmp_path / "programs_that_break.py").write_text("def f(")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=words):
        sweep({}, {"scale": [1.0]}, program=program, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("program", ["of_name", "of_dimension"])
@pytest.mark.parametrize("name", sorted({"cell_failed", "finished", "seconds", "seed"} | RESERVED))
def test_names_of_the_result_are_refused_before_a_cell_is_saved(name, program, tmp_path):
    with pytest.warns(UserWarning, match=f"failed.*none of .*{name}.*, got '{name}'"):
        data = sweep({"name": name}, {"scale": [1.0]}, seeds=2, program=f"programs_of_a_user:{program}", out=tmp_path)
    assert not data["finished"].any()


@pytest.mark.parametrize("name", ["cell_failed", "finished", "quantile", "point"])
def test_names_of_the_result_are_refused_as_axes_before_anything_is_written(name, tmp_path):
    with pytest.raises(ValueError, match=f"none of the names .*, got '{name}'"):
        sweep({"scale": 1.0}, {name: [1.0]}, program="programs_of_a_user:square", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_share_of_diverged_runs_is_not_replaced_by_a_variable_of_its_name(tmp_path):
    options = {"seeds": 2, "program": "programs_of_a_user:with_own_share", "record": "quantiles", "out": tmp_path}
    with pytest.warns(UserWarning, match="leave the name diverged to the share"):
        sweep({}, {"scale": [1.0]}, **options)
