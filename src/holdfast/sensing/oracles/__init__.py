"""How the truth is seen: each oracle is a function `gradient(key, fitted, batch)`.

    G = (1/m) sum_i <X_i, fitted - A* - A(e_i)> X_i

`population` is the limit of `law` for m -> infinity, and `law` is equal in law to `online`. `fixed` reads a fixed data
set; its batch is a weight for each row.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
