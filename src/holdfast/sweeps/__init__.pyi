from .programs import PROGRAMS as PROGRAMS
from .recording import QUANTILES as QUANTILES
from .recording import RECORDS as RECORDS
from .specification import Sweep as Sweep
from .specification import read_sweep as read_sweep
from .specification import specify as specify
