"""What people see while work goes on, in a terminal of its own."""

import os
import re
import subprocess
import sys

import pytest

SCRIPT = """
import time
from holdfast.apps.cli.terminal.progress import progress_bars, say
with progress_bars() as bars, bars("first") as first, bars("second") as second:
    for step in range(14):
        first(step, 14), second(step, 28)
        time.sleep(0.1)
    say("[green]said[/green] meanwhile")
    time.sleep(0.2)
say("said afterwards")
"""


def test_what_is_said_goes_above_the_bars():
    pty = pytest.importorskip("pty")
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=writer, stderr=writer, env=environment) as process:
        os.close(writer)
        printed = b""
        while True:
            try:
                piece = os.read(reader, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not piece:
                break
            printed += piece
    os.close(reader)
    text = printed.decode()
    assert process.returncode == 0
    assert "first" in text
    assert "second" in text
    # The line of the bar is erased before, and the bars are drawn again below.
    assert re.search(r"\x1b\[2K(\x1b\[32m)?said(\x1b\[0m)? meanwhile\r\n[^\n]*first", text)
    assert text.rstrip().endswith("said afterwards")


def test_what_is_said_goes_to_a_file_as_it_is(tmp_path):
    path = tmp_path / "said.txt"
    with path.open("w") as file:
        subprocess.run([sys.executable, "-c", SCRIPT], stdout=file, stderr=subprocess.DEVNULL, check=True)
    assert path.read_text() == "said meanwhile\nsaid afterwards\n"
