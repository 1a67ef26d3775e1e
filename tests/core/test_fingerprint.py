import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.core import fingerprint as tracing
from holdfast.core.fingerprint import fingerprint, reached
from holdfast.sweeps.programs import program_of

PACKAGE = {
    "__init__": "",
    "main": '"""Main."""\nfrom ours.middle import call\n\ndef run():\n    """Run."""\n    return call()\n',
    "middle": "def call():\n    from . import callee\n    return callee.STEP\n",
    "callee": "STEP = 1\n",
    "other": "OTHER = 1\n",
    "sliced": "from ours.callee import STEP\nfrom ours.other import OTHER\nSCALE = STEP\n\n"
    "def simulate():\n    return SCALE\n\ndef draw():\n    return OTHER\n",
    "named": 'LAW = "ours.callee:STEP"\nNOTE = "ours.other"\n',
    "starred": "from ours.sliced import *\n",
    "saving": "from holdfast.sweeps.store.store import Store\nfrom holdfast.sweeps.store import packing\n",
    "typed": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ours.callee import STEP\n",
    "uses_lazy": "import ours.lazy as lazy\n",
    "uses_one": "from ours.lazy import part\n",
    "lazy/__init__": "def __getattr__(name):\n    ...\n",
    "lazy/part": "PART = 1\n",
    "lazy/rest": "from ours.other import OTHER\n",
    "uses_holdfast": "import holdfast as hf\n",
    "uses_one_module": "from holdfast.sensing import environments\n",
    "outside": "import json\nimport numpy as np\nfrom holdfast.core.progress import stages\n",
}


def forget():
    """As a new process would."""
    for remembered in (tracing._fingerprint, tracing._statements, tracing._imports, tracing._located):
        remembered.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package `ours`; each call starts with nothing remembered, like a new process."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**changed):
        for name, text in (PACKAGE | changed).items():
            path = tmp_path / "ours" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget()

    write()
    yield write
    write()
    assert "ours" not in sys.modules  # nothing is imported to be traced


def test_a_docstring_comment_or_blank_line_keeps_the_fingerprint(package):
    before = fingerprint(("ours.main",))
    package(main=PACKAGE["main"].replace("Run.", "Run all.").replace("return call()", "return (call())  # why"))
    assert fingerprint(("ours.main",)) == before


def test_a_change_in_a_callee_changes_the_fingerprint_and_one_elsewhere_does_not(package):
    before = fingerprint(("ours.main",))
    package(other="OTHER = 2\n")
    assert fingerprint(("ours.main",)) == before
    package(callee="STEP = 2\n")
    assert fingerprint(("ours.main",)) != before


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("main", {"main", "middle:call", "callee"}),
        ("named", {"named", "callee:STEP"}),
        ("typed", {"typed"}),
        ("sliced", {"sliced", "callee:STEP", "other:OTHER"}),
        ("sliced:simulate", {"sliced:simulate", "callee:STEP"}),
        ("starred", {"starred", "sliced", "callee:STEP", "other:OTHER"}),
        ("saving", {"saving"}),
        ("uses_lazy", {"uses_lazy", "lazy", "lazy.part", "lazy.rest", "other:OTHER"}),
        ("uses_one", {"uses_one", "lazy", "lazy.part"}),
    ],
)
def test_what_is_reached(package, module, expected):
    assert {name.removeprefix("ours.") for name in reached((f"ours.{module}",))} - {"ours"} == expected


def test_of_one_function_only_what_it_uses_counts(package):
    before = fingerprint(("ours.sliced:simulate",))
    package(sliced=PACKAGE["sliced"].replace("return OTHER", "return -OTHER"), other="OTHER = 2\n")
    assert fingerprint(("ours.sliced:simulate",)) == before
    package(sliced=PACKAGE["sliced"].replace("SCALE = STEP", "SCALE = 2 * STEP"))
    assert fingerprint(("ours.sliced:simulate",)) != before


def test_of_an_imported_module_only_the_names_that_are_imported_count(package):
    before = fingerprint(("ours.main",))
    package(middle=PACKAGE["middle"] + "def unused():\n    from ours.other import OTHER\n")
    assert fingerprint(("ours.main",)) == before
    package(middle=PACKAGE["middle"].replace("callee.STEP", "2 * callee.STEP"))
    assert fingerprint(("ours.main",)) != before


@pytest.fixture
def code_of_a_sweep(monkeypatch):
    """The checksum of the code of a simulation, with the source of some modules changed."""
    read = Path.read_bytes

    def fingerprint_with(changed=()):
        """Append a statement that binds nothing, which every part of a module has."""
        changes = lambda path: any(f"holdfast/{part}" in path.as_posix() for part in changed)  # noqa: E731
        monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"\nassert 1\n" * changes(path))
        forget()
        return program_of("matrix-sensing").code().digest

    yield fingerprint_with
    monkeypatch.undo()
    forget()


def test_sweeps_are_bound_to_the_code_of_their_numbers_and_to_no_other(code_of_a_sweep):
    before = code_of_a_sweep()
    others = (
        "sweeps/store/",
        "sweeps/engines/",
        "sensing/trajectory",
        "sweeps/specification",
        "sweeps/running",
        "apps/",
    )
    assert code_of_a_sweep(others) == before
    for numerical in (
        "core/run",
        "core/randomness",
        "sensing/problem",
        "sensing/oracles/",
        "algorithms/",
        "sweeps/programs",
    ):
        assert code_of_a_sweep((numerical,)) != before, numerical


def test_a_users_module_leads_into_this_package_and_no_other(package):
    assert reached(("ours.outside",)) == {"ours.outside", "holdfast.core.progress:stages"}


def test_a_script_leads_to_the_modules_next_to_it(package, tmp_path):
    (tmp_path / "script_of_a_user.py").write_text("import json\nfrom law_of_a_user import STEP\n")
    (tmp_path / "law_of_a_user.py").write_text("STEP = 1\n")
    assert reached(("script_of_a_user",)) == {"script_of_a_user", "law_of_a_user:STEP"}


@pytest.mark.parametrize("place", ["above", "inside"])
def test_a_script_leads_to_the_packages_next_to_it(package, tmp_path, place):
    line = "from package_of_a_user.deep import STEP"
    script = f"{line}\n" if place == "above" else f"import numpy as np\ndef step():\n    {line}\n    return STEP\n"
    (tmp_path / "script_of_a_user.py").write_text(script)
    (tmp_path / "package_of_a_user").mkdir()
    (tmp_path / "package_of_a_user" / "__init__.py").write_text("")
    (tmp_path / "package_of_a_user" / "deep.py").write_text("STEP = 1\n")
    assert reached(("script_of_a_user",)) == {"script_of_a_user", "package_of_a_user.deep:STEP"}


def test_folders_without_an_init_file_are_packages_too(package, tmp_path):
    (tmp_path / "folder_of_a_user" / "inner").mkdir(parents=True)
    (tmp_path / "folder_of_a_user" / "inner" / "runs.py").write_text("from folder_of_a_user.inner.law import STEP\n")
    (tmp_path / "folder_of_a_user" / "inner" / "law.py").write_text("STEP = 1\n")
    assert reached(("folder_of_a_user.inner.runs",)) == {
        "folder_of_a_user.inner.runs",
        "folder_of_a_user.inner.law:STEP",
    }
    assert "folder_of_a_user" not in sys.modules


def test_the_whole_package_is_reached_through_its_lazy_names(package):
    everything = reached(("ours.uses_holdfast",))
    assert {"holdfast.apps.cli.main", "holdfast.theory.window", "holdfast.estimators"} <= everything
    assert "holdfast.apps.cli.main" not in reached(("ours.uses_one_module",))


def test_threads_may_ask_at_once():
    names = (
        "holdfast.core.run",
        "holdfast.sensing.environments",
        "holdfast.theory.window",
        "holdfast.sensing.batching",
    ) * 4
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda name: fingerprint((name,)), names))) == 4


def test_a_module_without_source_is_refused():
    with pytest.raises(ValueError, match="modules must have a file with their source, got 'math'"):
        fingerprint(("math",))
