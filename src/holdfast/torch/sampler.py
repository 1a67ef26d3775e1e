"""Batches of one environment for `torch.utils.data.DataLoader`, in an order that washes spurious signals out."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Sampler

from holdfast.core.grouping import Grouping, group_rows
from holdfast.core.validation import COUNT, COUNT_OR_ZERO, require
from holdfast.torch.batches import BatchSequence, resumed_at


class EnvironmentBatchSampler(Sampler[list[int]]):
    """Every batch comes from one environment, and the environments follow one another in a chosen order.

        loader = DataLoader(dataset, batch_sampler=EnvironmentBatchSampler(labels, batch_size=16))

    There is one infinite sequence of batches, which labels, settings and seed determine. Epoch e is the window of
    batches from e * B on, with B = batches_per_epoch; each iteration begins the next epoch unless `set_epoch` or
    `load_state_dict` said where. Rows of an environment come pass after pass, each in a fresh random order: none is
    seen for the second time before all were seen once, over epochs as well. The global random state is not used.

    With weights "size", order "reshuffled" or "cyclic" and the defaults of everything else, every epoch has every row
    exactly once. With `drop_last` some are left out; with `mixing` or `replacement` some come several times; and with
    split "batches", an epoch that is rounded up to a multiple of the processes repeats a few rows.

    Args:
        labels: the environment of each row of the data set: a list, array, tensor, or pandas column of anything.
        batch_size: rows of a batch. With split "within" it is divided among the processes.
        dataset: the data set of the loader, whose length is compared with the labels: a loader does not tell its
            sampler, so that labels too few would leave rows out in silence; None: not compared.
        order: "reshuffled": every cycle visits each environment, in a fresh random order; "cyclic": always in the same
            order; "independent": drawn anew for each batch (the paper).
        weights: how often environments are visited: "size": in proportion to their batches; "uniform": equally often;
            or a mapping from labels to weights. In cycles the visits are whole numbers, see `visits`.
        mixing: the share of each batch that comes from all environments; 1 is ordinary, pooled training.
        replacement: whether rows are drawn independently instead of in passes.
        drop_last: whether the short batch at the end of a pass through an environment is left out.
        batches_per_epoch: of all processes together; None: as many as one pass through all rows takes.
        seed: of everything that is random; the same in all processes.
        rank: of this process; None: that of torch.distributed if it is initialised, else 0.
        num_replicas: number of processes; None: as for `rank`.
        split: "within": each process gets a slice of every batch, so that a step of DistributedDataParallel sees one
            environment; "batches": process r gets batches r, r + num_replicas, ..., and such a step sees several.

    Attributes:
        environments: the labels that occur.
        visits: label -> visits in one cycle.
        cycle_length: batches of one cycle.

    Example:
        >>> sampler = EnvironmentBatchSampler(["a", "b", "a", "b", "a", "b"], batch_size=2, order="cyclic")
        >>> sampler.visited()
        ['a', 'b', 'a', 'b']
        >>> [(sampler.environment_of(batch), len(batch)) for batch in sampler]
        [('a', 2), ('b', 2), ('a', 1), ('b', 1)]
    """

    def __init__(
        self,
        labels: Any,
        batch_size: int = 16,
        *,
        dataset: Sized | None = None,
        order: str = "reshuffled",
        weights: str | Mapping[Any, float] = "size",
        mixing: float = 0.0,
        replacement: bool = False,
        drop_last: bool = False,
        batches_per_epoch: int | None = None,
        seed: int = 0,
        rank: int | None = None,
        num_replicas: int | None = None,
        split: str = "within",
    ):
        grouping = _grouped(labels)
        if dataset is not None:
            contract = f"labels must have one label for each of the {len(dataset)} rows of the data set"
            require(len(grouping.codes) == len(dataset), contract, f"{len(grouping.codes)} labels")
        self._sequence = BatchSequence(
            grouping,
            batch_size,
            order=order,
            weights=weights,
            mixing=mixing,
            replacement=replacement,
            drop_last=drop_last,
            seed=seed,
        )
        self.batch_size, self.drop_last = batch_size, drop_last
        self.rank, self.num_replicas = _process(rank, num_replicas)
        require(split in ("within", "batches"), "split must be 'within' or 'batches'", repr(split))
        self.split = split
        # Batches of the sequence for each batch of this process.
        self._stride = self.num_replicas if split == "batches" else 1
        if batches_per_epoch is None:
            # All processes have equally many; the sequence just goes on.
            batches_per_epoch = -(-self._sequence.batches_per_pass // self._stride) * self._stride
        COUNT.check("batches_per_epoch", batches_per_epoch)
        contract = f"batches_per_epoch must be a multiple of the {self._stride} processes for split 'batches'"
        require(batches_per_epoch % self._stride == 0, contract, batches_per_epoch)
        self.batches_per_epoch = batches_per_epoch
        smallest = self._sequence.smallest_batch()
        contract = f"every batch must have a row for each of the {self.num_replicas} processes: set drop_last=True"
        require(split == "batches" or smallest >= self.num_replicas, contract, f"batches of {smallest} rows")
        self.environments = list(self._sequence.labels)
        self.visits = dict(zip(self.environments, self._sequence.visits.cycle.tolist(), strict=True))
        self.cycle_length = self._sequence.visits.length
        self._start_at(0)

    @classmethod
    def for_concatenated(
        cls, dataset: ConcatDataset, batch_size: int = 16, *, names: Sequence[Any] | None = None, **settings: Any
    ) -> "EnvironmentBatchSampler":
        """Each of the concatenated data sets is an environment.

        Args:
            dataset: a `torch.utils.data.ConcatDataset`.
            batch_size: rows of a batch.
            names: of the environments; None: their numbers.
            settings: see the class.

        Example:
            >>> from torch.utils.data import ConcatDataset, TensorDataset
            >>> parts = [TensorDataset(torch.zeros(4)), TensorDataset(torch.ones(2))]
            >>> sampler = EnvironmentBatchSampler.for_concatenated(ConcatDataset(parts), 2, names=["cold", "warm"])
            >>> sampler.visits
            {'cold': 2, 'warm': 1}
        """
        require(isinstance(dataset, ConcatDataset), "dataset must be a ConcatDataset", type(dataset).__name__)
        ends = np.array(dataset.cumulative_sizes)
        sizes = np.diff(ends, prepend=0)
        labels = list(range(len(sizes))) if names is None else list(names)
        require(len(labels) == len(sizes), f"names must have one name for each of {len(sizes)} data sets", len(labels))
        require(len(set(labels)) == len(labels), "names must be different", labels)
        used = [number for number, size in enumerate(sizes.tolist()) if size]
        codes = np.repeat(np.arange(len(used)), sizes[used])
        return cls(Grouping(codes, [labels[number] for number in used]), batch_size, **settings)

    def _start_at(self, batch: int) -> None:
        """Let the next iteration begin with this batch of the sequence; none of it was handed out yet."""
        self._begin, self._next, self._given = batch, batch, 0

    def __len__(self) -> int:
        """Batches that this process gets in an epoch."""
        return self.batches_per_epoch // self._stride

    def __iter__(self) -> Iterator[list[int]]:
        # An epoch begins with its first batch, not with `iter()`: a DataLoader with workers calls that twice.
        self._begin, self._given = self._next, 0
        self._next = self._end(self._begin)
        within = self.split == "within" and self.num_replicas > 1
        found = self._sequence.iterate(self._begin + (self.rank if self.split == "batches" else 0), self._stride)
        for number in range((self._next - self._begin) // self._stride):
            batch = next(found).tolist()
            self._given = number + 1
            yield batch[self.rank :: self.num_replicas] if within else batch

    def _end(self, begin: int) -> int:
        """The end of the epoch of a batch."""
        return (begin // self.batches_per_epoch + 1) * self.batches_per_epoch

    @property
    def epoch(self) -> int:
        """The number of the current epoch, or of the next one if none has begun."""
        return self._begin // self.batches_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration begin this epoch. One that was resumed in its middle goes on from there."""
        COUNT_OR_ZERO.check("epoch", epoch)
        if not (self._begin == self._next and epoch == self.epoch):
            self._start_at(epoch * self.batches_per_epoch)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Where the sequence stands, for a checkpoint. The same in all processes.

        Args:
            batches: that the training loop of this process has consumed in this iteration; None: those that were
                handed out. Give it with `num_workers` > 0, since the workers of a `DataLoader` fetch ahead.

        Example:
            >>> sampler = EnvironmentBatchSampler(["a", "b"] * 8, batch_size=2)
            >>> batches = iter(sampler)
            >>> _ = [next(batches) for _ in range(3)]
            >>> state = sampler.state_dict()
            >>> again = EnvironmentBatchSampler(["a", "b"] * 8, batch_size=2)
            >>> again.load_state_dict(state)
            >>> list(again) == list(batches)
            True
        """
        consumed = self._given if batches is None else batches
        COUNT_OR_ZERO.check("batches", consumed)
        given = f"batches must be at most the {self._given} that were handed out"
        require(consumed <= self._given, given, consumed)
        return {"batches": self._begin + consumed * self._stride, "sequence": self._sequence.fingerprint()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken; the number of processes may be another one.

        The labels and all settings of the sequence (batch_size, order, weights, mixing, replacement, drop_last, seed)
        have to be the same.
        """
        batches = resumed_at(state, self._sequence.fingerprint())
        into_epoch = batches % self.batches_per_epoch
        contract = f"state must be taken after a multiple of {self._stride} batches of an epoch for split 'batches'"
        require(into_epoch % self._stride == 0, contract, into_epoch)
        self._start_at(batches)

    def composition(self, batch: Any) -> dict[Any, int]:
        """Label -> number of rows, of a batch of row numbers.

        Example:
            >>> EnvironmentBatchSampler(["a", "b", "b"]).composition([0, 1, 2])
            {'a': 1, 'b': 2}
        """
        codes, counts = np.unique(self._sequence.codes[np.asarray(batch)], return_counts=True)
        return {self.environments[code]: int(count) for code, count in zip(codes, counts, strict=True)}

    def environment_of(self, batch: Any) -> Any:
        """The label of the one environment of a batch of row numbers; a ValueError if it has several.

        Example:
            >>> EnvironmentBatchSampler(["a", "b", "b"]).environment_of([1, 2])
            'b'
        """
        found = self.composition(batch)
        require(len(found) == 1, "batch must hold rows of one environment", found)
        return next(iter(found))

    def visited(self, epoch: int | None = None) -> list[Any]:
        """The environments of the batches of this process: `for environment, batch in zip(sampler.visited(), loader)`.

        Args:
            epoch: its number; None: what the next iteration will hand out.
        """
        require(self._sequence.pure > 0, "visited needs batches that belong to an environment", "mixing=1")
        begin = self._next if epoch is None else epoch * self.batches_per_epoch
        offset = self.rank if self.split == "batches" else 0
        codes = self._sequence.visits.window(begin, self._end(begin))[offset :: self._stride]
        return [self.environments[code] for code in codes]

    def describe(self) -> str:
        """What the batches hold, in words.

        Example:
            >>> print(EnvironmentBatchSampler(["a"] * 40 + ["b"] * 20, batch_size=10).describe())
            60 rows of 2 environments; batches of 10 rows, each of one environment, in reshuffled order.
            A cycle has 3 batches, an epoch 6.
            environment   rows  visits per cycle  passes per epoch
            a               40                 2              1.00
            b               20                 1              1.00
        """
        sequence = self._sequence
        pooled = self.batch_size - sequence.pure
        if not sequence.pure:
            held = "from all environments together"
        else:
            held = f"each of one environment, in {sequence.visits.order} order"
            held += f", with {pooled} rows from all of them" if pooled else ""
        lines = [
            f"{len(sequence.codes)} rows of {len(self.environments)} environments; batches of {self.batch_size} rows, "
            f"{held}.",
            f"A cycle has {self.cycle_length} batches, an epoch {self.batches_per_epoch}.",
        ]
        if self.num_replicas > 1:
            part = "a slice of every batch" if self.split == "within" else f"{len(self)} of the batches of an epoch"
            lines.append(f"Process {self.rank} of {self.num_replicas} gets {part}.")
        if sequence.pure:
            width = max(11, *(len(str(label)) for label in self.environments))
            lines.append(f"{'environment':{width}} {'rows':>6}  visits per cycle  passes per epoch")
            passes = sequence.visits.cycle / self.cycle_length * self.batches_per_epoch / sequence.passes
            rows = zip(self.visits.items(), sequence.grouping.sizes, passes, strict=True)
            lines += [f"{label!s:{width}} {size:6}  {visits:16}  {own:16.2f}" for (label, visits), size, own in rows]
        return "\n".join(lines)


def _grouped(labels: Any) -> Grouping:
    if isinstance(labels, Grouping):
        return labels
    if isinstance(labels, Dataset | DataLoader):
        raise ValueError(
            f"labels must have one label for each row, got the data themselves, a {type(labels).__name__}; "
            "for_concatenated takes a ConcatDataset"
        )
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu().numpy()
    elif isinstance(labels, Sequence) and any(isinstance(label, torch.Tensor) for label in labels[:1]):
        labels = [label.item() for label in labels]
    elif not isinstance(labels, Sequence) and np.ndim(labels) == 0:
        raise ValueError(f"labels must have one label for each row, got {type(labels).__name__}")
    require(not isinstance(labels, str), "labels must have one label for each row", "one string")
    if isinstance(labels, list) and any(isinstance(label, tuple) for label in labels[:1]):
        # numpy would take pairs such as (hospital, year) for the rows of a matrix
        pairs = np.empty(len(labels), object)
        pairs[:] = labels
        labels = pairs
    return group_rows(labels, len(labels))


def _process(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """(rank, number of processes): as given, from torch.distributed, or the only one."""
    require(
        (rank is None) == (num_replicas is None), "rank and num_replicas must be given together", (rank, num_replicas)
    )
    if rank is None or num_replicas is None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return 0, 1
    COUNT.check("num_replicas", num_replicas)
    COUNT_OR_ZERO.check("rank", rank)
    require(rank < num_replicas, f"rank must be below num_replicas, which is {num_replicas}", rank)
    return rank, num_replicas
