"""A host that scales its loss: half precision with a GradScaler, and gradients accumulated over four batches."""

import sys

import torch
from torch import nn
from torch.nn.functional import smooth_l1_loss

import gramian

updates = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
accumulated = 4

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
body = nn.Sequential(nn.Linear(8, 256), nn.ReLU()).to(device)
head = nn.Linear(256, 4).to(device)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler(device)

# What the host backpropagates is its loss times this, and so must be the penalty.
reg = gramian.attach(
    body, kappa=0.1, inject=True, scale=lambda: scaler.scale(torch.ones((), device=device)) / accumulated
)

for _ in range(updates):
    optimizer.zero_grad()
    for _ in range(accumulated):
        states, td_targets = torch.randn(32, 8, device=device), torch.randn(32, device=device)
        with torch.autocast(device, dtype=torch.float16):
            values = head(body(states)).max(1).values
        loss = smooth_l1_loss(values.float(), td_targets) / accumulated
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

print("penalty", float(reg.last.value), "terms", [float(term) for term in reg.last.terms])
