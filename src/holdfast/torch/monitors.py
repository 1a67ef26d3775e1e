"""What the environments do to a network in training: losses, gradients, their conflict, and growth along directions.

Along a direction v of the inputs of a layer with weights W, a step of SGD on environment e changes W v by -eta D_e v,
where D_e is the gradient of the loss with respect to W. Its relative growth is the strength

    xi_e = -<W v, D_e v> / |W v|^2,    and per step    mean_e log|1 + eta xi_e|

is the exponent of the theory: negative if the order of environments washes the direction out while it is small. For
networks with quadratic activation, xi_e is the strength of the papers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.core.validation import COUNT, POSITIVE, require
from holdfast.torch.training import evaluation_mode

# Pairs of environments that are listed one by one; of more, the least and the mean cosine.
LISTED_PAIRS = 15
# A learning rate that no training reaches.
NO_LIMIT = 1e9

BatchLoss = Callable[[nn.Module, Any], Tensor]
"""(model, batch) -> the mean loss of the batch, a scalar."""


class Direction(NamedTuple):
    """A direction in the space that a layer reads.

    Attributes:
        layer: name of a module with a matrix `weight`, such as a `torch.nn.Linear`, as in `model.named_modules()`.
        vector: (inputs of the layer,), of any length.

    Example, the third input of a network:
        >>> Direction("0", torch.eye(5)[2]).layer
        '0'
    """

    layer: str
    vector: Tensor


class ScalarWriter(Protocol):
    """What `write` needs: TensorBoard's `SummaryWriter`, or anything with this method.

    Example:
        >>> class Printer:
        ...     def add_scalar(self, tag, scalar_value, global_step=None):
        ...         print(global_step, tag, scalar_value)
        >>> writer: ScalarWriter = Printer()
        >>> EnvironmentMeasurement({"a": 2.0}, {"a": 1.0}, {}, 0.0).write(writer, step=7)
        7 loss/a 2.0
        7 gradient_norm/a 1.0
        7 heterogeneity 0.0
    """

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> Any:
        """Record one number."""
        ...


@dataclass(frozen=True)
class EnvironmentMeasurement:
    """The state of the environments at one moment of training.

    Attributes:
        losses: label -> loss.
        gradient_norms: label -> norm of the gradient with respect to all parameters.
        conflicts: pair of labels -> cosine between their gradients; negative if they pull apart.
        heterogeneity: root mean square of |g_e - gbar|, divided by |gbar|; NaN if all gradients vanish.
        strengths: name of a direction -> label -> xi_e.
        growth: name of a direction -> mean_e log|1 + eta xi_e|.

    Example:
        >>> EnvironmentMeasurement({"a": 2.0}, {"a": 1.0}, {}, 0.0).scalars()
        {'loss/a': 2.0, 'gradient_norm/a': 1.0, 'heterogeneity': 0.0}
    """

    losses: dict[Any, float]
    gradient_norms: dict[Any, float]
    conflicts: dict[tuple[Any, Any], float]
    heterogeneity: float
    strengths: dict[str, dict[Any, float]] = field(default_factory=dict)
    growth: dict[str, float] = field(default_factory=dict)

    def scalars(self) -> dict[str, float]:
        """All numbers under names such as loss/a, conflict/a/b, growth/colour.

        Of more than 15 pairs of environments, conflict/least and conflict/mean.
        """
        conflicts = {f"{a}/{b}": value for (a, b), value in self.conflicts.items()}
        if len(conflicts) > LISTED_PAIRS:
            cosines = list(conflicts.values())
            conflicts = {"least": min(cosines), "mean": sum(cosines) / len(cosines)}
        parts: dict[str, Mapping[Any, float]] = {
            "loss": self.losses,
            "gradient_norm": self.gradient_norms,
            "conflict": conflicts,
            "growth": self.growth,
        }
        parts |= {f"strength/{name}": values for name, values in self.strengths.items()}
        found = {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        return found | {"heterogeneity": self.heterogeneity}

    def write(self, writer: ScalarWriter, step: int) -> None:
        """Send all numbers to TensorBoard's `SummaryWriter`, or to anything with its `add_scalar`."""
        for name, value in self.scalars().items():
            writer.add_scalar(name, value, step)


def measure_environments(
    model: nn.Module,
    loss: BatchLoss,
    batches: Mapping[Any, Any],
    *,
    directions: Mapping[str, Direction] | None = None,
    learning_rate: float | None = None,
    weights: Mapping[Any, float] | None = None,
) -> EnvironmentMeasurement:
    """Losses, gradients and growth, one batch for each environment.

    The model is put into evaluation mode for the measurement, so that dropout is off and batch normalisation keeps its
    averages; its `.grad` is not touched.

    Args:
        model: any network.
        loss: (model, batch) -> the mean loss of the batch.
        batches: label -> a batch of this environment, the larger the better.
        directions: name -> direction along which growth is measured.
        learning_rate: eta of SGD without momentum, for the growth.
        weights: label -> share of the visits, as `EnvironmentBatchSampler.visits`; None: equal.

    Example, w on a feature that predicts with opposite signs in the two environments:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> batches = {"a": torch.tensor([[2.0]]), "b": torch.tensor([[-1.0]])}
        >>> found = measure_environments(model, lambda m, x: -m(x).mean(), batches, learning_rate=0.5,
        ...                              directions={"feature": Direction("", torch.ones(1))})
        >>> found.conflicts, found.strengths, round(found.growth["feature"], 4)
        ({('a', 'b'): -1.0}, {'feature': {'a': 2.0, 'b': -1.0}}, 0.0)
    """
    require(len(batches) > 0, "batches must have at least one environment", 0)
    chosen = dict(directions or {})
    require(not chosen or learning_rate is not None, "learning_rate must be given with directions", learning_rate)
    share = _shares(list(batches), weights)
    with evaluation_mode(model):
        names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        parameters = [model.get_parameter(name) for name in names]
        losses, gradients = {}, []
        for label, batch in batches.items():
            value = loss(model, batch)
            losses[label] = value.item()
            gradients.append(torch.autograd.grad(value, parameters, materialize_grads=True))
    gram = np.zeros((len(batches), len(batches)))
    for parts in zip(*gradients, strict=True):  # one parameter after the other, in double precision
        flat = torch.stack([part.flatten() for part in parts]).double()
        gram += (flat @ flat.T).cpu().numpy()
    strengths = {
        name: dict(zip(batches, _strengths(model, direction, names, gradients), strict=True))
        for name, direction in chosen.items()
    }
    growth = {name: growth_rate(values, learning_rate, weights) for name, values in strengths.items() if learning_rate}
    return EnvironmentMeasurement(losses, *_geometry(list(batches), gram, share), strengths, growth)


def growth_rate(
    strengths: Mapping[Any, float], learning_rate: float, weights: Mapping[Any, float] | None = None
) -> float:
    """mean_e log|1 + eta xi_e|: growth per step of a small signal with strengths xi_e, in the logarithm.

    Args:
        strengths: label -> xi_e.
        learning_rate: eta.
        weights: label -> share of the visits; None: equal.

    Example, strengths 1 -+ 6 at eta = 0.1:
        >>> round(growth_rate({"a": -5.0, "b": 7.0}, 0.1), 4)
        -0.0813
    """
    POSITIVE.check("learning_rate", learning_rate)
    factors = np.abs(1 + learning_rate * np.array(list(strengths.values())))
    with np.errstate(divide="ignore"):  # a factor of zero ends the direction at once
        return float(np.log(factors) @ _shares(list(strengths), weights))


def washout_warning(
    strengths: Mapping[Any, float],
    learning_rate: float,
    *,
    weights: Mapping[Any, float] | None = None,
    largest_learning_rate: float | None = None,
) -> str | None:
    """Why a direction with these strengths will not be washed out, in words; None if it will be.

    The criterion is that of `holdfast.theory.sharp_window`: a step size at which the exponent is negative and at which
    no sequence of environments makes the iteration diverge.

    Args:
        strengths: label -> xi_e, from `measure_environments`.
        learning_rate: eta.
        weights: label -> share of the visits; None: equal.
        largest_learning_rate: at which training is still stable, if you know it.

    Example:
        >>> print(washout_warning({"a": 0.5, "b": 1.5}, 0.1))
        No step size washes this direction out: the strengths never change sign (from 0.5 to 1.5): every factor \
1 + eta xi is at least one, so the spurious signal grows at every step size and nothing can be washed out.
        >>> print(washout_warning({"a": -5.0, "b": 7.0}, 0.02))
        At a learning rate of 0.02 this direction grows by a factor 1.01 a step; between 0.05714 and 0.1485 it shrinks.
        >>> washout_warning({"a": -5.0, "b": 7.0}, 0.1) is None
        True
        >>> print(washout_warning({"a": -5.0, "b": 7.0}, 0.2))
        A learning rate of 0.2 lies above the window from 0.05714 to 0.1485: below the lower end the spurious signal \
grows; above the upper end some sequence of environments makes the iteration diverge.
    """
    from holdfast.sensing.environments import table  # jax is imported here, not with torch
    from holdfast.theory.window import sharp_window

    rate = growth_rate(strengths, learning_rate, weights)
    stable = 1 / NO_LIMIT if largest_learning_rate is None else 1 / largest_learning_rate
    law = table(np.array(list(strengths.values())), _shares(list(strengths), weights))
    window = sharp_window(law, stable)
    if window.empty:
        return f"No step size washes this direction out: {window.reason}."
    if learning_rate > window.high:
        return (
            f"A learning rate of {learning_rate:.4g} lies above the window from {window.low:.4g} to {window.high:.4g}: "
            f"{window.reason}."
        )
    if rate < 0:
        return None
    return (
        f"At a learning rate of {learning_rate:.4g} this direction grows by a factor {math.exp(rate):.3g} a step; "
        f"between {window.low:.4g} and {window.high:.4g} it shrinks."
    )


def lightning_callback(loss: BatchLoss, batches: Mapping[Any, Any], *, every: int = 100, **settings: Any) -> Any:
    """A Lightning callback that logs `measure_environments` every so many steps.

    Works with the packages `lightning` and `pytorch_lightning`; neither is imported before this function is called.

    Args:
        loss: (LightningModule, batch) -> the mean loss.
        batches: label -> a batch of this environment, on the device of the module.
        every: steps between measurements.
        settings: of `measure_environments`.

    Example:
        >>> lightning_callback(lambda model, batch: model(batch).mean(), {}, every=0)
        Traceback (most recent call last):
        ValueError: every must be a whole number of at least 1, got 0
    """
    COUNT.check("every", every)
    found = [name for name in ("lightning.pytorch", "pytorch_lightning") if find_spec(name.partition(".")[0])]
    if not found:
        raise ModuleNotFoundError("lightning_callback needs Lightning, which is not installed: pip install lightning")
    base = import_module(found[0]).Callback

    def log_environments(callback: Any, trainer: Any, module: Any, outputs: Any, batch: Any, number: int) -> None:
        if trainer.global_step % every == 0:
            with torch.enable_grad():
                measured = measure_environments(module, loss, batches, **settings)
            module.log_dict(measured.scalars())

    return type("EnvironmentCallback", (base,), {"on_train_batch_end": log_environments})()


def _geometry(labels: list, gram: np.ndarray, share: np.ndarray) -> tuple[dict, dict, float]:
    """Norms, cosines and heterogeneity, from the inner products of the gradients."""
    norms = np.sqrt(np.diagonal(gram))
    both = np.outer(norms, norms)
    cosines = np.where(both > 0, gram / np.where(both > 0, both, 1.0), np.nan)
    conflicts = {(labels[i], labels[j]): float(cosines[i, j]) for i, j in combinations(range(len(labels)), 2)}
    mean = float(share @ gram @ share)
    spread = max(float(share @ np.diagonal(gram)) - mean, 0.0)
    heterogeneity = math.sqrt(spread / mean) if mean > 0 else (math.inf if spread > 0 else math.nan)
    return dict(zip(labels, norms.tolist(), strict=True)), conflicts, heterogeneity


def _strengths(model: nn.Module, direction: Direction, names: list[str], gradients: list) -> list[float]:
    """xi_e of one direction in each environment; NaN if the weights have nothing along it."""
    name = f"{direction.layer}.weight".lstrip(".")
    require(name in names, f"layer must be one whose weights are trained, such as {names[0]!r} without .weight", name)
    weight = model.get_parameter(name).detach().double()
    vector = torch.as_tensor(direction.vector).to(weight)
    fits = weight.ndim == 2 and vector.shape == weight.shape[1:]
    require(fits, f"vector must have one number for each input of {direction.layer!r}", tuple(vector.shape))
    along = weight @ vector
    size = along.square().sum()
    position = names.index(name)
    return [float(-(along @ (parts[position].double() @ vector)) / size) for parts in gradients]


def _shares(labels: list, weights: Mapping[Any, float] | None) -> np.ndarray:
    if weights is None:
        return np.full(len(labels), 1 / len(labels))
    require(set(labels) <= set(weights), f"weights must have a number for each of {labels}", list(weights))
    given = np.array([weights[label] for label in labels], float)
    require(bool((given >= 0).all() and given.sum() > 0), "weights must be not negative and not all 0", given.tolist())
    return given / given.sum()
