"""What changes between environments, in the features of a layer of a network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from holdfast.embeddings.discovery import Discovery, describe_variation, encode_targets
from holdfast.embeddings.variation import LEVEL, find_variation
from holdfast.torch.features import BATCH_SIZE, LayerReader, Side, layer_moments


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
