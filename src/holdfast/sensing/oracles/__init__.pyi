from .data import fixed as fixed
from .data import online as online
from .law import Oracle as Oracle
from .law import OracleMaker as OracleMaker
from .law import law as law
from .law import population as population
from .quadratic import rank_one as rank_one
