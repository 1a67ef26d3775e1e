"""`holdfast lab`: what it says when it cannot begin, and that it ends when it is asked to."""

import signal
import socket
import subprocess
import sys

import pytest

from holdfast.apps.cli.commands import tools
from holdfast.apps.cli.main import main
from holdfast.apps.lab.server import serve


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    assert main(["lab"]) == 2
    sentence = "holdfast lab needs starlette, uvicorn, fsspec: pip install 'holdfast[lab]'"
    assert capsys.readouterr().err == f"holdfast: {sentence}\n"


@pytest.mark.parametrize(
    ("options", "word"), [(["--port", "70000"], "port must be"), (["--results", "nowhere"], "results must be a folder")]
)
def test_options_are_checked(options, word, capsys):
    try:
        code = main(["lab", "--no-browser", *options])
    except SystemExit as stop:  # while the options are read
        code = stop.code
    assert code == 2
    assert word in capsys.readouterr().err


def test_a_port_in_use_and_an_address_of_another_computer():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port must be free, got {port} in use"):
            serve(port=port, browser=False)
    with pytest.raises(ValueError, match=r"host must be an address of this computer, got '192\.0\.2\.1'"):
        serve(host="192.0.2.1", browser=False)  # an address for documentation, which no computer has


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_it_prints_its_address_and_ends_at_an_interrupt(host):
    command = [sys.executable, "-m", "holdfast", "lab", "--no-browser", "--port", "0", "--host", host]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("The page is at http://")
        assert ("?token=" in line) == (host == "0.0.0.0")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
