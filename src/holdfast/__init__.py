"""Holdfast: what heterogeneity in the data makes SGD hold on to, and what it washes away.

Public names are listed in `__init__.pyi` and imported when they are first used, so that `holdfast --help` does not wait
for jax.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__version__ = "0.2.0"
