"""Shell completion, in the shells themselves: what the tab key offers after a few letters."""

import contextlib
import io
import re
import shutil
import subprocess
import sys
import time

import pytest

from holdfast.apps.cli.main import COMMANDS, main

# What is typed -> what is offered; the last word is complete after that, or is one of these.
TYPED = {
    "holdfast swe": {"sweep", "sweep-status", "sweep-plot"},
    "holdfast simulate --het": {"--heterogeneity"},
    "holdfast simulate --order ": {"independent", "reshuffled", "cyclic"},
    "holdfast reproduce figure_": {f"figure_{number}" for number in range(1, 7)},
    "holdfast completion f": {"fish"},
    "holdfast fit wag": {"wages.csv"},
}
BASH = """
source holdfast.script
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_holdfast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "wages.csv").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _script(shell, folder):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["completion", shell]) == 0
    (folder / "holdfast.script").write_text(printed.getvalue())
    return printed.getvalue()


def _shell(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed on this machine, so its completion was not tried")
    return found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_the_script(shell, folder):
    text = _script(shell, folder)
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", text)
    assert "-samples-per-environment" in text or "-l samples-per-environment" in text


@pytest.mark.parametrize("typed", TYPED)
def test_bash(typed, folder):
    bash = _shell("bash")
    _script("bash", folder)
    words = typed.split() + ([""] if typed.endswith(" ") else [])
    script = BASH.format(words=" ".join(f"'{word}'" for word in words))
    done = subprocess.run([bash, "--norc", "-c", script], capture_output=True, text=True, cwd=folder, check=True)
    assert set(done.stdout.split()) == TYPED[typed]


@pytest.mark.slow
@pytest.mark.parametrize("typed", TYPED)
def test_fish(typed, folder):
    fish = _shell("fish")
    _script("fish", folder)
    command = f"source holdfast.script; complete --do-complete '{typed}'"
    done = subprocess.run([fish, "--no-config", "-c", command], capture_output=True, text=True, cwd=folder, check=True)
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == TYPED[typed]


@pytest.mark.slow
@pytest.mark.parametrize("typed", TYPED)
def test_zsh(typed, folder):
    """Zsh completes in a terminal only, so it is given one, and the tab key is pressed in it."""
    if sys.platform == "win32":
        pytest.skip("there are no pseudo-terminals on Windows")
    import os
    import pty

    zsh = _shell("zsh")
    _script("zsh", folder)
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200"}
    process = subprocess.Popen(
        [zsh, "-f", "-i"], stdin=writer, stdout=writer, stderr=writer, cwd=folder, env=environment, close_fds=True
    )
    os.close(writer)
    os.write(reader, b"PS1='> '; autoload -U compinit; compinit -u -d dump; source ./holdfast.script; echo rea''dy\n")
    printed = _read_until(reader, "\nready")
    assert "\nready" in printed.replace("\r", ""), printed
    os.write(reader, f"{typed}\t\t".encode())
    offered = _read_until(reader, None)
    process.kill()  # interactive shells ignore milder signals
    process.wait(timeout=20)
    os.close(reader)
    for word in TYPED[typed]:
        assert word in offered, offered
    others = {word for words in TYPED.values() for word in words} - TYPED[typed]
    assert [word for word in others if re.search(rf"(?<![\w-]){word}(?![\w-])", offered.replace(typed, ""))] == []


def _read_until(reader, words, seconds=20, quiet=2):
    """What a terminal prints until these words, or until it has been quiet for some seconds."""
    import os
    import select

    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        ready, _, _ = select.select([reader], [], [], quiet)
        if not ready:
            if words is None:
                break
            continue
        text += os.read(reader, 65536).decode(errors="replace")
        if words is not None and words in text.replace("\r", ""):
            break
    return text
