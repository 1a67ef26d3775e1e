# The public names of holdfast.torch, imported when they are first used.
from .batches import BatchSequence as BatchSequence
from .penalties import GroupDRO as GroupDRO
from .penalties import environment_risks as environment_risks
from .penalties import fish_step as fish_step
from .penalties import irm_loss as irm_loss
from .penalties import irm_penalty as irm_penalty
from .penalties import vrex_loss as vrex_loss
from .sampler import EnvironmentBatchSampler as EnvironmentBatchSampler
