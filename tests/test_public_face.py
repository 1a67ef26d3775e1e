"""The public names of the package and of its parts: listed, loaded on first use, explained, with types."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

import holdfast
import holdfast_studies

NAMES = {
    "HeteroClassifier",
    "HeteroMatrixSensing",
    "HeteroQuadraticRegressor",
    "HeteroRegressor",
    "HeteroSelector",
    "HeteroSplineRegressor",
    "MixedRegressor",
    "Settings",
    "Trajectory",
    "advise",
    "diagnose",
    "environment_labels",
    "simulate",
    "sweep",
}
SUBPACKAGES = {
    "algorithms",
    "completion",
    "core",
    "datasets",
    "embeddings",
    "environments",
    "estimators",
    "plots",
    "sensing",
    "sweeps",
    "tables",
    "theory",
    "torch",
}

# Packages that are no part of the interface for users: thin shells, the inside of the estimators, machine code, and
# studies, whose experiments are reached by name.
INTERNAL = re.compile(r"holdfast\.(apps|estimators\.search|sensing\.kernel)\b|holdfast_studies\.(?!comparison\b)")
PACKAGES = {
    module.name
    for package in (holdfast, holdfast_studies)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if module.ispkg
}
MODULES = {"core.order", *(f"sensing.{name}" for name in ("batching", "ensembles", "environments", "measurements"))}
FACES = sorted(
    name
    for name in {"holdfast_studies", *PACKAGES, *(f"holdfast.{each}" for each in MODULES)}
    if not INTERNAL.match(name)
)

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


@cache
def _explained() -> set[str]:
    """The constants of the package that have a text below them."""
    files = Path(holdfast.__file__).parents[1].rglob("holdfast*/**/*.py")
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body for path in files]
    both = [pair for body in bodies for pair in pairwise(body)]
    pairs = [(first, second.value) for first, second in both if isinstance(second, ast.Expr)]
    texts = [first for first, value in pairs if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    targets = [each for node in texts for each in getattr(node, "targets", [getattr(node, "target", None)])]
    return {each.id for each in targets if isinstance(each, ast.Name)}


@pytest.mark.parametrize("face", FACES)
def test_a_subpackage_shows_its_public_names_and_no_others(face):
    module = importlib.import_module(face)
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("face", FACES)
def test_every_public_name_is_explained_with_an_example_that_runs(face):
    """Classes and functions have a docstring of their own, constants a text below them."""
    module = importlib.import_module(face)
    missing = []
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            # Dataclasses and named tuples without a docstring get one that only repeats their arguments.
            text = "" if (value.__doc__ or "").startswith(f"{name}(") else value.__doc__ or ""
            missing += [] if ">>>" in text else [f"{name}: example"]
        elif inspect.ismodule(value):
            own = [each for each in vars(value).values() if getattr(each, "__module__", "") == value.__name__]
            public = [each for each in own if hasattr(each, "__name__") and not each.__name__.startswith("_")]
            missing += [f"{name}.{each.__name__}: example" for each in public if ">>>" not in (each.__doc__ or "")]
        elif name not in _explained():
            missing.append(f"{name}: text")
    assert not missing


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="frobnicate"):
        holdfast.frobnicate  # noqa: B018


def test_import_loads_neither_jax_nor_anything_else_that_is_slow():
    script = (
        "import sys, holdfast\n"
        "assert holdfast.__version__\n"
        "heavy = {'jax', 'numpy', 'xarray', 'pandas', 'sklearn', 'matplotlib', 'rich', 'torch', 'cyclopts'}\n"
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
