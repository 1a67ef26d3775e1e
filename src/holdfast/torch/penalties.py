"""Published methods for invariance as losses and steps of a training loop: IRMv1, V-REx, Group DRO and Fish.

Losses take one pair (logits, targets) for each environment, so that any network can be trained by any of them in the
same loop. The penalties are those of `holdfast.algorithms.invariance`, which has the methods for linear models and
factored matrices, in jax.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.algorithms.invariance.group_dro import raised_weights
from holdfast.algorithms.invariance.irm import invariance_penalty
from holdfast.algorithms.invariance.vrex import extrapolated_risk
from holdfast.core.validation import require

Loss = Callable[[Tensor, Tensor], Tensor]
"""(logits, targets) -> the mean loss, a scalar: `torch.nn.functional.cross_entropy`, `mse_loss`, ..."""

Outputs = Sequence[tuple[Tensor, Tensor]]
"""(logits, targets) of each environment."""


def environment_risks(outputs: Outputs, loss: Loss) -> Tensor:
    """(environments,): the mean loss in each.

    Example:
        >>> outputs = [(torch.tensor([1.0]), torch.tensor([0.0])), (torch.tensor([2.0]), torch.tensor([0.0]))]
        >>> environment_risks(outputs, nn.functional.mse_loss).tolist()
        [1.0, 4.0]
    """
    require(len(outputs) > 0, "outputs must have at least one environment", 0)
    return torch.stack([loss(logits, targets) for logits, targets in outputs])


def irm_penalty(logits: Tensor, targets: Tensor, loss: Loss, *, shift: bool = False, unbiased: bool = False) -> Tensor:
    """How far a multiple of the logits would be better in this environment: the penalty of IRMv1.

        |d R_e(s f + b) / d(s, b)|^2    at s = 1, b = 0

    Args:
        logits: f of the rows of one environment.
        targets: of the same rows.
        loss: (logits, targets) -> R_e.
        shift: whether the derivative along b counts too, as in the unit tests of Aubin et al. (2021).
        unbiased: the product of the derivatives on two halves of the batch instead of a square, whose mean over batches
            is the penalty of the population; the square is too large by the variance of the derivative. It can be
            negative.

    Reference: M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, *Invariant risk minimization*, arXiv:1907.02893, eq.
    IRMv1, and section D for the two halves.

    Example, R(f) = (f - 1)^2 at f = 2 has the derivative 2 (f - 1) f = 4:
        >>> irm_penalty(torch.tensor([2.0]), torch.tensor([1.0]), nn.functional.mse_loss).item()
        16.0
    """
    require(not unbiased or len(logits) > 1, "unbiased needs at least two rows of each environment", len(logits))
    parts = (slice(0, None, 2), slice(1, None, 2)) if unbiased else (slice(None),)
    return invariance_penalty(*(_derivatives(logits[part], targets[part], loss, shift) for part in parts))


def _derivatives(logits: Tensor, targets: Tensor, loss: Loss, shift: bool) -> Tensor:
    scale = torch.ones((), dtype=logits.dtype, device=logits.device, requires_grad=True)
    offset = torch.zeros_like(scale, requires_grad=True)
    varied = [scale, offset] if shift else [scale]
    return torch.stack(torch.autograd.grad(loss(logits * scale + offset, targets), varied, create_graph=True))


def irm_loss(
    outputs: Outputs, loss: Loss, *, penalty: float = 1.0, shift: bool = False, unbiased: bool = False
) -> Tensor:
    """IRMv1: mean_e R_e + penalty * mean_e `irm_penalty`.

    Example:
        >>> outputs = [(torch.tensor([2.0]), torch.tensor([1.0]))]
        >>> irm_loss(outputs, nn.functional.mse_loss, penalty=0.5).item()
        9.0
    """
    parts = [irm_penalty(*output, loss, shift=shift, unbiased=unbiased) for output in outputs]
    return environment_risks(outputs, loss).mean() + penalty * torch.stack(parts).mean()


def vrex_loss(outputs: Outputs, loss: Loss, *, penalty: float = 10.0) -> Tensor:
    """V-REx: mean_e R_e + penalty * variance_e R_e.

    Reference: D. Krueger et al., *Out-of-distribution generalization via risk extrapolation*, ICML 2021, eq. 8, with
    the mean of the risks instead of their sum.

    Example, risks 1 and 4 have the mean 2.5 and the variance 2.25:
        >>> outputs = [(torch.tensor([1.0]), torch.tensor([0.0])), (torch.tensor([2.0]), torch.tensor([0.0]))]
        >>> vrex_loss(outputs, nn.functional.mse_loss, penalty=2.0).item()
        7.0
    """
    return extrapolated_risk(environment_risks(outputs, loss), penalty)


class GroupDROLoss(nn.Module):
    """Group DRO: sum_e q_e R_e, where the weights q of environments with large risks climb at every call.

        q_e <- q_e exp(rate R_e), scaled to sum one

    The weights are a buffer: they move with the module and are in its `state_dict`.

    Reference: S. Sagawa, P. W. Koh, T. Hashimoto, P. Liang, *Distributionally robust neural networks*, ICLR 2020,
    Algorithm 1.

    Args:
        environments: their number.
        rate: of the climb.

    Example:
        >>> outputs = [(torch.tensor([0.0]), torch.tensor([0.0])), (torch.tensor([2.0]), torch.tensor([0.0]))]
        >>> robust = GroupDROLoss(2, rate=1.0)
        >>> round(robust(outputs, nn.functional.mse_loss).item(), 3), [round(q, 3) for q in robust.weights.tolist()]
        (3.928, [0.018, 0.982])
    """

    weights: Tensor

    def __init__(self, environments: int, rate: float = 1e-2):
        super().__init__()
        self.rate = rate
        self.register_buffer("weights", torch.full((environments,), 1 / environments))

    def forward(self, outputs: Outputs, loss: Loss) -> Tensor:
        """The weighted risk, after the weights have climbed; outputs in the same order of environments each time."""
        risks = environment_risks(outputs, loss)
        require(len(risks) == len(self.weights), f"outputs must have {len(self.weights)} environments", len(risks))
        self.weights = raised_weights(self.weights, risks.detach(), self.rate)
        return self.weights @ risks


def fish_step(
    model: nn.Module,
    batches: Iterable[Any],
    loss: Callable[[nn.Module, Any], Tensor],
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    *,
    meta_step_size: float = 0.5,
) -> None:
    """A step of Fish: a pass of a copy through the environments, then a part of the way to where it ended.

        w' <- w' - step_size grad R_e(w')  for each e,    w <- w + meta_step_size (w' - w)

    To second order this raises the inner products of the gradients of environments. Buffers, such as the averages of
    batch normalisation, are those of the copy afterwards.

    Reference: Y. Shi et al., *Gradient matching for domain generalization*, ICLR 2022, Algorithm 1.

    Args:
        model: is changed.
        batches: one of each environment, in random order.
        loss: (model, batch) -> the mean loss.
        optimizer: makes that of the copy from its parameters, such as `lambda p: torch.optim.SGD(p, lr=0.01)`.
        meta_step_size: epsilon.

    Example, R(w) = (w - 2)^2 from w = 0:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.zeros_(model.weight)
        >>> descent = lambda parameters: torch.optim.SGD(parameters, lr=0.125)
        >>> fish_step(model, [2.0], lambda model, target: (model.weight - target).square().sum(), descent)
        >>> model.weight.item()
        0.25
    """
    ahead = deepcopy(model)
    inner = optimizer(ahead.parameters())
    for batch in batches:
        inner.zero_grad()
        loss(ahead, batch).backward()
        inner.step()
    with torch.no_grad():
        for parameter, end in zip(model.parameters(), ahead.parameters(), strict=True):
            parameter.lerp_(end, meta_step_size)
        for buffer, last in zip(model.buffers(), ahead.buffers(), strict=True):
            buffer.copy_(last)
