import os
import signal
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_limits

# Compiled programs are cached between runs and shared by the workers; jax reads this when it is imported.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# With the older of XLA's two generators of loops, test files that compile much take 20 to 40 % less CPU. Later versions
# lack it, and XLA ends the process at a flag it does not know. A value from outside goes first: `XLA_FLAGS= pytest`.
if version("jaxlib").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# Workers of pytest-xdist share the cores. Threads of OpenMP and BLAS that wait for each other on a core that is busy
# burn it: training a small network took 171 s of CPU instead of 12. numpy may be loaded already, torch is not.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    threadpool_limits(1)

import jax
import numpy as np
import pytest
from hypothesis import settings

from holdfast.core.linear_algebra import orthonormal_frame
from holdfast.sensing import ensembles, matrix_sensing
from holdfast.sensing.environments import table

# Every run of the tests has the same examples; campaigns such as `make fuzz` look for new ones.
settings.register_profile("same examples", derandomize=True)
settings.load_profile("same examples")

# What a shell runs in its background has interrupts ignored, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["gaussian", "symmetric"])
def ensemble(request):
    return {"gaussian": ensembles.gaussian, "symmetric": ensembles.symmetric_gaussian}[request.param]


@pytest.fixture
def problem():
    """A small problem with everything switched on: overlap, three unequal environments, non-diagonal S(e)."""
    strengths = np.array([[[2.0, 0.5], [0.5, -1.0]], [[-3.0, 0.0], [0.0, 1.0]], [[1.0, -0.3], [-0.3, 4.0]]])
    frame = orthonormal_frame(5, 3, seed=1).astype(np.float32)
    return matrix_sensing(frame, 1, table(strengths, [0.5, 0.3, 0.2]), overlap=0.3)


@pytest.fixture
def fitted():
    """A symmetric matrix that is no solution of anything."""
    factor = np.random.default_rng(2).standard_normal((5, 5)).astype(np.float32)
    return jax.numpy.asarray(factor @ factor.T / 5)


class ParsedPage(HTMLParser):
    """A page that was read; fails if its tags do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.tags, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.open += [tag] if tag not in {"meta", "img", "br"} else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def assert_stands_alone(self, *links):
        """Nothing is loaded from elsewhere, ids are unique, and links lead to one of them or to `links`."""
        assert len(self.ids) == len(set(self.ids))
        assert not self.all("script")
        assert not self.all("link")
        assert "url(" not in self.text
        assert "@import" not in self.text
        assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in self.all("img"))
        assert {each["href"] for each in self.all("a")} - {f"#{name}" for name in self.ids} == set(links)


@pytest.fixture(scope="session")
def parse_page():
    return ParsedPage
