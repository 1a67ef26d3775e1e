# The public face: every name here is imported lazily by `__init__.py`, which reads this file.
from . import algorithms as algorithms
from . import batching as batching
from . import comparison as comparison
from . import completion as completion
from . import core as core
from . import datasets as datasets
from . import embeddings as embeddings
from . import ensembles as ensembles
from . import environments as environments
from . import estimators as estimators
from . import experiments as experiments
from . import io as io
from . import losses as losses
from . import measurements as measurements
from . import oracles as oracles
from . import order as order
from . import plots as plots
from . import problems as problems
from . import reproduction as reproduction
from . import sensing as sensing
from . import theory as theory
from . import torch as torch
from .estimators.classifier import HeteroClassifier as HeteroClassifier
from .estimators.matrix_completion import DeepMatrixFactorization as DeepMatrixFactorization
from .estimators.matrix_sensing import HeteroMatrixSensing as HeteroMatrixSensing
from .estimators.matrix_sensing import HeteroQuadraticRegressor as HeteroQuadraticRegressor
from .estimators.regressor import HeteroRegressor as HeteroRegressor
from .estimators.selector import HeteroSelector as HeteroSelector
from .estimators.spline import HeteroSplineRegressor as HeteroSplineRegressor
from .io.labels import environment_labels as environment_labels
from .sensing.settings import Settings as Settings
from .sensing.simulation import simulate as simulate
from .sensing.trajectory import Trajectory as Trajectory
from .theory.advice import advise as advise
from .theory.diagnosis import diagnose as diagnose

__version__: str
