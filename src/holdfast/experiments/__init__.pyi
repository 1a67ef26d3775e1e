from .names import TITLES as TITLES
from .names import load as load
from .phase import draw_phase_diagram as draw_phase_diagram
from .phase import open_phase_diagram as open_phase_diagram
from .phase import phase_diagram as phase_diagram
from .phase import phase_sweep as phase_sweep
