from . import logistic as logistic
from . import squared as squared
from .logistic import LogisticRows as LogisticRows
from .slopes import Slopes as Slopes
from .squared import SecondMoments as SecondMoments
