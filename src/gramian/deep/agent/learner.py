"""The learner: P runs of one agent, each with its own arm, learning rate and seed, updated together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gramian.core.errors import UserError
from gramian.deep.agent.arms import Arm, Arms
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.diagnostics import diagnose
from gramian.deep.agent.losses import Losses, Objective
from gramian.deep.agent.model import Model, Pass
from gramian.deep.agent.networks import NetworkSpec, init
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import Layout, State
from gramian.deep.agent.streams import Stream, torch_bits, torch_integers, torch_uniform
from gramian.deep.choices import TDLoss


@dataclass(frozen=True)
class LearnerConfig:
    """How a population learns.

    Attributes
    ----------
    learning_rate
        Adam's, one for all runs or one for each.
    adam_betas, adam_epsilon
        Adam's other constants.
    loss
        TD loss of a scalar head, ``huber`` or ``squared``.
    double_q
        Double Q-learning targets.
    weight_decay
        Decoupled, of all parameters: each update shrinks them by learning rate × weight decay.
    max_grad_norm
        Largest norm of a run's gradient, all its parameters together; None leaves it as it is.
    target_period_updates
        The target network becomes a copy of the online network after every so many updates.
    """

    learning_rate: float | tuple[float, ...] = 1e-4
    adam_betas: tuple[float, float] = (0.9, 0.999)
    adam_epsilon: float = 1.5e-4
    loss: TDLoss = "huber"
    double_q: bool = False
    weight_decay: float = 0.0
    max_grad_norm: float | None = None
    target_period_updates: int = 2500


def update(objective: Objective, adam: Adam, layout: Layout, state: State, batch: Batch) -> Losses:
    """One update of every run, in place: TD targets, gradients, Adam.

    A run whose TD loss or gradient is not finite is marked as diverged and keeps its state from then on. A run whose
    weights are not finite afterwards is marked too. Other runs are not affected.

    Shapes are static, control flow does not depend on data, and nothing is read by the host of a GPU: the function can
    be compiled and captured as a CUDA graph. ``objective``, ``adam`` and ``layout`` never change; ``state`` does.

    Returns
    -------
    Losses
        Of the weights before the update, without graph; for a diverged run of the weights that it keeps.
    """
    counter = state.updates.unsqueeze(1)
    targets = objective.targets(layout.views(state.online), layout.views(state.target), batch, counter)
    gradients, losses = objective.gradients(layout, state.online, targets, batch, counter)
    with torch.no_grad():
        norms = torch.linalg.vector_norm(gradients, dim=1)
        # The penalty's value is not read, so that a compiler can leave it out: its gradient overflows first.
        finite = losses.components["td"].isfinite() & norms.isfinite()
        active = finite & (state.diverged_at < 0)
        state.updates.add_(1)
        adam.step(state.online, gradients, state.mean, state.square, number=state.updates, norms=norms, active=active)
        # A sum is finite only where all its terms are.
        finite &= state.online.sum(1).isfinite()
        state.diverged_at.copy_(torch.where((state.diverged_at < 0) & ~finite, state.updates, state.diverged_at))
    return losses


class Learner:
    """A population of P runs that act and learn.

    A run's weights, its random choices and what it learns depend on its own seed, arm, learning rate and batches
    alone, not on the other runs.

    Parameters
    ----------
    spec
        The network of all runs.
    config
        How they learn.
    seeds, arms
        One for each run.
    action_counts
        How many actions each run has, at most ``spec.actions``, the default.
    """

    def __init__(
        self,
        spec: NetworkSpec,
        config: LearnerConfig,
        seeds: Sequence[int],
        arms: Sequence[Arm],
        action_counts: Sequence[int] | None = None,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        population = len(seeds)
        rates = (
            config.learning_rate if isinstance(config.learning_rate, tuple) else (config.learning_rate,) * population
        )
        self.spec = spec
        self.config = config
        counts = torch.tensor([spec.actions] * population if action_counts is None else list(action_counts))
        all_legal = bool((counts == spec.actions).all())
        legal = None if all_legal else torch.arange(spec.actions) < counts.view(-1, 1, 1)
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)
        """Of the runs, int64 ``[P]``."""
        model = Model.of(spec, self.seeds, None if legal is None else legal.to(device))
        self.objective = Objective(model, Arms(arms, seeds, device=device, dtype=dtype), config.loss, config.double_q)
        self.adam = Adam(
            torch.tensor(rates, dtype=torch.float64, device=device),
            config.adam_betas,
            config.adam_epsilon,
            config.weight_decay,
            config.max_grad_norm,
        )
        self.layout = Layout(spec)
        online = self.layout.flatten(init(spec, seeds, counts.tolist(), device=device, dtype=dtype))
        self.state = State(
            online=online,
            target=online.clone(),
            mean=torch.zeros_like(online),
            square=torch.zeros_like(online),
            updates=torch.zeros(population, dtype=torch.int64, device=device),
            diverged_at=torch.full((population,), -1, dtype=torch.int64, device=device),
        )
        on_cpu = online.device.type == "cpu"
        self.blocks = [slice(run, run + 1) for run in range(population)] if on_cpu else [slice(0, population)]
        """The runs that are computed together: all on a GPU; one by one on a CPU, where a run then has the same bits
        alone and in any population."""
        self._parts = [
            (self.objective.select(runs), self.adam.select(runs), self.state.select(runs)) for runs in self.blocks
        ]
        self._updates = 0  # of each run: state.updates, known to the host
        # Kept: a compiler that makes the numbers itself takes 32 bits for them, and the random bits need 64.
        self._environments = torch.arange(1, device=device)
        self.action_counts = counts.to(device).unsqueeze(1)
        """How many actions each run has, int64 ``[P, 1]``."""

    @property
    def updates(self) -> int:
        """Number of updates done."""
        return self._updates

    @property
    def diverged_at(self) -> Tensor:
        """Number of the update at which a run was first seen not to be finite, or -1; int64 ``[P]`` on the device."""
        return self.state.diverged_at

    @torch.no_grad()
    def act(
        self,
        observations: Tensor,
        epsilon: float | Tensor,
        agent_step: int | Tensor,
        weights: Tensor | None = None,
        runs: slice = slice(None),
    ) -> Tensor:
        """ε-greedy actions: with probability ε any of the run's own actions, each as likely, else the best one.

        The choice is a function of the run's seed, ``agent_step`` and the environment's number.

        Parameters
        ----------
        observations
            ``[P, E, *observation_shape]``, of ``runs``.
        epsilon
            One for all runs, or ``[P]``.
        agent_step
            An int, or an int64 scalar on the device.
        weights
            Parameters ``[P, N]`` of all runs to act with; by default those of the online networks.

        Returns
        -------
        Tensor
            int64 ``[P, E]`` on the device of the learner.
        """
        if len(self._environments) != observations.shape[1]:
            self._environments = torch.arange(observations.shape[1], device=self.seeds.device)
        random_bits = torch_bits(self.seeds[runs, None], Stream.EXPLORE, agent_step, self._environments)
        # One draw serves both: among the draws whose leading bits are small, the remainders are still equally likely.
        random_actions = torch_integers(random_bits, self.action_counts[runs])
        if not isinstance(epsilon, Tensor) and epsilon >= 1:  # a prefill needs no network
            return random_actions
        threshold = epsilon.view(-1, 1) if isinstance(epsilon, Tensor) else epsilon
        greedy = self.greedy(observations, agent_step, weights, runs)
        return torch.where(torch_uniform(random_bits) < threshold, random_actions, greedy)

    @torch.no_grad()
    def greedy(
        self,
        observations: Tensor,
        agent_step: int | Tensor = 0,
        weights: Tensor | None = None,
        runs: slice = slice(None),
    ) -> Tensor:
        """The best action of each run in each observation ``[P, E, *observation_shape]``, int64 ``[P, E]``.

        The arguments are those of `act`; noise and τ, where the agent has them, are a function of ``agent_step``.
        """
        weights = (self.state.online if weights is None else weights)[runs]
        model = self.objective.model.select(runs)
        alone = len(self.blocks) > 1
        models = [part[0].model for part in self._parts[runs]] if alone else [model]
        size = 1 if alone else len(weights)
        values = [
            own.forward(self.layout.views(rows), seen, Pass.ACT, agent_step).values
            for own, rows, seen in zip(models, weights.split(size), observations.split(size), strict=True)
        ]
        return model.masked(torch.cat(values) if len(values) > 1 else values[0]).argmax(2)

    def update(self, batch: Batch) -> Losses:
        """Update every run on its own part of ``batch``; copy the target networks when their period is over."""
        blocks = [self.update_block(number, batch) for number in range(len(self.blocks))]
        self.count_update()
        if len(blocks) == 1:
            return blocks[0]
        components = {name: torch.cat([block.components[name] for block in blocks]) for name in blocks[0].components}
        total, samples = (torch.cat([getattr(block, name) for block in blocks]) for name in ("total", "samples"))
        return Losses(total, components, samples)

    def update_block(self, number: int, batch: Batch) -> Losses:
        """Update the runs of one of the `blocks`, from a batch of all runs; `count_update` must follow the last one.

        Different blocks may be updated by different threads.
        """
        objective, adam, state = self._parts[number]
        return update(objective, adam, self.layout, state, batch.map(lambda field: field[self.blocks[number]]))

    def count_update(self) -> None:
        """What follows an update of all runs: count it, and copy the target networks when their period is over."""
        self._updates += 1
        if self._updates % self.config.target_period_updates == 0:
            self.copy_target()

    def copy_target(self) -> None:
        """Make the target network of every run that has not diverged a copy of its online network."""
        state = self.state
        state.target.copy_(torch.where(state.diverged_at.unsqueeze(1) < 0, state.online, state.target))

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """What the logs record of each run, each ``[P]``; see `gramian.deep.agent.diagnostics`. Changes nothing."""
        return diagnose(self.objective, self.layout, self.state, batch)

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of the whole state as named, contiguous tensors, ready for safetensors.

        ``online.*`` and ``target.*`` are the weights, ``mean.*`` and ``square.*`` Adam's moments, ``diverged_at`` the
        marks, each ``[P, ...]``; ``updates`` is a scalar.
        """
        return {name: _copied(tensor) for name, tensor in self._named_state().items()}

    def run_state(self, run: int) -> dict[str, Tensor]:
        """The state of one run: the `state_dict` of a population of that run alone."""
        return {
            name: _copied(tensor if name == "updates" else tensor[run : run + 1])
            for name, tensor in self._named_state().items()
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over a state that `state_dict` gave; one that does not fit is a `UserError` and changes nothing."""
        own = self._named_state()
        if odd := sorted(own.keys() ^ state.keys()):
            problem = "missing" if odd[0] in own else "not known here"
            raise UserError(f"the state does not fit this learner: {odd[0]!r} is {problem}")
        for name, tensor in own.items():
            if (given := state[name]).shape != tensor.shape or given.dtype != tensor.dtype:
                raise UserError(
                    f"the state does not fit this learner: {name!r} is {given.dtype} {list(given.shape)}, "
                    f"not {tensor.dtype} {list(tensor.shape)}"
                )
        for name, tensor in own.items():
            tensor.copy_(state[name])
        self._updates = int(state["updates"])
        self.state.updates.fill_(self._updates)

    def _named_state(self) -> dict[str, Tensor]:
        """The state by name, sharing its memory."""
        named = {
            f"{role}.{name}": view
            for role in ("online", "target", "mean", "square")
            for name, view in self.layout.views(getattr(self.state, role)).items()
        }
        return named | {"updates": self.state.updates[0], "diverged_at": self.state.diverged_at}


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)
