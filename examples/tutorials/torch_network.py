"""
A PyTorch network
=================

See what changes between environments, and train a network that does not rely on it.
"""

# %%
# Two environments of handwritten digits, whose colour agrees with the label in 70 % and 95 % of the images. Where it
# agrees in 10 %, an ordinary network is worse than a coin. No method below sees the colour or the new environment.
# (``pip install 'holdfast[torch]'``.)

import sys
import tempfile
from pathlib import Path

import torch

from holdfast.datasets import DigitImages, bundled_digits, coloured_digits
from holdfast.torch import TrainingOptions, draw_sheet, invariant_head, train_balanced, with_layer, write_sheet
from holdfast.torch.training import weighted_score

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
everything = bundled_digits()
seen, unseen = (
    DigitImages(everything.images[part], everything.digits[part]) for part in (slice(1400), slice(1400, None))
)
rows = coloured_digits([0.7, 0.95], seed=0, source=seen, label_noise=0.1)
new = coloured_digits([0.1], seed=1, source=unseen, label_noise=0.1)
data = torch.tensor(rows.images).float(), torch.tensor(rows.labels)
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))

# %%
# 1. Train on all rows, discover what varies, and train again on rows in which it says nothing about the label.

found = train_balanced(
    network, data, environments=rows.environments, layer="2", options=TrainingOptions(epochs=30, batch_size=128)
)
print("\n".join(found.sentences))

# %%
# 2. Look at it: the digits with the lowest and highest scores.

sheet = draw_sheet(found.discovery, rows.images)
sheet.savefig(folder / "coloured_digits.png", dpi=120)
write_sheet(found.discovery, rows.images, folder / "coloured_digits.html", title="Digits of two environments")

# %%
# 3. Or leave the network as it is, and replace its last layer.

head = invariant_head(found.pooled, data, replaces="3", environments=rows.environments)
print("\n".join(head.fit.sentences))
with_head = with_layer(found.pooled, "3", head.linear)

# %%
# In a new environment, where colours are reversed:

inputs, labels = torch.tensor(new.images).float(), torch.tensor(new.labels)
for name, module in (("all rows", found.pooled), ("new head", with_head), ("balanced", found.module)):
    print(f"{name}: accuracy {weighted_score(module, inputs, labels):.2f}")

# %%
# To only batch one environment at a time, in an order of your choice, take ``EnvironmentBatchSampler`` for a
# ``DataLoader``. :doc:`../torch` has samplers, heads, balancing, distributed training and where it does not help.
