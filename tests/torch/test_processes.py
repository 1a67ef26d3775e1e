"""Two real processes with gloo, and the workers of a `DataLoader`, see the one sequence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from holdfast.torch import EnvironmentBatchSampler

LABELS = [0, 1, 2] * 16
TRAIN = """
import json, sys
import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel
from holdfast.torch import EnvironmentBatchSampler

rank, split, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
labels = [0, 1, 2] * 16
data = torch.arange(48.0)[:, None] / 48
model = torch.nn.Linear(1, 1)
torch.nn.init.zeros_(model.weight), torch.nn.init.zeros_(model.bias)
model = DistributedDataParallel(model)
sampler = EnvironmentBatchSampler(labels, 4, split=split, drop_last=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
batches, losses = [], []
for epoch in range(2):
    for number, batch in enumerate(sampler):
        batches.append(batch)
        loss = (model(data[batch]) - torch.tensor([labels[row] for row in batch])[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 1 and number == 1:
            state = sampler.state_dict()
weights = [parameter.tolist() for parameter in model.parameters()]
json.dump({"batches": batches, "weights": weights, "state": state}, open(f"{folder}/{rank}.json", "w"))
distributed.destroy_process_group()
"""


def _trained_by_one(batches):
    """The weights after training on these batches in one process; each entry may be several that form one step."""
    model = torch.nn.Linear(1, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    data = torch.arange(48.0)[:, None] / 48
    for batch in batches:
        loss = (model(data[batch]) - torch.tensor([LABELS[row] for row in batch])[:, None]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.slow
@pytest.mark.parametrize("split", ["within", "batches"])
def test_two_processes_with_gloo_train_on_the_sequence_of_one(split, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    command = [sys.executable, str(script)]
    started = [subprocess.Popen([*command, str(rank), split, str(tmp_path)]) for rank in range(2)]
    try:
        assert [process.wait(timeout=300) for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
    parts = [json.loads(Path(tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert parts[0]["state"] == parts[1]["state"]
    sampler = EnvironmentBatchSampler(LABELS, 4, drop_last=True)
    whole = [batch for _ in range(2) for batch in sampler]
    if split == "within":
        steps = whole
        assert [sorted(a + b) for a, b in zip(*(part["batches"] for part in parts), strict=True)] == list(
            map(sorted, whole)
        )
    else:
        steps = [a + b for a, b in zip(whole[::2], whole[1::2], strict=True)]
        assert [batch for pair in zip(*(part["batches"] for part in parts), strict=True) for batch in pair] == whole
    # The mean over processes of mean gradients is the gradient of the whole step, as slices are equally large.
    for part in parts:
        for found, expected in zip(part["weights"], _trained_by_one(steps), strict=True):
            torch.testing.assert_close(torch.tensor(found), expected)
    # A single process goes on from the state of two.
    resumed = EnvironmentBatchSampler(LABELS, 4, drop_last=True)
    resumed.load_state_dict(parts[0]["state"])
    assert list(resumed) == whole[len(sampler) + (2 if split == "within" else 4) :]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_workers_that_fetch_ahead_do_not_change_the_sequence_or_its_resumption(workers):
    dataset = TensorDataset(torch.arange(48), torch.tensor(LABELS))

    def loader(sampler):
        # Fork after jax has started threads may hang.
        context = "spawn" if workers else None
        return DataLoader(dataset, batch_sampler=sampler, num_workers=workers, multiprocessing_context=context)

    single = EnvironmentBatchSampler(LABELS, 4)
    whole = [batch for _ in range(2) for batch in single]
    sampler = EnvironmentBatchSampler(LABELS, 4)
    seen, state = [], None
    for number, (rows, labels) in enumerate(loader(sampler)):
        assert len(set(labels.tolist())) == 1
        seen.append(rows.tolist())
        if number == 4:
            state = sampler.state_dict(batches=number + 1)
            assert workers == 0 or sampler.state_dict()["batches"] > 5  # handed out ahead
            break
    resumed = EnvironmentBatchSampler(LABELS, 4)
    resumed.load_state_dict(state)
    continued = loader(resumed)
    seen += [rows.tolist() for _ in range(2) for rows, _ in continued]
    assert seen == whole
