"""What several files of tests of sweeps need."""

from pathlib import Path

import pytest


@pytest.fixture
def users_folder(monkeypatch):
    """The folder with the programs of a user, as that of the command."""
    folder = Path(__file__).parent
    monkeypatch.syspath_prepend(folder)
    return folder
