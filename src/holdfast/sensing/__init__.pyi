from .builder import Parts as Parts
from .outcome import Code as Code
from .outcome import Outcome as Outcome
from .settings import Settings as Settings
from .signals import signals as signals
from .simulation import execute as execute
from .simulation import simulate as simulate
from .trajectory import Trajectory as Trajectory
