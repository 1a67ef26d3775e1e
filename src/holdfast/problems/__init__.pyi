from .matrix_completion import MatrixCompletion as MatrixCompletion
from .matrix_completion import matrix_completion as matrix_completion
from .matrix_completion import random_low_rank as random_low_rank
from .matrix_completion import two_by_two as two_by_two
from .matrix_sensing import MatrixSensing as MatrixSensing
from .matrix_sensing import matrix_sensing as matrix_sensing
from .quadratic_network import quadratic_network as quadratic_network
from .quadratic_network import random_neurons as random_neurons
