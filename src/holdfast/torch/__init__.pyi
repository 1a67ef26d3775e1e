# The public names of holdfast.torch, imported when they are first used.
from .batches import BatchSequence as BatchSequence
from .sampler import EnvironmentBatchSampler as EnvironmentBatchSampler
