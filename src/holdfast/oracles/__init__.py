"""How the truth is seen: each oracle is a function `gradient(key, fitted, batch)`.

    G = (1/m) sum_i <X_i, fitted - A* - A(e_i)> X_i

`population` is the limit of `law` for m -> infinity, `law` is equal in law to `online`, and `fixed` reads a data set.
"""

from holdfast.oracles.data import fixed, online
from holdfast.oracles.law import law
from holdfast.oracles.population import population

__all__ = ["fixed", "law", "online", "population"]
