"""Naive, independent agents: one module for each run, losses by loops over samples, atoms and quantiles."""

import math
from statistics import NormalDist

import torch
from torch import nn

from gramian.deep.agent.streams import Stream, bits, uniform
from tests.deep.naive import CONVOLUTIONS, naive_penalty

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


class NaiveAgentNetwork(nn.Module):
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
        hidden = {"mlp": 2}.get(spec.kind, 1) - (head.kind == "implicit")
        for number in range(1, hidden + 1):
            self.dense[f"body/fc{number}"] = NoisyLinear(width, spec.features_dim)
            width = spec.features_dim
        if head.kind == "implicit":
            self.dense["head/embedding"] = NoisyLinear(64, width)
            self.dense["head/fc"] = NoisyLinear(width, spec.features_dim)
        outputs = 1 if head.kind == "implicit" else head.size
        if head.dueling:
            self.dense["head/value"] = NoisyLinear(spec.features_dim, outputs)
        self.dense["head/advantage" if head.dueling else "head"] = NoisyLinear(spec.features_dim, actions * outputs)
        self.hidden = hidden

    def convolved(self, x):
        for layer in self.conv:
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
            x = torch.relu(self.dense[f"body/fc{number}"](x))
        features = x
        if self.spec.head.kind != "implicit":
            return self.last(x), features
        of_taus = []
        for tau in taus:
            cosines = torch.tensor([math.cos(math.pi * i * tau) for i in range(1, 65)], dtype=dtype)
            embedding = torch.relu(self.dense["head/embedding"](cosines))
            of_taus.append(self.last(torch.relu(self.dense["head/fc"](x * embedding))))
        return torch.cat(of_taus, 2), features

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
        for name, layer in self.dense.items():
            name = name.replace("/", ".")
            names |= {f"{name}.weight": layer.weight, f"{name}.bias": layer.bias}
            if self.spec.head.noisy:
                names |= {f"{name}.sigma.weight": layer.sigma_weight, f"{name}.sigma.bias": layer.sigma_bias}
        return names


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

    def __init__(self, learner, run, arm, seed, actions):
        self.spec, self.config, self.arm, self.seed = learner.spec, learner.config, arm, seed
        state = learner.state_dict()
        self.online, self.target = (NaiveAgentNetwork(self.spec, actions).double() for _ in range(2))
        for role, network in (("online", self.online), ("target", self.target)):
            for name, parameter in network.named().items():
                parameter.data.copy_(state[f"{role}.{name}"][run][: parameter.shape[0]])
        self.optimiser = torch.optim.Adam(
            list(self.online.named().values()), lr=self.config.learning_rate, eps=self.config.adam_epsilon
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
                samples.append(0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5)
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
        penalty = torch.zeros((), dtype=torch.float64)
        if self.arm.kappa:
            _, next_features, _ = self.seen(self.online, batch.next_observations, LEARN)
            penalty = self.arm.kappa * naive_penalty(self.arm.kind, features, next_features, self.arm.centered)
        return td, penalty, torch.stack(samples).detach()

    def update(self, batch):
        td, penalty, samples = self.losses(batch)
        self.optimiser.zero_grad()
        (td + penalty).backward()
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
