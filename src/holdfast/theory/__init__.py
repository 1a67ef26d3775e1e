"""Theory as code: pure functions on problems, states and trajectories.

Growth: `lyapunov` has exponents, `logarithm` the mean logarithms behind them, `finite_time` the law after T steps,
`order` what the order of the environments changes, `effects` the same growth for single features. With sampling error:
`sampling`, `shares` after T steps, `tails` in the long run, `survivors` those that grow. Answers: `window` has the step
sizes that wash out, `advice` settings for a wanted confidence, `order_advice` an order, `regions` what a setting ends
in, `diagnosis` all of it in words. Data: `estimation` finds the problem behind measurements, `assumptions` checks those
of the paper, `findings` puts both together. Proofs: `isometry` has the restricted isometry property, `absorbing` the
sets that SGD on deep linear networks never leaves.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
