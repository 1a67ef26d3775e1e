"""PyTorch: batches of one environment in a chosen order, monitors, penalties, and what changes between environments.

Importing holdfast does not import torch. This package needs it: `pip install 'holdfast[torch]'`.
"""

from importlib.util import find_spec

from holdfast.core.names import lazy_names

if find_spec("torch") is None:
    raise ModuleNotFoundError(
        "holdfast.torch needs PyTorch, which is not installed: pip install 'holdfast[torch]'", name="torch"
    )

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
