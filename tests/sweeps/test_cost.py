"""What a sweep is said to cost: probes of every kind of cell, whatever the order in which values are written."""

from pathlib import Path

import numpy as np
import pytest

from holdfast.sweeps import cost, estimate_sweep, run_sweep, specify
from holdfast.sweeps.cells import SweepCells, runs_of_a_cell
from holdfast.sweeps.results import planned

SETTINGS = {"steps": 400, "every": 10, "oracle": "population"}


class Clock:
    """In the place of `time.perf_counter`: a step of a run takes dimension^2 units, a start 5, a compilation 1000."""

    def __init__(self):
        self.now, self.compiled, self.cells = 0.0, set(), []

    def perf_counter(self):
        return self.now

    def run(self, settings, seeds):
        shape = settings["dimension"], settings["batching"], settings["environments"]
        self.now += 1000.0 * (shape not in self.compiled)
        self.compiled.add(shape)
        self.now += 5.0 + settings["steps"] * len(seeds) * settings["dimension"] ** 2
        self.cells.append(settings)
        return {name: np.ones(len(seeds)) for name in ("invariant", "spurious")}


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(cost, "time", made)
    monkeypatch.setattr("holdfast.sweeps.programs.matrix_sensing", made.run)
    return made


def _exact(sweep, runs):
    points = [sweep.point(position) for position in np.ndindex(*(axis.size for axis in sweep.axes))]
    return sum(5.0 + point["steps"] * runs * point["dimension"] ** 2 for point in points)


@pytest.mark.parametrize(
    "axes",
    [
        {"dimension": [10, 100], "bias": [0.0, 1.0, 2.0]},
        {"dimension": [100, 10], "bias": [0.0, 1.0, 2.0]},
        {"dimension": [10, 20], "steps": [5, 100, 30]},
        {"dimension": [20], "batching": ["hetero", "pooled"], "bias": [1.0]},
        {"batching": ["hetero", "pooled"], "environments": ["two-point", "uniform", "gaussian"], "bias": [0.0, 1.0]},
        [{"dimension": 10, "steps": 50}, {"dimension": 30, "steps": 20}, {"dimension": 10, "steps": 70}],
    ],
)
def test_every_kind_of_cell_is_probed_and_counts_as_often_as_it_occurs(axes, clock):
    swept = [*axes[0]] if isinstance(axes, list) else axes
    settings = {name: value for name, value in SETTINGS.items() if name not in swept}
    sweep = specify(settings, axes, seeds=8)
    found = estimate_sweep(sweep)
    assert found.seconds == pytest.approx(_exact(sweep, runs=8))
    assert found.compilation == 1000.0 * len(clock.compiled)
    assert found.wall_seconds(1) == found.seconds + found.compilation
    assert found.probed_cells == len(clock.compiled)
    assert found.missing == found.cells


def test_of_many_kinds_a_few_are_probed_and_the_order_of_values_does_not_matter(clock):
    values = list(range(10, 101, 5))
    orders = values, values[::-1], values[7:] + values[:7]
    times = [estimate_sweep(specify(SETTINGS, {"dimension": order}, seeds=8)).seconds for order in orders]
    assert len(clock.compiled) == cost.MOST_PROBES
    assert times[0] == times[1] == times[2]
    assert times[0] == pytest.approx(_exact(specify(SETTINGS, {"dimension": values}, seeds=8), runs=8), rel=0.05)


def test_only_what_is_missing_in_a_folder_takes_time(tmp_path, request):
    few, more = (specify(SETTINGS, {"dimension": values, "bias": [0.0, 1.0]}, seeds=4) for values in ([30], [20, 30]))
    run_sweep(few, tmp_path)
    request.getfixturevalue("clock")  # from now on
    found = estimate_sweep(more, planned(more, tmp_path))
    assert (found.cells, found.missing, found.probed_cells) == (4, 2, 1)
    assert found.seconds == pytest.approx(2 * (5.0 + 400 * 4 * 20**2))


def test_the_number_of_steps_is_that_of_the_probes(clock):
    for steps, probed in ((20, 20), (400, 40), (0, 0)):
        sweep = specify({**SETTINGS, "steps": steps}, {"bias": [0.0]})
        assert estimate_sweep(sweep).probed_steps == probed
        assert clock.cells[-1]["steps"] == probed


def test_seeds_of_a_problem_do_not_change_the_time(clock):
    sweep = specify(SETTINGS, {"problem_seed": list(range(40)), "dimension": [10]}, seeds=8)
    assert estimate_sweep(sweep).probed_cells == 1
    assert estimate_sweep(sweep).seconds == pytest.approx(_exact(sweep, runs=8))


def test_the_platform_decides_the_cells():
    sweep = specify(SETTINGS, {"bias": [0.0]}, seeds=1000)
    for platform in ("cpu", "gpu"):
        cells = SweepCells(sweep, runs_of_a_cell(sweep, platform))
        assert estimate_sweep(sweep, platform=platform, probe=False).cells == len(cells)
    assert estimate_sweep(sweep, probe=False) == estimate_sweep(sweep, platform="cpu", probe=False)


def test_a_user_function_is_not_run(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    found = estimate_sweep(specify({}, {"scale": [1.0, 9.0]}, program="programs_of_a_user:picky"))
    assert (found.cells, found.seconds, found.disk) == (2, None, None)
