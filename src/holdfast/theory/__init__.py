"""Theory as code: pure functions on problems, states and trajectories.

Growth: `lyapunov` has exponents, of small signals and of the effects of single features, `finite_time` the law after T
steps, `order` what the order of the environments changes. With sampling error: `sampling`, `shares` after T steps,
`tails` in the long run. Answers: `window` has the step sizes that wash out, `advice` settings for a wanted confidence
and an order, `diagnosis` what a setting ends in, and all of it in words. Data: `estimation` finds the problem behind
measurements, `assumptions` checks those of the paper, with the restricted isometry property, `findings` puts both
together. Proofs: `absorbing` has the sets that SGD on deep linear networks never leaves.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
