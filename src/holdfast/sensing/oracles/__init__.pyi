from .base import Oracle as Oracle
from .base import OracleMaker as OracleMaker
from .data import fixed as fixed
from .data import online as online
from .law import law as law
from .population import population as population
from .quadratic import rank_one as rank_one
