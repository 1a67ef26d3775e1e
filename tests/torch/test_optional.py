"""Importing holdfast never imports torch, and without torch a message names the extra."""

import subprocess
import sys

import pytest

BLOCKED = "import sys; sys.modules['torch'] = None\n"


def _run(script: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_holdfast_and_the_listing_of_its_torch_package_do_not_import_torch():
    done = _run("import sys, holdfast, holdfast.torch\ndir(holdfast.torch)\nprint('torch' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_without_torch_a_message_names_the_extra():
    for statement in ("import holdfast.torch", "import holdfast; holdfast.torch", "import holdfast.torch.sampler"):
        done = _run(BLOCKED + statement)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "ModuleNotFoundError: holdfast.torch needs PyTorch, which is not installed: pip install 'holdfast[torch]'"
        )


def test_the_rest_of_holdfast_works_without_torch():
    done = _run(BLOCKED + "import holdfast\nprint(holdfast.Settings(steps=3).steps)")
    assert done.stdout == "3\n", done.stderr


@pytest.mark.slow
def test_the_sampler_does_not_start_jax():
    """Workers of a DataLoader are forked, which threads of jax do not survive."""
    script = "import sys\nfrom holdfast.torch import EnvironmentBatchSampler\n"
    done = _run(script + "list(EnvironmentBatchSampler([0, 1] * 9))\nprint('jax' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
