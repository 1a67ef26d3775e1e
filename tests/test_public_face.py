"""What `import holdfast` gives: names by tab completion, loaded on first use, with types for a type checker."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

NAMES = {
    "HeteroClassifier",
    "HeteroMatrixSensing",
    "HeteroQuadraticRegressor",
    "HeteroRegressor",
    "Settings",
    "Trajectory",
    "advise",
    "diagnose",
    "simulate",
}
SUBPACKAGES = {
    "algorithms",
    "batching",
    "comparison",
    "completion",
    "core",
    "datasets",
    "ensembles",
    "environments",
    "estimators",
    "experiments",
    "io",
    "losses",
    "measurements",
    "oracles",
    "plots",
    "problems",
    "reproduction",
    "sensing",
    "theory",
}

USER = """
import holdfast as hf

trajectory = hf.simulate(hf.Settings(steps=10))
reveal_type(trajectory)
reveal_type(hf.diagnose(hf.environments.two_point(1.0, 6.0)))
reveal_type(hf.HeteroRegressor())
hf.Settings(step_sise=0.1)
hf.simulation
"""


def test_dir_has_the_public_names_and_no_others():
    assert set(dir(holdfast)) == NAMES | SUBPACKAGES
    assert set(holdfast.__all__) == NAMES | SUBPACKAGES


@pytest.mark.parametrize("name", sorted(NAMES | SUBPACKAGES))
def test_every_public_name_loads_and_is_documented(name):
    assert getattr(holdfast, name).__doc__


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="frobnicate"):
        holdfast.frobnicate  # noqa: B018


def test_import_loads_neither_jax_nor_anything_else_that_is_slow():
    script = (
        "import sys, holdfast\n"
        "assert holdfast.__version__\n"
        "heavy = {'jax', 'numpy', 'xarray', 'pandas', 'sklearn', 'matplotlib', 'rich', 'tyro'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_a_users_type_checker_sees_the_types(tmp_path):
    """The package says that it is typed, and lazy names have the types of what they load."""
    assert (Path(holdfast.__file__).parent / "py.typed").exists()
    path = tmp_path / "user.py"
    path.write_text(USER)
    # The settings of the project, so that the run shares its cache.
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    for words in (
        'Revealed type is "holdfast.sensing.trajectory.Trajectory"',
        'fallback=holdfast.theory.diagnosis.Diagnosis]"',
        'Revealed type is "holdfast.estimators.regressor.HeteroRegressor"',
        'Unexpected keyword argument "step_sise"',
        'has no attribute "simulation"',
    ):
        assert words in done.stdout, done.stdout
