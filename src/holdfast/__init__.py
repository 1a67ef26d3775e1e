"""Holdfast: what heterogeneity in the data makes SGD hold on to, and what it washes away.

Public names are listed in `__init__.pyi` and imported when they are first used, so that `holdfast --help` does not wait
for jax.
"""

try:
    import lazy_loader
except ModuleNotFoundError:
    # On an accelerator with jax, numpy and scipy alone, modules of the numerical core are imported by their full names.
    __all__: list[str] = []
else:
    __getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
