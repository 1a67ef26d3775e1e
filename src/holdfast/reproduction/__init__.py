"""How experiments are run and judged: what an experiment is, what a claim is, the runner, the report."""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
