"""What is swept: designs, and everything that is refused before anything is written."""

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from holdfast import Settings
from holdfast.sweeps import estimate_sweep, read_sweep, specify
from holdfast.sweeps.designs import axis_values, drawn
from holdfast.sweeps.specification import MOST_CHECKED

SMALL = {"dimension": 8, "steps": 20, "oracle": "population"}


def _of(text, tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return read_sweep(path)


def test_the_smallest_specification(tmp_path):
    text = """
        [settings]
        dimension = 20
        steps = 200
        [sweep]
        step_size = [0.02, 0.05]
        heterogeneity = { start = 1.0, stop = 9.0, count = 9 }
        seeds = 32
    """
    sweep = _of(text, tmp_path)
    assert (sweep.points, sweep.runs, sweep.record, sweep.program) == (18, 576, "final", "matrix-sensing")
    # complete settings: a default that changes with a new version is another sweep
    point = sweep.point((1, 8))
    assert Settings(**point) == Settings(dimension=20, steps=200, step_size=0.05, heterogeneity=9.0)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_half_the_steps_of_a_range_have_its_values_to_the_last_bit(scale):
    for start, stop, count in ((0.02, 0.32, 5), (0.1, 0.7, 4), (1.0, 9.0, 9), (1e-3, 3.0, 12)):
        coarse, fine = (
            axis_values("step_size", {"start": start, "stop": stop, "count": each, "scale": scale})
            for each in (count, 2 * count - 1)
        )
        assert fine[::2] == coarse


def test_a_specification_in_python_is_the_one_of_the_file(tmp_path):
    text = "record = 'quantiles'\n[settings]\ndimension = 20\nseed = 5\n[sweep]\nbias = [0.0, 1.0]\nseeds = 3"
    settings = Settings(dimension=20, seed=5, seeds=3)
    assert _of(text, tmp_path) == specify(settings, {"bias": np.array([0.0, 1.0])}, record="quantiles")


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_ranges_are_evenly_spaced_on_their_scale(scale):
    values = np.array(axis_values("bias", {"start": 0.5, "stop": 8.0, "count": 7, "scale": scale}))
    gaps = np.diff(np.log(values) if scale == "log" else values)
    assert np.allclose(gaps, gaps[0], rtol=1e-9)
    assert (values[0], values[-1]) == (0.5, 8.0)


def test_whole_numbers_stay_whole():
    sweep = specify({}, {"batch_size": {"start": 100, "stop": 800, "count": 4, "scale": "log"}, "bias": [1, 2]})
    assert sweep.axes[0].coordinates["batch_size"] == (100, 200, 400, 800)
    assert Settings(**sweep.point((3, 1))).batch_size == 800


def test_random_points_have_the_law_that_was_asked_for():
    axis = {"low": 0.01, "high": 1.0, "scale": "log"}
    made = drawn({"step_size": axis, "width": {"low": 1, "high": 3}}, 4000, seed=1, whole={"width"}).coordinates
    # Kolmogorov's distance of log-values to the uniform law; 1.63 / sqrt(n) is its 1 % point.
    shares = np.sort(np.log(made["step_size"]) - math.log(0.01)) / math.log(100)
    assert np.abs(shares - np.arange(4000) / 4000).max() < 1.63 / math.sqrt(4000)
    # Counts of three equally likely numbers: chi-square with 2 degrees of freedom, 1 % point 9.21.
    counts = np.bincount(made["width"], minlength=4)[1:]
    assert counts.sum() == 4000
    assert ((counts - 4000 / 3) ** 2 / (4000 / 3)).sum() < 9.21


def test_a_longer_random_design_begins_with_the_shorter_one():
    table = {"design": "random", "seed": 3, "bias": {"low": 0.0, "high": 1.0}, "batching": ["hetero", "pooled"]}
    short, long = (specify({}, {**table, "count": count}).axes[0].coordinates for count in (5, 50))
    assert {name: values[:5] for name, values in long.items()} == short


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[setings]", "the keys of the specification must be among .*, got 'setings' \\(perhaps settings\\)"),
        ("[settings]", "the specification must have a table \\[sweep\\]"),
        ("[sweep]\nseeds = 3", "the sweep must have at least one axis"),
        ("[settings]\nstep_sise = 1\n[sweep]\nbias = [1]", "got 'step_sise' \\(perhaps step_size\\)"),
        ("[sweep]\nbiass = [1]", "axes must be known to matrix-sensing, got 'biass' \\(perhaps bias\\)"),
        ("[settings]\ndimension = 'x'\n[sweep]\nbias = [1]", "dimension must be one number, got 'x'"),
        ("[settings]\ndimension = 20.0\n[sweep]\nbias = [1]", "dimension must be a whole number .*, got 20.0"),
        ("[settings]\nbias = [1.0, 2.0]\n[sweep]\noverlap = [0.1]", "each setting takes one value; .* a list for bias"),
        ("[settings]\nsead = 1\n[sweep]\nbias = [1]", "settings must be known to .*, got 'sead' \\(perhaps seed\\)"),
        ("[sweep]\nseedz = 3\nbias = [1]", "axes must be known to .*, got 'seedz' \\(perhaps seeds\\)"),
        ("[settings]\nrecord = 'final'\n[sweep]\nbias = [1]", "record must come before .*got it in \\[set"),
        ("[sweep]\nbias = [1]\nprogram = 'm:f'", "program must come before the first.*, got it in \\[sweep\\]"),
        ("program = 'm:f'\n[sweep]\na = [1]\nrecord = 'final'", "record must come before .*got it in \\[sweep"),
        ("[sweep]\nbias = {start = 1, stop = 2, cnt = 3}", "got start, stop, cnt \\(perhaps count\\)"),
        ("[sweep]\nbias = []", "bias must hold at least one value"),
        ("[sweep]\nbias = 1.0", "a single value belongs to the settings"),
        ("[sweep]\nbias = [1.0, 2.0, 1]", "bias must hold each value once, got 1.0 twice"),
        ("[sweep]\nbias = [1.0, 'x']", "bias must hold values of one kind, got numbers and strings"),
        ("[sweep]\nbias = [nan]", "every value of bias must be a number"),
        ("[sweep]\nbias = {start = 1.0, stop = 2.0}", "bias must be a list or have start, stop, count"),
        ("[sweep]\nbias = {start = 0.0, stop = 2.0, count = 3, scale = 'log'}", "must be positive on a log scale"),
        ("[sweep]\nbias = {start = 0.0, stop = 2.0, count = 2.5}", "count of bias must be a whole number"),
        ("[sweep]\nbatch_size = {start = 1, stop = 3, count = 9}", "batch_size must hold each value once"),
        ("[sweep]\nbias = [1.0]\nseeds = 0", "seeds must be a whole number of at least 1, got 0"),
        ("[settings]\nseeds = 3\n[sweep]\nbias = [1.0]", "seeds must be given to the sweep"),
        ("[settings]\nbias = 0.0\n[sweep]\nbias = [1.0]", "bias must be given once"),
        ("[sweep]\nseed = [1, 2]\nbias = [1.0]", "seed must be left out unless design is random"),
        ("[sweep]\ndesign = 'sobol'\nbias = [1.0]", "design must be one of grid, random, got 'sobol'"),
        ("[sweep]\ndesign = 'random'\nbias = [1.0]", "a random design must have count"),
        (
            "[sweep]\ndesign = 'random'\ncount = 2\nbatch_size = { low = 0.3, high = 20, scale = 'log' }",
            "low of batch_size must be a whole number, got 0.3",
        ),
        ("[sweep]\nbias = [1.0]\n[[sweep.points]]\nbias = 1.0", "points must be given without axes"),
        ("[[sweep.points]]\nbias = 1.0\n[[sweep.points]]\noverlap = 0.5", "\\(bias\\), got overlap in point 2"),
        ("[[sweep.points]]\nbias = 1.0\n[[sweep.points]]\nbias = 1.0", "got point 1 again as point 2"),
        ("record = 'all'\n[sweep]\nbias = [1.0]", "record must be one of final, quantiles, trajectories, got 'all'"),
        ("program = 'matrix'\n[sweep]\nbias = [1.0]", "program must be matrix-sensing, .* or \"module:function\""),
        ("record = 'trajectories'\n[sweep]\nsteps = [10, 20]", "steps must be one value with record"),
        ("[sweep]\ninvariant_rank = [1, 2]", "invariant_rank must be one value with record"),
        ("[sweep]\ndtype = ['float32', 'float64']", "dtype must be one value with record"),
        (
            "[sweep]\ndesign = 'random'\ncount = 200_000_000\nseeds = 1\nbias = {low = 0.0, high = 1.0}",
            "count must be at most 10,000,000, got 200,000,000",
        ),
        ("[sweep]\nstep_size = [0.1, -0.1]", "step_size must be a positive number, got -0.1"),
        ("[sweep]\nbias = [", "the specification must be TOML"),
        ("[settings]\nseed = 4294967295\n[sweep]\nbias = [1.0]", "seed \\+ seeds must be at most"),
    ],
)  # fmt: skip
def test_what_is_refused(text, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        _of(text, tmp_path)


def test_a_design_goes_before_the_defaults_of_settings_and_not_before_what_was_chosen():
    """A `Settings` object has a value for everything."""
    values = [{"step_size": 0.1}, {"step_size": 0.2}]
    swept = specify({"dimension": 8}, values)
    assert specify(Settings(dimension=8), values) == specify(Settings(dimension=8), {"points": values}) == swept
    for axes in (values, {"step_size": [0.1, 0.2]}):
        with pytest.raises(
            ValueError, match=r"step_size must be given once, got 0\.3 among the settings and values in"
        ):
            specify(Settings(step_size=0.3), axes)
    assert specify(Settings(), {"bias": [0.0], "seeds": 4}).seeds == 4
    for axes, seeds in (({"bias": [0.0], "seeds": 4}, None), ({"bias": [0.0]}, 4)):
        with pytest.raises(ValueError, match="seeds must be given once, got 4 and 9"):
            specify(Settings(seeds=9), axes, seeds=seeds)
    # the seed of the draws is not that of the first run
    random = {"design": "random", "count": 2, "seed": 1, "bias": {"low": 0.0, "high": 1.0}}
    assert specify(Settings(seed=7), random).seed == 7


@dataclass
class _OwnSettings:
    samples: int
    mean: float = 1.0


def test_a_setting_without_a_default_may_be_swept():
    sweep = specify(_OwnSettings(samples=10, mean=2.0), {"samples": [1, 2]}, program="estimates:mean_of_normals")
    assert sweep.settings == {"mean": 2.0}


def test_a_million_million_runs_are_refused_by_their_number():
    long = {"start": 0.0, "stop": 1.0, "count": 10**6}
    with pytest.raises(ValueError, match="at most 1,000,000,000 runs, got 1,000,000,000,000"):
        specify({}, {"bias": long, "overlap": long}, seeds=1)
    with pytest.raises(ValueError, match=re.escape("at most 1,000,000,000 runs, got 1,000,000,000,000")):
        specify({}, {"design": "random", "count": 10**6, "bias": {"low": 0.0, "high": 1.0}}, seeds=10**6)


def test_a_result_that_no_disk_holds_is_refused():
    sweep = specify({"steps": 10**6, "every": 1}, {"bias": [0.0, 1.0]}, seeds=10**5, record="trajectories")
    # 2 x 10^5 runs x (10^6 + 1) records x 10 numbers x 4 bytes
    with pytest.raises(ValueError, match=r"at most 1 TiB, got 7\.3 TiB"):
        estimate_sweep(sweep, probe=False)


@pytest.mark.parametrize(
    ("settings", "axes", "words"),
    [
        ({"dimension": 10}, {"spurious_rank": [1, 5, 10]}, "spurious_rank must be at most dimension"),
        ({"spurious_rank": 1}, {"off_diagonal": [0.0, 0.5]}, "off_diagonal must be 0 for spurious_rank 1"),
        ({}, {"oracle": ["law", "population"], "noise_variance": [0.0, 1.0]}, "noise_variance must be 0 with"),
        ({"environments": "gaussian"}, {"batching": ["hetero", "full"]}, "must be hetero or pooled for a continuum"),
        ({"batching": "pooled"}, {"batch_size": [100, 10**7]}, "batch_size must be at most .* for pooled batches"),
        ({"oracle": "data"}, {"batch_size": [10, 0]}, "batch_size must be a whole number of at least 1, got 0"),
        ({"oracle": "data", "samples_per_environment": 50}, {"bias": [0.0, 1e13]}, "bias must be a number"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_together_are_refused_wherever_they_are_in_the_grid(settings, axes, words):
    with pytest.raises(ValueError, match=words):
        specify(settings, axes)
    with pytest.raises(ValueError, match=words):  # as a list of points
        specify(settings, [{name: values[at] for name, values in axes.items()} for at in (0, -1)])


@pytest.mark.parametrize("design", ["grid", "points"])
def test_a_combination_that_is_refused_is_named_and_what_is_wrong_everywhere_is_not(design):
    batchings, environments = ("hetero", "pooled", "full"), ("two-point", "uniform", "gaussian")
    axes = {"batching": [*batchings], "environments": [*environments], "bias": [0.0, 1.0]}
    if design == "points":
        axes = [{"batching": one, "environments": other} for one in batchings for other in environments]
    words = "for a continuum of environments, got 'full', at batching=full, environments=uniform$"
    with pytest.raises(ValueError, match=words):
        specify({"dimension": 8}, axes)
    with pytest.raises(ValueError, match=r"dimension must be .*, got 0$"):
        specify({"dimension": 0}, {"batching": ["hetero", "pooled"], "environments": ["two-point", "uniform"]})


def test_each_point_may_have_a_data_set_of_its_own():
    """One simulation could not have both batch sizes with explicit measurements, but two points can."""
    sweep = specify({"oracle": "data", "samples_per_environment": 50}, {"bias": [0.0, 1.0], "batch_size": [10, 20]})
    assert sweep.points == 4


def test_of_many_combinations_every_value_is_checked():
    many = list(range(1, MOST_CHECKED + 2))
    with pytest.raises(ValueError, match="dimension must be a whole number of at least 1, got 0"):
        specify({}, {"steps": many, "dimension": [5, 0]})
    completion = {"step_size": [0.1], "ridge": [0.1, 20.0]}
    with pytest.raises(ValueError, match=r"step_size \* ridge must be below 1"):
        specify({}, completion, program="matrix-completion")
