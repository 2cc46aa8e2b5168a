"""A naive, independent DQN: one module and one torch optimiser for each run, penalties as explicit sums."""

import itertools
from dataclasses import dataclass

import torch
from torch import nn

ATARI = [(32, 8, 4), (64, 4, 2), (64, 3, 1)]
CONVOLUTIONS = {"nature": ATARI, "dopamine": ATARI, "minatar": [(16, 3, 1)], "mlp": []}


class NaiveNetwork(nn.Module):
    def __init__(self, kind, observation_shape, actions, features_dim, layer_norm):
        super().__init__()
        self.kind = kind
        channels = observation_shape[0]
        self.conv = nn.ModuleList()
        for filters, size, stride in CONVOLUTIONS[kind]:
            self.conv.append(nn.Conv2d(channels, filters, size, stride))
            channels = filters
        with torch.no_grad():
            inputs = self.convolved(torch.zeros(1, *observation_shape)).shape[1]
        widths = [inputs] + [features_dim] * (2 if kind == "mlp" else 1)
        self.fc = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.norm = nn.ModuleList(nn.LayerNorm(b) if layer_norm else nn.Identity() for b in widths[1:])
        self.head = nn.Linear(features_dim, actions)

    def convolved(self, x):
        for layer in self.conv:
            if self.kind == "dopamine":
                x = same_padded(x, layer.kernel_size[0], layer.stride[0])
            x = torch.relu(layer(x))
        return torch.flatten(x, 1)

    def forward(self, observations):
        x = observations.to(self.head.bias.dtype)
        x = self.convolved(x / 255 if self.kind in ("nature", "dopamine") else x)
        for layer, norm in zip(self.fc, self.norm, strict=True):
            x = torch.relu(norm(layer(x)))
        return self.head(x), x

    def named(self):
        """Parameters under the names of the learner."""
        names = {}
        for i, layer in enumerate(self.conv, start=1):
            names |= {f"body.conv{i}.weight": layer.weight, f"body.conv{i}.bias": layer.bias}
        for i, (layer, norm) in enumerate(zip(self.fc, self.norm, strict=True), start=1):
            names |= {f"body.fc{i}.weight": layer.weight, f"body.fc{i}.bias": layer.bias}
            if isinstance(norm, nn.LayerNorm):
                names |= {f"body.fc{i}.norm.weight": norm.weight, f"body.fc{i}.norm.bias": norm.bias}
        return names | {"head.weight": self.head.weight, "head.bias": self.head.bias}


def same_padded(images, size, stride):
    """Zeros on either side in turn, the first one after, until filters fit as often as strides begin within."""
    before, after, side = 0, 0, images.shape[-1]
    wanted = len(range(0, side, stride))
    while len(range(0, side + before + after - size + 1, stride)) < wanted:
        before, after = (before, after + 1) if before == after else (before + 1, after)
    return nn.functional.pad(images, (before, after, before, after))


def naive_penalty(kind, features, next_features, centered):
    """The penalty from its definition, sum by sum."""
    n, d = features.shape
    x = features - features.mean(0) if centered else features
    samples = list(itertools.permutations(range(n), 2))
    if kind in ("decor", "gram"):
        return sum((x[:, i] * x[:, j]).mean() ** 2 for i, j in itertools.permutations(range(d), 2))
    if kind == "norm":
        return sum(x[a].dot(x[a]) ** 2 for a in range(n)) / n**2
    if kind == "cross":
        return sum(x[a].dot(x[b]) ** 2 for a, b in samples) / n**2
    if kind == "l2":
        return sum(features[a].dot(features[a]) for a in range(n)) / n
    if kind == "dr3":
        return sum(features[a].dot(next_features[a]) for a in range(n)) / n
    if kind in ("isotropy", "correlation"):
        variance = [(x[:, i] ** 2).mean() for i in range(d)]
        if kind == "isotropy":
            return sum((x[:, i] * x[:, j]).mean() ** 2 for i in range(d) for j in range(d)) / sum(variance) ** 2
        floor = 1e-4 * sum(variance) / d
        z = [x[:, i] / max(variance[i], floor) ** 0.5 for i in range(d)]
        return sum((z[i] * z[j]).mean() ** 2 for i, j in itertools.permutations(range(d), 2)) / d
    if kind == "vicreg":
        covariance = torch.cov(features.T)
        hinge = sum((1 - (covariance[i, i] + 1e-4) ** 0.5).clamp_min(0) for i in range(d))
        return (25 * hinge + sum(covariance[i, j] ** 2 for i, j in itertools.permutations(range(d), 2))) / d
    assert kind == "gram-unbiased"
    # Average over all samples that are all different, of the product of two independent estimates.
    f = features
    pairs = list(itertools.permutations(range(d), 2))
    if not centered:
        return sum((f[a, i] * f[a, j] * f[b, i] * f[b, j]) for a, b in samples for i, j in pairs) / len(samples)
    a, b, c, e = torch.tensor(list(itertools.permutations(range(n), 4))).T
    return sum(
        ((f[a, i] * f[a, j] - f[a, i] * f[b, j]) * (f[c, i] * f[c, j] - f[c, i] * f[e, j])).mean() for i, j in pairs
    )


@dataclass
class NaiveRun:
    """One run of the learner's population, all on its own."""

    arm: object
    config: object
    learning_rate: float
    online: NaiveNetwork
    target: NaiveNetwork

    @classmethod
    def like(cls, learner, run, arm, learning_rate, actions):
        """A run that starts where run number ``run`` of the learner stands."""
        spec = learner.spec
        state = learner.state_dict()
        networks = []
        for role in ("online", "target"):
            network = NaiveNetwork(spec.kind, spec.observation_shape, actions, spec.features_dim, spec.layer_norm)
            network.to(state["online.head.bias"].dtype)
            for name, parameter in network.named().items():
                parameter.data.copy_(state[f"{role}.{name}"][run][: parameter.shape[0]])
            networks.append(network)
        return cls(arm, learner.config, learning_rate, *networks)

    def __post_init__(self):
        config = self.config
        options = {"lr": self.learning_rate, "betas": config.adam_betas, "eps": config.adam_epsilon}
        if config.weight_decay:
            self.optimiser = torch.optim.AdamW(self.online.parameters(), weight_decay=config.weight_decay, **options)
        else:
            self.optimiser = torch.optim.Adam(self.online.parameters(), **options)
        self.updates = 0

    def losses(self, batch):
        values, features = self.online(batch.observations)
        dtype = values.dtype
        with torch.no_grad():
            next_values, _ = self.target(batch.next_observations)
            chooser = self.online(batch.next_observations)[0] if self.config.double_q else next_values
        td_losses = []
        for n in range(len(batch.actions)):
            target = batch.rewards[n].to(dtype)
            if batch.discounts[n] != 0:
                target = target + batch.discounts[n].to(dtype) * next_values[n, chooser[n].argmax()]
            error = values[n, batch.actions[n]] - target
            if self.config.loss == "squared" or abs(error) <= 1:
                td_losses.append(error**2 * (1 if self.config.loss == "squared" else 0.5))
            else:
                td_losses.append(abs(error) - 0.5)
        td = sum(td_losses) / len(td_losses)
        penalty = torch.zeros((), dtype=dtype)
        for term in self.arm.active:
            _, next_features = self.online(batch.next_observations)
            penalty = penalty + term.kappa * naive_penalty(term.kind, features, next_features, term.centered)
        return td, penalty

    def update(self, batch):
        td, penalty = self.losses(batch)
        self.optimiser.zero_grad()
        (td + penalty).backward()
        if self.config.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.online.parameters(), self.config.max_grad_norm)
        self.optimiser.step()
        self.updates += 1
        if self.updates % self.config.target_period_updates == 0:
            self.target.load_state_dict(self.online.state_dict())
        return td.detach(), penalty.detach()


def own_part(batch, run):
    """The transitions of one run, without the population axis."""
    return batch.map(lambda field: field[run])
