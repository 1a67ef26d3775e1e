"""Files appear whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.core import owner, writing
from holdfast.core.writing import check_output, check_output_folder, replacing, write_text


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "numbers.txt"
    write_text(path, "old")

    def fail():
        with replacing(path) as unfinished:
            unfinished.write_text("half of the n")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


SCRIPT = """
import sys, time
from pathlib import Path
from holdfast.core.writing import replacing
with replacing(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half of the n")
    print("written", flush=True)
    time.sleep(60)
"""


def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "numbers.txt"
    write_text(path, "old")
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert path.read_text() == "old"


def test_what_a_kill_leaves_is_removed_by_the_next_write_in_the_same_folder(tmp_path):
    path, other = tmp_path / "numbers.txt", tmp_path / "letters.txt"
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, text=True) as running:
        with subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, text=True) as killed:
            assert running.stdout.readline() == killed.stdout.readline() == "written\n"
            killed.send_signal(signal.SIGKILL)
        write_text(other, "of another name")
        (unfinished,) = (each for each in tmp_path.iterdir() if each not in (path, other))
        assert f"-{running.pid}-" in unfinished.name
        running.send_signal(signal.SIGKILL)
    write_text(path, "new")
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_what_another_machine_leaves_is_removed_after_a_week(tmp_path):
    path, left = tmp_path / "numbers.txt", tmp_path / ".temporary-elsewhere-7-0.zarr"
    left.mkdir()
    for days, expected in ((6, [left, path]), (8, [path])):
        moment = time.time() - days * 24 * 3600
        os.utime(left, (moment, moment))
        write_text(path, "new")
        assert sorted(tmp_path.iterdir()) == expected


def test_folders_are_replaced(tmp_path):
    path = tmp_path / "runs.zarr"
    for content in ("old", "new"):
        with replacing(path) as unfinished:
            unfinished.mkdir()
            (unfinished / content).touch()
    assert [each.name for each in path.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_was_replaced_is_removed_by_others_after_a_kill(tmp_path, monkeypatch):
    """Killed while it deletes the old one, which takes longest."""
    path = tmp_path / "runs.zarr"
    path.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(writing, "delete", lambda path: None)
        patch.setattr(owner, "os", SimpleNamespace(getpid=lambda: 2**22 + 1, name=os.name))  # no process has it
        with replacing(path) as unfinished:
            unfinished.mkdir()
    assert len(list(tmp_path.iterdir())) == 2
    write_text(tmp_path / "a.txt", "another file")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.txt", "runs.zarr"]


def test_links_and_permissions_stay(tmp_path):
    path, link = tmp_path / "numbers.txt", tmp_path / "link.txt"
    write_text(path, "old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_devices_are_written_to_directly():
    before = os.stat(os.devnull).st_rdev
    write_text(os.devnull, "nothing")
    assert os.stat(os.devnull).st_rdev == before


def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual.txt").touch()
    write_text(tmp_path / "ours.txt", "ours")
    assert (tmp_path / "ours.txt").stat().st_mode == (tmp_path / "usual.txt").stat().st_mode


def test_paths_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    (tmp_path / "model.json").touch()
    (tmp_path / "folder.json").mkdir()
    for name, words in {
        "model.txt": "out must end in .json or .csv",
        "nowhere/model.json": "out must lie in a folder that exists",
        "model.json": "out must not exist yet \\(overwrite=True or --overwrite replaces it\\)",
        "folder.json": "out must not exist yet \\(choose another name\\)",
    }.items():
        with pytest.raises(ValueError, match=words):
            check_output(tmp_path / name, [".json", ".csv"])
    check_output(tmp_path / "model.json", [".json"], overwrite=True)
    check_output(tmp_path / "MODEL.JSON", [".json"])
    check_output_folder(tmp_path / "new" / "figures")
    with pytest.raises(ValueError, match="plots must be a folder, got the file"):
        check_output_folder(tmp_path / "model.json", argument="plots")
    with pytest.raises(ValueError, match="out must lie in a folder that can be written to"):
        check_output_folder(tmp_path / "model.json" / "figures")
    with pytest.raises(ValueError, match="out must be a folder that can be written to, got '/proc'"):
        check_output_folder(Path("/proc"))
