"""The evidence behind Holdfast: experiments on the papers' figures, theorems and questions, comparisons, benchmarks.

An experiment is a module that ends with its `EXPERIMENT`; `TITLES` lists them, `reproduce` runs and judges them.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
