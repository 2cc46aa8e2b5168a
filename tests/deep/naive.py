"""Naive, independent agents: a module and an optimiser for each run, losses by loops, penalties as explicit sums."""

import itertools
import math
from statistics import NormalDist

import torch
from torch import nn

from gramian.deep.agent.streams import Stream, bits, uniform

ATARI = [(32, 8, 4), (64, 4, 2), (64, 3, 1)]
CONVOLUTIONS = {"nature": ATARI, "dopamine": ATARI, "minatar": [(16, 3, 1)], "mlp": []}
LEARN, TARGET, CHOOSE, ACT = range(4)


class NoisyLinear(nn.Linear):
    """A dense layer; with ``noise``, (ε, ε') of its inputs and outputs, w + σ_w f(ε') f(ε)ᵀ."""

    noise = None

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.sigma_weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.sigma_bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        if self.noise is None:
            return super().forward(x)
        before, after = ([math.copysign(math.sqrt(abs(e)), e) for e in part] for part in self.noise)
        before, after = (torch.tensor(part, dtype=x.dtype) for part in (before, after))
        return nn.functional.linear(
            x, self.weight + self.sigma_weight * torch.outer(after, before), self.bias + self.sigma_bias * after
        )


class NaiveNetwork(nn.Module):
    """Outputs ``[B, A, Z]`` and features ``[B, d]``; ``taus`` ``[N]`` for an implicit head."""

    def __init__(self, spec, actions):
        super().__init__()
        head = spec.head
        self.spec, self.actions = spec, actions
        channels = spec.observation_shape[0]
        self.conv = nn.ModuleList()
        for filters, size, stride in CONVOLUTIONS[spec.kind]:
            self.conv.append(nn.Conv2d(channels, filters, size, stride))
            channels = filters
        with torch.no_grad():
            width = self.convolved(torch.zeros(1, *spec.observation_shape)).shape[1]
        self.dense = nn.ModuleDict()
        self.hidden = {"mlp": 2}.get(spec.kind, 1) - (head.kind == "implicit")
        for number in range(1, self.hidden + 1):
            self.dense[f"body/fc{number}"] = NoisyLinear(width, spec.features_dim)
            width = spec.features_dim
        if head.kind == "implicit":
            self.dense["head/embedding"] = NoisyLinear(64, width)
            self.dense["head/fc"] = NoisyLinear(width, spec.features_dim)
        hidden = [name for name in self.dense if "fc" in name] if spec.layer_norm else []
        self.norm = nn.ModuleDict({name: nn.LayerNorm(spec.features_dim) for name in hidden})
        outputs = 1 if head.kind == "implicit" else head.size
        if head.dueling:
            self.dense["head/value"] = NoisyLinear(spec.features_dim, outputs)
        self.dense["head/advantage" if head.dueling else "head"] = NoisyLinear(spec.features_dim, actions * outputs)

    def convolved(self, x):
        for layer in self.conv:
            if self.spec.kind == "dopamine":
                x = same_padded(x, layer.kernel_size[0], layer.stride[0])
            x = torch.relu(layer(x))
        return torch.flatten(x, 1)

    def make_noise(self, seed, purpose, counter):
        if not self.spec.head.noisy:
            return
        count = sum(layer.in_features + layer.out_features for layer in self.dense.values())
        draws = [
            NormalDist().inv_cdf(uniform(bits(seed, Stream.NOISE, purpose, counter, i)) + 2.0**-54)
            for i in range(count)
        ]
        for layer in self.dense.values():
            before, draws = draws[: layer.in_features], draws[layer.in_features :]
            layer.noise, draws = (before, draws[: layer.out_features]), draws[layer.out_features :]

    def forward(self, observations, taus=None):
        dtype = next(self.parameters()).dtype
        x = observations.to(dtype)
        x = self.convolved(x / 255 if self.spec.kind in ("nature", "dopamine") else x)
        for number in range(1, self.hidden + 1):
            x = self.hidden_layer(f"body/fc{number}", x)
        features = x
        if self.spec.head.kind != "implicit":
            return self.last(x), features
        of_taus = []
        for tau in taus:
            cosines = torch.tensor([math.cos(math.pi * i * tau) for i in range(1, 65)], dtype=dtype)
            embedding = torch.relu(self.dense["head/embedding"](cosines))
            of_taus.append(self.last(self.hidden_layer("head/fc", x * embedding)))
        return torch.cat(of_taus, 2), features

    def hidden_layer(self, name, x):
        x = self.dense[name](x)
        return torch.relu(self.norm[name](x) if name in self.norm else x)

    def last(self, x):
        if not self.spec.head.dueling:
            return self.dense["head"](x).view(len(x), self.actions, -1)
        value = self.dense["head/value"](x).view(len(x), 1, -1)
        advantage = self.dense["head/advantage"](x).view(len(x), self.actions, -1)
        return value + advantage - sum(advantage[:, [a]] for a in range(self.actions)) / self.actions

    def named(self):
        """Parameters under the names of the learner."""
        names = {}
        for i, layer in enumerate(self.conv, start=1):
            names |= {f"body.conv{i}.weight": layer.weight, f"body.conv{i}.bias": layer.bias}
        for key, layer in self.dense.items():
            name = key.replace("/", ".")
            names |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
            if self.spec.head.noisy:
                names |= {f"{name}.sigma.weight": layer.sigma_weight, f"{name}.sigma.bias": layer.sigma_bias}
            if key in self.norm:
                names |= {f"{name}.norm.weight": self.norm[key].weight, f"{name}.norm.bias": self.norm[key].bias}
        return names


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


def naive_values(head, outputs):
    """Q of the outputs ``[A, Z]`` of a state: ``[A]``."""
    if head.kind != "categorical":
        return outputs.mean(1)
    return torch.stack([sum(p * z for p, z in zip(row.softmax(0), atoms(head), strict=True)) for row in outputs])


def atoms(head):
    low, high = head.support
    return [low + (high - low) * i / (head.size - 1) for i in range(head.size)]


def naive_projection(head, places, probabilities):
    """The probability of each place is split between the two atoms beside it."""
    low, high = head.support
    step = (high - low) / (head.size - 1)
    shares = [torch.zeros((), dtype=torch.float64) for _ in range(head.size)]
    for place, probability in zip(places, probabilities, strict=True):
        position = (min(max(float(place), low), high) - low) / step
        below = min(math.floor(position + 1e-12), head.size - 1)
        above = min(below + 1, head.size - 1)
        shares[below] = shares[below] + probability * (1 - (position - below))
        shares[above] = shares[above] + probability * (position - below)
    return torch.stack(shares)


def naive_quantile_loss(quantiles, taus, targets):
    total = 0
    for tau, quantile in zip(taus, quantiles, strict=True):
        for target in targets:
            error = target - quantile
            huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
            total = total + abs(tau - (1 if error < 0 else 0)) * huber / len(targets)
    return total


class NaiveAgent:
    """One run of the learner's population, all on its own."""

    def __init__(self, learner, run, actions=None):
        self.spec, self.config, self.arm = learner.spec, learner.config, learner.objective.arms.arms[run]
        self.seed = int(learner.seeds[run])
        state, dtype = learner.state_dict(), learner.state.online.dtype
        actions = actions or self.spec.actions
        self.online, self.target = (NaiveNetwork(self.spec, actions).to(dtype) for _ in range(2))
        for role, network in (("online", self.online), ("target", self.target)):
            for name, parameter in network.named().items():
                parameter.data.copy_(state[f"{role}.{name}"][run][: parameter.shape[0]])
        rate, config = self.config.learning_rate, self.config
        self.optimiser = (torch.optim.AdamW if config.weight_decay else torch.optim.Adam)(
            list(self.online.named().values()),
            lr=rate[run] if isinstance(rate, tuple) else rate,
            betas=config.adam_betas,
            eps=config.adam_epsilon,
            weight_decay=config.weight_decay,
        )
        self.updates = 0

    def taus(self, purpose, counter, count):
        return [float(uniform(bits(self.seed, Stream.TAUS, purpose, counter, i))) for i in range(count)]

    def seen(self, network, observations, purpose, noise=True):
        head = self.spec.head
        if noise:  # otherwise that of the pass before
            network.make_noise(self.seed, purpose, self.updates)
        count = {LEARN: head.size, TARGET: head.target_size}.get(purpose, head.acting_size)
        taus = self.taus(purpose, self.updates, count) if head.kind == "implicit" else None
        return *network(observations, taus), taus

    def losses(self, batch):
        head = self.spec.head
        with torch.no_grad():
            following, _, _ = self.seen(self.target, batch.next_observations, TARGET)
            choosers = following
            if self.config.double_q or head.kind == "implicit":
                network = self.online if self.config.double_q else self.target
                choosers, _, _ = self.seen(network, batch.next_observations, CHOOSE, noise=self.config.double_q)
        outputs, features, taus = self.seen(self.online, batch.observations, LEARN)
        samples = []
        for n in range(len(batch.actions)):
            reward, discount = float(batch.rewards[n]), float(batch.discounts[n])
            best = following[n, naive_values(head, choosers[n]).argmax()]
            chosen = outputs[n, batch.actions[n]]
            if head.kind == "scalar":
                error = chosen[0] - (reward + discount * best[0])
                huber = 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5
                samples.append(error**2 if self.config.loss == "squared" else huber)
            elif head.kind == "categorical":
                places = [reward + discount * z for z in atoms(head)]
                target = naive_projection(head, places, best.softmax(0))
                logs = chosen - chosen.exp().sum().log()
                samples.append(-sum(p * log for p, log in zip(target, logs, strict=True)))
            else:
                shares = taus or [(i + 0.5) / head.size for i in range(head.size)]
                samples.append(naive_quantile_loss(chosen, shares, [reward + discount * float(z) for z in best]))
        weights = torch.ones(len(samples)) if batch.weights is None else batch.weights
        td = sum(weight * sample for weight, sample in zip(weights, samples, strict=True)) / len(samples)
        penalty = torch.zeros((), dtype=features.dtype)
        for term in self.arm.active:
            _, next_features, _ = self.seen(self.online, batch.next_observations, LEARN)
            penalty = penalty + term.kappa * naive_penalty(term.kind, features, next_features, term.centered)
        return td, penalty, torch.stack(samples).detach()

    def update(self, batch):
        td, penalty, samples = self.losses(batch)
        self.optimiser.zero_grad()
        (td + penalty).backward()
        if self.config.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.online.parameters(), self.config.max_grad_norm)
        self.optimiser.step()
        self.updates += 1
        if self.updates % self.config.target_period_updates == 0:
            self.target.load_state_dict(self.online.state_dict())
        return td.detach(), penalty.detach(), samples

    def act(self, observations, agent_step):
        """The greedy actions in observations ``[E, ...]``."""
        head = self.spec.head
        self.online.make_noise(self.seed, ACT, agent_step)
        taus = self.taus(ACT, agent_step, head.acting_size)
        with torch.no_grad():
            outputs, _ = self.online(observations, taus)
        return [int(naive_values(head, row).argmax()) for row in outputs]


def own_part(batch, run):
    """The transitions of one run, without the population axis."""
    return batch.map(lambda field: field[run])
