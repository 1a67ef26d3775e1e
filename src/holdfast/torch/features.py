"""Features of a named layer of any network, batch by batch, and their moments in one pass."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler

from holdfast.core.class_moments import ClassMoments, add_class_moments
from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.validation import require
from holdfast.embeddings.discovery import MOST_LABELS, check_labels
from holdfast.embeddings.variation import embedding_moments
from holdfast.torch.training import evaluation_mode

BATCH_SIZE = 1024

Side = Literal["output", "input"]
"""Which side of the layer: what it returns, or what it is given."""


class FeatureBatch(NamedTuple):
    """The features of some rows, with their targets and the positions of the rows in the data.

    Attributes:
        features: (rows, features), float64.
        targets: (rows,).
        first: the position of the first row.
        environments: (rows,), labels, if the batches of the data carry them; otherwise None.

    Example:
        >>> FeatureBatch(np.zeros((2, 3)), np.zeros(2), 0, None).features.shape
        (2, 3)
    """

    features: np.ndarray
    targets: np.ndarray
    first: int
    environments: np.ndarray | None


@dataclass(frozen=True)
class LayerReader:
    """Reads the features of one layer while a network runs over data.

    Args:
        network: any module; it is run in evaluation mode, without gradients, on the device of its parameters.
        layer: name of a layer, as in `network.named_modules()`.
        side: what the layer returns, or what it is given, which is what a new head in its place would see.
        reduce: features -> (rows, features); None: as they are, or the mean over positions of images.
        batch_size: rows at once, if the data are not batches already.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        >>> reader = LayerReader(network, "1")
        >>> data = torch.ones(5, 2), torch.zeros(5)
        >>> [batch.features.shape for batch in reader.read(data)]
        [(5, 3)]
    """

    network: torch.nn.Module
    layer: str
    _: KW_ONLY
    side: Side = "output"
    reduce: Callable[[torch.Tensor], torch.Tensor] | None = None
    batch_size: int = BATCH_SIZE

    def __post_init__(self) -> None:
        check_layer(self.network, "layer", self.layer)
        require(self.side in ("output", "input"), "side must be output or input", repr(self.side))

    def read(self, data: Any) -> Iterator[FeatureBatch]:
        """Run the network over all rows, in the order of the data.

        Args:
            data: (inputs, targets) as arrays or tensors; a map-style data set; or a DataLoader, or a list of batches,
                that does not shuffle and drops no rows. Batches are (inputs, targets) or (inputs, targets,
                environments); inputs may be a tensor, a tuple or list of arguments, or a dictionary of named ones.
        """
        seen: list[torch.Tensor] = []

        def output_hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            found = (inputs if isinstance(inputs, tuple) else (inputs,)) if self.side == "input" else output
            seen.append(found[0] if isinstance(found, tuple) else found)

        first = 0
        hook = self.network.get_submodule(self.layer).register_forward_hook(output_hook)
        try:
            with evaluation_mode(self.network), torch.no_grad():
                for inputs, targets, *more in as_batches(data, self.batch_size):
                    seen.clear()
                    _call(self.network, inputs)
                    often = f"{self.layer!r}, which ran {len(seen)} times"
                    require(len(seen) == 1, "layer must run once for each batch", often)
                    features = self._flat(seen[0]).double().cpu().numpy()
                    labels = _plain(more[0]) if more else None
                    yield FeatureBatch(features, _plain(targets), first, labels)
                    first += len(features)
        finally:
            hook.remove()

    def _flat(self, features: torch.Tensor) -> torch.Tensor:
        if self.reduce is not None:
            features = self.reduce(features)
        elif features.ndim > 3:
            features = features.flatten(2).mean(2)  # images: (rows, channels, height, width)
        found = f"{tuple(features.shape)} of {self.layer!r}; pass reduce, such as lambda h: h.mean(1)"
        require(features.ndim == 2, "layer must have features of the shape (rows, features)", found)
        return features


def check_layer(network: torch.nn.Module, argument: str, name: str) -> None:
    """Raise an error unless the argument is the name of a layer.

    Example:
        >>> check_layer(torch.nn.Sequential(torch.nn.ReLU()), "layer", "1")
        Traceback (most recent call last):
        ValueError: layer must be one of the layers 0, got '1'
    """
    names = [each for each, _ in network.named_modules() if each]
    require(name in names, f"{argument} must be one of the layers {', '.join(names)}", repr(name))


def as_batches(data: Any, batch_size: int) -> Iterable[Any]:
    """Batches of data in their order: of tensors or arrays, a map-style data set, a DataLoader, or batches themselves.

    Example:
        >>> [len(targets) for _, targets in as_batches((torch.zeros(5, 2), torch.zeros(5)), 2)]
        [2, 2, 1]
    """
    if isinstance(data, DataLoader):
        contract = "data must come in the order of its rows, all of them, so that each gets its own score"
        other = "a DataLoader with shuffle, drop_last or a sampler of its own; pass its data set instead"
        require(_in_order(data), contract, other)
        return data
    if isinstance(data, tuple) and len(data) in (2, 3):
        lengths = [len(part) for part in data]
        equal = len(set(lengths)) == 1
        require(equal, "data must have one target for each row of the inputs", f"parts of {lengths} rows")
        # labels may be texts, which are no tensors
        parts: list[Any] = [torch.as_tensor(data[0]), *map(_plain, data[1:])]
        return [tuple(part[first : first + batch_size] for part in parts) for first in range(0, lengths[0], batch_size)]
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size=batch_size)
    if isinstance(data, list):
        arrays = any(isinstance(batch, torch.Tensor | np.ndarray) for batch in data)
        require(not arrays, "data must be a tuple (inputs, targets), or a list of such batches", "a list of arrays")
        return data
    kinds = "(inputs, targets), a map-style data set, a DataLoader or a list of batches"
    raise ValueError(f"data must be {kinds}, got {type(data)}")


def _in_order(loader: DataLoader) -> bool:
    """Whether a loader gives all rows, one after the other."""
    batches = loader.batch_sampler
    if batches is None:  # every item of the data set is a batch
        return isinstance(loader.sampler, SequentialSampler)
    # with a batch sampler of the user's, `loader.sampler` is a SequentialSampler that is not used
    return type(batches) is BatchSampler and isinstance(batches.sampler, SequentialSampler) and not batches.drop_last


def as_read_by(network: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    """Values on the device of the network's parameters; floating-point numbers in their precision, whatever NumPy's is.

    Example:
        >>> as_read_by(torch.nn.Linear(2, 1), torch.zeros(3, 2, dtype=torch.float64)).dtype
        torch.float32
    """
    parameter = next(network.parameters(), None)
    if parameter is None:
        return values
    return values.to(parameter.device, parameter.dtype if values.is_floating_point() else None)


def _call(network: torch.nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return network(**{name: as_read_by(network, value) for name, value in inputs.items()})
    arguments = inputs if isinstance(inputs, tuple | list) else (inputs,)
    return network(*(as_read_by(network, value) for value in arguments))


def _plain(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def layer_moments(
    reader: LayerReader, data: Any, environments: Any = None, *, continuous: bool = False
) -> tuple[ClassMoments, np.ndarray, Grouping]:
    """Moments of a layer for each class in each environment, in one pass, with targets and environments of all rows.

    Args:
        reader: of the layer.
        data: as for `LayerReader.read`.
        environments: one label for each row; None: the third part of each batch.
        continuous: whether the target is a number: then the moments are of (target, features) as one class.

    Example:
        >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3))
        >>> data = torch.ones(4, 2), torch.tensor([0, 1, 0, 1])
        >>> moments, targets, grouping = layer_moments(LayerReader(network, "0"), data, ["a", "a", "b", "b"])
        >>> moments.counts.tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    total: ClassMoments | None = None
    targets: list[np.ndarray] = []
    labels: list[Any] = []
    given = None if environments is None else group_rows(environments, len(environments))
    for batch in reader.read(data):
        rows = len(batch.features)
        values = batch.targets.reshape(rows, -1)
        one = values.shape[1] == 1
        require(one, "targets must be one number or label for each row", f"the shape {batch.targets.shape}")
        targets.append(values[:, 0])
        if given is None:
            named = batch.environments is not None
            require(named, "environments must be given, or be the third part of each batch", None)
            labels.append(batch.environments)
            grouping = group_rows(batch.environments, rows)
        else:
            grouping = Grouping(given.codes[batch.first : batch.first + rows], given.labels)
            enough = len(grouping.codes) == rows
            require(enough, "environments must hold one label for each row", f"{len(given.codes)} labels")
        if not continuous:
            check_labels(targets[-1])
        chunk = embedding_moments(batch.features, targets[-1], grouping, continuous=continuous)
        total = chunk if total is None else add_class_moments(total, chunk)
        few = len(total.classes) <= MOST_LABELS
        hint = "more; pass continuous=True for numbers"
        require(few, f"targets must be labels of at most {MOST_LABELS} classes", hint)
    if total is None:
        raise ValueError("data must hold at least one row, got none")
    count = sum(map(len, targets))
    everything = given or group_rows(np.concatenate(labels), count)
    contract = f"environments must hold one label for each of the {count} rows"
    require(len(everything.codes) == count, contract, f"{len(everything.codes)} labels")
    order = [total.labels.index(label) for label in everything.labels]
    total = total._replace(labels=tuple(everything.labels), sums=total.sums[order])
    return total, np.concatenate(targets), everything
