"""What changes between environments in a layer of a frozen network, and a head in closed form that does not use it."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch

from holdfast.core.validation import require
from holdfast.embeddings.discovery import Discovery, describe_variation, encode_targets
from holdfast.embeddings.linear_head import CANDIDATES, LinearHead, invariant_head_of
from holdfast.embeddings.variation import LEVEL, find_variation
from holdfast.torch.features import BATCH_SIZE, LayerReader, Side, check_layer, layer_moments


def discover(
    network: torch.nn.Module,
    data: Any,
    *,
    layer: str,
    environments: Any = None,
    side: Side = "output",
    reduce: Callable[[torch.Tensor], torch.Tensor] | None = None,
    continuous: bool = False,
    components: int | None = None,
    level: float = LEVEL,
    batch_size: int = BATCH_SIZE,
) -> Discovery:
    """Find what changes between environments: directions of a layer in which the classes do not always differ equally.

    Two passes over the data: moments of each class in each environment, then the scores of the rows. The network may
    have been trained on these rows, since it did not see their environments; the tests keep their level.

    Args:
        network: frozen, trained in any way.
        data: (inputs, targets) as arrays or tensors; a map-style data set; or a DataLoader, or a list of batches, that
            does not shuffle.
        layer: name of a layer, as in `network.named_modules()`; the last hidden one as a rule.
        environments: one label for each row; None: the third part of each batch.
        side: what the layer returns, or what it is given.
        reduce: features -> (rows, features); None: as they are, or the mean over positions of images.
        continuous: whether the target is a number instead of a class.
        components: how many principal components are compared; None: 20, fewer if an environment has few rows.
        level: probability of finding a direction where none varies.
        batch_size: rows at once.

    Example, an untrained network already sees the colour, which agrees with the label more in one environment:
        >>> from holdfast.datasets import coloured_digits
        >>> rows = coloured_digits([0.8, 0.95], seed=0, label_noise=0.1)
        >>> _ = torch.manual_seed(0)
        >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 32), torch.nn.ReLU())
        >>> data = torch.tensor(rows.images).float(), rows.labels
        >>> found = discover(network, data, layer="2", environments=rows.environments)
        >>> agreement = np.mean(found.attributes[:, 0] == rows.attribute)
        >>> found.count, bool(max(agreement, 1 - agreement) > 0.95)
        (1, True)
    """
    reader = LayerReader(network, layer, side=side, reduce=reduce, batch_size=batch_size)
    moments, targets, grouping = layer_moments(reader, data, environments, continuous=continuous)
    codes, classes = encode_targets(targets, len(targets), continuous)
    variation = find_variation(moments, components=components, level=level, continuous=continuous)
    coordinates = np.concatenate([variation.components.coordinates(batch.features) for batch in reader.read(data)])
    return describe_variation(variation, coordinates, codes, classes, grouping)


class InvariantHead(NamedTuple):
    """A linear layer with how it was found.

    Attributes:
        linear: from features to the scores of the classes, the log-odds of the second of two, or a number.
        fit: what was removed, how surely, and what is left.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        >>> data = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)), torch.arange(400) % 2
        >>> head = invariant_head(network, data, replaces="1", environments=np.arange(400) // 200)
        >>> head
        InvariantHead(linear=Linear(in_features=2, out_features=2, bias=True), removed=0, components=2)
    """

    linear: torch.nn.Linear
    fit: LinearHead

    def __repr__(self) -> str:
        quality = self.fit.quality
        return f"InvariantHead(linear={self.linear!r}, removed={quality.varying}, components={quality.components})"


def invariant_head(
    network: torch.nn.Module,
    data: Any,
    *,
    replaces: str,
    environments: Any = None,
    continuous: bool = False,
    components: int | Sequence[int] = CANDIDATES,
    level: float = LEVEL,
    log_odds: bool | None = None,
    batch_size: int = BATCH_SIZE,
) -> InvariantHead:
    """The linear discriminant of the features in which classes differ equally in all environments.

    If the network fits its training rows much better than others, take rows that it was not trained on, from the same
    environments: features of memorised rows separate the classes better than those of new ones, and the number of
    components is then chosen too large. The more rows, the more exactly is known what to remove.

    Args:
        network: frozen, trained in any way.
        data: as for `discover`.
        replaces: name of the layer that the head can take the place of, the last one as a rule, such as "fc" or
            "classifier": the features are what this layer is given, (rows, features). It is not read itself, while
            `discover` reads what its `layer` returns.
        environments: one label for each row; None: the third part of each batch.
        continuous: whether the target is a number instead of a class.
        components: how many principal components; several: the number with the largest margin where what varies is
            reversed, from the sampling error of the directions (`holdfast.embeddings.linear_head.HeadQuality`).
        level: of the tests that say how many directions vary.
        log_odds: of two classes, a single output; None: if the layer that it replaces is linear with one output.
        batch_size: rows at once.

    Example:
        >>> from holdfast.datasets import coloured_digits
        >>> rows = coloured_digits([0.8, 0.95], seed=0)
        >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 1))
        >>> data = torch.tensor(rows.images).float(), rows.labels
        >>> head = invariant_head(network, data, replaces="1", environments=rows.environments)
        >>> new = with_layer(network, "1", head.linear)
        >>> new(data[0]).shape
        torch.Size([1797, 1])
    """
    reader = LayerReader(network, replaces, side="input", batch_size=batch_size)
    moments, _, _ = layer_moments(reader, data, environments, continuous=continuous)
    fit = invariant_head_of(moments, components=components, level=level, continuous=continuous)
    if log_odds is None:
        old = network.get_submodule(replaces)
        log_odds = isinstance(old, torch.nn.Linear) and old.out_features == 1
    weight, bias = fit.coefficients, fit.intercepts
    if log_odds and not continuous:
        require(len(bias) == 2, f"log_odds must be False for {len(bias)} classes", True)
        weight, bias = np.diff(weight, axis=0), np.diff(bias)
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(weight))
        linear.bias.copy_(torch.tensor(bias))
    return InvariantHead(linear, fit)


def with_layer(network: torch.nn.Module, name: str, module: torch.nn.Module) -> torch.nn.Module:
    """A copy of the network with a copy of another layer under this name, on the same device and in the same precision.

    Args:
        network: not changed.
        name: of the layer to replace, as in `network.named_modules()`.
        module: the layer to put there.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
        >>> with_layer(network, "1", torch.nn.Identity())(torch.zeros(1, 2)).shape
        torch.Size([1, 3])
    """
    check_layer(network, "name", name)
    copy, layer = deepcopy(network), deepcopy(module)
    parameter = next(copy.get_submodule(name).parameters(), None)
    if parameter is not None:
        layer = layer.to(parameter.device, parameter.dtype)
    copy.set_submodule(name, layer)
    return copy
