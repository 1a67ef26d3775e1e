# The public face: every name here is imported lazily by `__init__.py`, which reads this file.
from . import algorithms as algorithms
from . import completion as completion
from . import core as core
from . import datasets as datasets
from . import embeddings as embeddings
from . import estimators as estimators
from . import plots as plots
from . import sensing as sensing
from . import sweeps as sweeps
from . import tables as tables
from . import theory as theory
from . import torch as torch
from .estimators.classifier import HeteroClassifier as HeteroClassifier
from .estimators.matrix_sensing import HeteroMatrixSensing as HeteroMatrixSensing
from .estimators.matrix_sensing import HeteroQuadraticRegressor as HeteroQuadraticRegressor
from .estimators.mixed import MixedRegressor as MixedRegressor
from .estimators.regressor import HeteroRegressor as HeteroRegressor
from .estimators.selector import HeteroSelector as HeteroSelector
from .estimators.spline import HeteroSplineRegressor as HeteroSplineRegressor
from .sensing import environments as environments
from .sensing.settings import Settings as Settings
from .sensing.simulation import simulate as simulate
from .sensing.trajectory import Trajectory as Trajectory
from .sweeps.running import sweep as sweep
from .tables.labels import environment_labels as environment_labels
from .theory.advice import advise as advise
from .theory.diagnosis import diagnose as diagnose

__version__: str
