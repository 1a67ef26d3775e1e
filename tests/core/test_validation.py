"""Errors in one line: the place is that of the user's code, wherever packages are installed."""

import importlib.util

import pytest

from holdfast.core.validation import describe_place


def _module(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_the_place_is_the_innermost_line_outside_of_installed_packages(folder, tmp_path):
    package = _module(tmp_path / "lib" / folder / "packaged.py", "def fail():\n    raise ValueError('no')\n")
    mine = _module(tmp_path / "mine.py", "def call(fail):\n    x = 1\n    return fail(), x\n")
    with pytest.raises(ValueError, match="no") as caught:
        mine.call(package.fail)
    assert describe_place(caught.value) == "mine.py:3: ValueError: no"
    inside = _module(tmp_path / "elsewhere" / "inner.py", "def fail():\n    raise ValueError('no')\n")
    with pytest.raises(ValueError, match="no") as caught:
        mine.call(inside.fail)
    assert describe_place(caught.value) == "inner.py:2: ValueError: no"
