"""Batches of one environment from streams that have no length and no row numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from holdfast.core.validation import COUNT, COUNT_OR_ZERO, SEED, require
from holdfast.torch.batches import ORDERS, Visits, resumed_at, visits_per_cycle

Stream = Iterable[Any] | Callable[[int], Iterable[Any]]
"""Samples, from the beginning at every `iter()`; or a function of the number of the epoch that returns them."""


@dataclass(eq=False, repr=False)
class EnvironmentStreams(IterableDataset):
    """Batches of one environment from several streams, in a chosen order of the environments.

        loader = DataLoader(EnvironmentStreams({"a": stream_a, "b": stream_b}), batch_size=None)

    A stream is an iterable, or a function of the number of the epoch that returns one, say in another order each time.
    Every epoch reads the streams from their beginning, and one that ends is started again. The order of environments
    goes on from epoch to epoch. The data set yields whole batches, so the loader gets `batch_size=None`.

    Of W workers of a loader, worker w makes batches w, w + W, ..., which the loader puts back in order: the sequence
    does not depend on their number. Each worker reads all streams and drops what is not its own, so workers help where
    collating and transforms are slow, not where reading is. Before every epoch call `set_epoch`: workers have copies of
    the data set, which cannot tell it that they are done.

    Several processes of DistributedDataParallel: give each its own part of every stream and all the same seed. They
    visit the environments in the same order, so that every step sees one environment.

    Args:
        streams: label -> iterable of samples, or function of the epoch that returns it.
        batch_size: samples of a batch.
        order: "reshuffled", "cyclic" or "independent", see `EnvironmentBatchSampler`.
        weights: label -> weight; None: every environment equally often.
        batches_per_epoch: batches of one iteration.
        seed: of the order.
        collate: list of samples -> batch; None: that of torch.

    Example:
        >>> streams = EnvironmentStreams({"a": [1, 2, 3], "b": [-1, -2]}, 2, order="cyclic", batches_per_epoch=3)
        >>> [batch.tolist() for batch in streams]
        [[1, 2], [-1, -2], [3, 1]]
        >>> streams.visited()
        ['b', 'a', 'b']
    """

    streams: Mapping[Any, Stream]
    batch_size: int = 16
    _: KW_ONLY
    order: str = "reshuffled"
    weights: Mapping[Any, float] | None = None
    batches_per_epoch: int
    seed: int = 0
    collate: Callable[[list], Any] | None = None

    def __post_init__(self) -> None:
        require(len(self.streams) > 0, "streams must have at least one environment", 0)
        once = [label for label, stream in self.streams.items() if isinstance(stream, Iterator)]
        require(not once, "streams must start from their beginning at every iter(), which iterators cannot", once)
        require(self.order in ORDERS, f"order must be one of {', '.join(ORDERS)}", repr(self.order))
        for rule, name in ((COUNT, "batch_size"), (COUNT, "batches_per_epoch"), (SEED, "seed")):
            rule.check(name, getattr(self, name))
        self.environments = list(self.streams)
        each_once = np.ones(len(self.environments), int)
        cycle = visits_per_cycle("uniform" if self.weights is None else self.weights, self.environments, each_once)
        self.visits = dict(zip(self.environments, cycle.tolist(), strict=True))
        self._sequence = Visits(self.order, cycle, self.seed)
        # Shared with workers that outlive an epoch, which have a copy of everything else.
        self._begin = torch.zeros((), dtype=torch.int64).share_memory_()
        self._resumed = False

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self.batches_per_epoch

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        begin, end = self._window()
        epoch = begin // self.batches_per_epoch
        readers = {label: self._samples(label, epoch) for label in self.environments}
        first = epoch * self.batches_per_epoch
        collate = default_collate if self.collate is None else self.collate
        for step, code in enumerate(self._sequence.window(first, end).tolist(), first - begin):
            # Streams have no other way to get to the middle of an epoch than to be read from its beginning.
            batch = list(islice(readers[self.environments[code]], self.batch_size))
            if step >= 0 and step % count == number:
                yield collate(batch)
        if worker is None:
            self._begin.fill_(end)

    def _samples(self, label: Any, epoch: int) -> Iterator[Any]:
        stream = self.streams[label]
        while True:
            empty = True
            for sample in stream(epoch) if callable(stream) else stream:
                empty = False
                yield sample
            require(not empty, "every stream must have at least one sample", f"none from {label!r}")

    def _window(self) -> tuple[int, int]:
        """The numbers of the batches of the next iteration."""
        begin = int(self._begin)
        return begin, (begin // self.batches_per_epoch + 1) * self.batches_per_epoch

    def _fingerprint(self) -> str:
        """Equal for streams of the same labels and settings, in any process."""
        settings = self.visits, (self.order, self.seed), self.batch_size, self.batches_per_epoch
        return blake2b(repr(settings).encode(), digest_size=8).hexdigest()

    def visited(self) -> list[Any]:
        """The environments of the batches of the next iteration: `zip(streams.visited(), loader)`."""
        return [self.environments[code] for code in self._sequence.window(*self._window())]

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration begin this epoch. One that was resumed in its middle goes on from there."""
        COUNT_OR_ZERO.check("epoch", epoch)
        if not (self._resumed and epoch == int(self._begin) // self.batches_per_epoch):
            self._begin.fill_(epoch * self.batches_per_epoch)
        self._resumed = False

    def state_dict(self, batches: int = 0) -> dict[str, Any]:
        """Where the sequence stands: `batches` were consumed since this iteration began, in mid-epoch if resumed."""
        COUNT_OR_ZERO.check("batches", batches)
        return {"batches": int(self._begin) + batches, "sequence": self._fingerprint()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration go on where the state was taken; it ends with that epoch.

        The labels of the streams and all settings have to be the same. What the streams hold is not compared.
        """
        self._begin.fill_(resumed_at(state, self._fingerprint()))
        self._resumed = True
