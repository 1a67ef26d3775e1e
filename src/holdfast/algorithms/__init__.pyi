from .deep_linear import deep_linear as deep_linear
from .factored import AlgorithmMaker as AlgorithmMaker
from .factored import Factors as Factors
from .factored import Gradient as Gradient
from .factored import factored as factored
from .factored import sampled as sampled
from .hadamard import hadamard as hadamard
from .shrinkage import shrinkage as shrinkage
