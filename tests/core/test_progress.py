import re

import pytest

from holdfast.core import progress as module
from holdfast.core.progress import stages, watched


def test_stages_fill_one_bar():
    seen = []
    first, second = stages(lambda done, total: seen.append((done, total)), [10, 30])
    first(1, 2)
    first(2, 2)
    second(1, 3)
    second(3, 3)
    assert seen == [(5, 40), (10, 40), (20, 40), (40, 40)]
    stages(None, [1])[0](1, 1)


def test_verbose_is_nothing_a_bar_or_a_function(monkeypatch, capsys):
    seen = []
    with watched(0, "fitting") as report:
        assert report is None
    with watched(lambda *numbers: seen.append(numbers), "fitting") as report:
        report(1, 4)
    assert seen == [(1, 4)]
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with watched(1, "fitting") as report:
        for done in (1, 2, 10):
            report(done, 10)
    assert re.fullmatch(r"fitting .* 100% .*\n", capsys.readouterr().err)


def test_a_short_piece_of_work_has_no_bar(capsys):
    with watched(1, "fitting") as report:
        report(1, 2)
    assert capsys.readouterr().err == ""


def test_a_bar_ends_with_an_error(monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.0)

    def work():
        with watched(1, "fitting") as report:
            report(1, 2)
            raise ValueError("rows")

    with pytest.raises(ValueError, match="rows"):
        work()
    assert re.fullmatch(r"fitting .* 50% .*\n", capsys.readouterr().err)
