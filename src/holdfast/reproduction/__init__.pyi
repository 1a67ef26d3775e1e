from .claims import Claim as Claim
from .claims import Verdict as Verdict
from .experiment import Effort as Effort
from .experiment import Experiment as Experiment
from .runner import Reporter as Reporter
from .runner import reproduce as reproduce
