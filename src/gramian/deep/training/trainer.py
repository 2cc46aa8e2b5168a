"""A population at work: environments, replay and learner, one agent step after the other.

The trainer knows nothing of files. `Trainer.step` does one step of all environments and the updates that are due, and
returns what happened; logs and checkpoints are made from that.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import Kind as NetworkKind
from gramian.deep.agent.networks import NetworkSpec
from gramian.deep.choices import Execution
from gramian.deep.engines import make_engine
from gramian.deep.envs import Environments, Step
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import Exponents, Replay
from gramian.deep.training.agents import head_of
from gramian.deep.training.config import Config
from gramian.deep.training.schedules import epsilon_at, updates_at

NETWORKS: dict[str, NetworkKind] = {"atari": "nature", "minatar": "minatar", "cartpole": "mlp", "gym": "mlp"}
"""The network made for each kind of game; of Gymnasium's environments those that show images take nature."""
FEATURES: dict[NetworkKind, int] = {"nature": 512, "dopamine": 512, "minatar": 128, "mlp": 64}
"""Width of each network's features where the settings name none."""
SPIN_S = 0.002
"""Longest spin-wait of Atari's processes, and of a trainer that waits for them, beside a GPU where each has a core."""
SPIN = "GRAMIAN_PATIENCE_US"
"""Environment variable that sets this time, in microseconds."""


@dataclass(frozen=True)
class Episode:
    """A game that ended."""

    run: int
    environment: int
    episode: int
    raw_return: float
    clipped_return: float
    length_agent_steps: int
    truncated: bool


def network_spec(config: Config, observation: ObservationSpec, actions: int) -> NetworkSpec:
    """The network of a population's runs."""
    settings = config.settings
    images = config.runs[0].game.kind == "gym" and len(observation.shape) == 3
    own: NetworkKind = "nature" if images else NETWORKS[config.runs[0].game.kind]
    kind = own if settings.network == "auto" else settings.network
    width, head = settings.features_dim or FEATURES[kind], head_of(vars(settings), config.runs[0].game.kind)
    return NetworkSpec(kind, observation.shape, actions, width, settings.layer_norm, head)


def make_environments(
    config: Config, threads: int = 0, device: torch.device | str = "cpu", spin_s: float | None = None
) -> Environments:
    """The environments of a population whose learner is on ``device``; Atari by ``threads`` processes (0: one a core).

    Beside a GPU the runs are divided in two parts: one plays while actions are chosen for the other. Processes spin for
    ``spin_s``, by default as `spin_time` says.
    """
    settings, runs = config.settings, config.runs
    spins = spin_time(config, threads, device) if spin_s is None else spin_s
    return Environments(
        [run.game for run in runs],
        [run.seed for run in runs],
        settings.envs_per_run,
        settings.environment,
        threads,
        parts=min(2, len(runs)) if _beside_gpu(config, device) else 1,
        spin_s=spins or 0.0,
        here=spins is None,
    )


def spin_time(config: Config, threads: int = 0, device: torch.device | str = "cpu") -> float | None:
    """Longest spin-wait in seconds of Atari's processes and of the one that waits for them; 0 is to sleep at once.

    They spin beside a GPU where each has a core; on a CPU the learner needs the cores. None: no process, the one that
    learns plays itself, beside a GPU where one game and the learner have one core. `SPIN` overrides all.
    """
    environments = len(config.runs) * config.settings.envs_per_run
    if (asked := os.environ.get(SPIN, "")) and config.runs[0].game.kind == "atari":
        if not asked.isdecimal():
            raise UserError(f"{SPIN} is '{asked}'; give a whole number of microseconds, 0 to sleep at once")
        return int(asked) / 1e6
    if not _beside_gpu(config, device):
        return 0.0
    if environments == 1 and (threads or cores()) == 1:
        return None
    return SPIN_S if environments + 1 <= min(threads or cores(), cores()) else 0.0


def _beside_gpu(config: Config, device: torch.device | str) -> bool:
    return torch.device(device).type == "cuda" and config.runs[0].game.kind == "atari"


class Trainer:
    """A population in the middle of its training, in `make_environments`' environments, which the trainer closes."""

    def __init__(
        self,
        config: Config,
        environments: Environments,
        *,
        device: torch.device | str = "cpu",
        replay_device: torch.device | str | None = None,
        dtype: torch.dtype = torch.float32,
        execution: Execution | Literal["auto"] = "auto",
    ) -> None:
        settings, runs = config.settings, config.runs
        self.config, self.environments = config, environments
        device = torch.device(device)
        if device.type == "cuda":
            # a setting of the process; it must stand before anything is recorded
            torch.backends.cuda.matmul.allow_tf32 = settings.tf32
        counts = environments.actions.tolist()
        learner = Learner(
            network_spec(config, environments.observation, max(counts)),
            LearnerConfig(
                learning_rate=tuple(
                    settings.learning_rate if run.learning_rate is None else run.learning_rate for run in runs
                ),
                adam_epsilon=settings.adam_epsilon,
                loss=settings.loss,
                double_q=settings.double_q,
                weight_decay=settings.weight_decay,
                max_grad_norm=settings.max_grad_norm or None,
                target_period_updates=settings.target_period_agent_steps // settings.update_period_agent_steps,
            ),
            [run.seed for run in runs],
            [run.arm for run in runs],
            counts,
            device=device,
            dtype=dtype,
        )
        self.engine = make_engine(
            learner,
            environments.observation,
            settings.envs_per_run,
            capacity=settings.replay_capacity,
            batch_size=settings.batch_size,
            n_step=settings.n_step,
            gamma=settings.gamma,
            exponents=Exponents(settings.priority_exponent, settings.importance_exponent)
            if settings.prioritized
            else None,
            replay_device=replay_device,
            execution=execution,
            parts=environments.parts,
        )
        self.agent_steps = 0
        """Agent steps that each run has taken, over all its environments."""
        # Updates that fell due while a replay that was not saved filled up again; they are not done later.
        self._dropped_updates = 0
        self._learns_from = 0
        # the parts whose actors are choosing, and, by the number of a part, the actions that are being carried out
        self._choosing: set[int] = set()
        self._under_way: dict[int, NDArray[np.int64]] = {}
        # the running games: their numbers, returns so far and lengths so far
        self._games = np.zeros(self.environments.shape, np.int64)
        self._raw, self._clipped = np.zeros((2, *self.environments.shape))
        self._lengths = np.zeros(self.environments.shape, np.int64)
        first = self.environments.reset()
        self.engine.begin(first.frames, first.started)

    @property
    def learner(self) -> Learner:
        """The learner, with nothing under way."""
        return self.engine.learner

    @property
    def replay(self) -> Replay:
        """The replay, with nothing under way."""
        return self.engine.replay

    @property
    def updates(self) -> int:
        """Updates of each run so far."""
        return self.engine.updates

    @property
    def done(self) -> bool:
        """Whether all agent steps have been taken."""
        return self.agent_steps >= self.config.agent_steps

    @property
    def frames(self) -> int:
        """Emulator frames of each run so far."""
        return self.agent_steps * self.config.frames_per_agent_step

    @property
    def epsilon(self) -> float:
        """Share of random actions at the next step."""
        return epsilon_at(self.config.settings, self.agent_steps)

    def step(self) -> list[Episode]:
        """Act once in every environment and do the updates that are due; gives the games that ended.

        An update that falls due by this step's transitions is done in the next step, while the environments are at work
        or, with the setting ``sequential``, before it acts; see `gramian.deep.engines.engine.Engine`.
        """
        with self.engine.step():
            outcome, rewards = self._advance()
        self._raw += outcome.rewards
        self._clipped += rewards
        self._lengths += 1
        return self._ended(outcome.started, outcome.truncated) if np.count_nonzero(outcome.started) else []

    def diagnose(self) -> dict[str, NDArray[np.float64]]:
        """What the logs record of each run, ``[P]`` each, from a batch that is drawn for this purpose alone."""
        return self.engine.diagnose()

    def diverged_at(self) -> list[int]:
        """For each run, the update at which it was first seen not to be finite, or -1."""
        return [int(update) for update in self.learner.diverged_at.tolist()]

    def state(self) -> dict[str, Tensor]:
        """Everything that the runs share, as named tensors; what they have learned is `run_states`."""
        named: dict[str, Any] = {
            f"environments.{name}": torch.from_numpy(np.array(array))
            for name, array in self.environments.state().items()
        }
        named |= self.engine.state()
        named |= {
            "games": torch.from_numpy(self._games),
            "raw_returns": torch.from_numpy(self._raw),
            "clipped_returns": torch.from_numpy(self._clipped),
            "lengths": torch.from_numpy(self._lengths),
            "counters": torch.tensor([self.agent_steps, self._dropped_updates, self._learns_from]),
        }
        return {name: tensor.contiguous() for name, tensor in named.items()}

    def run_states(self) -> Iterator[dict[str, Tensor]]:
        """What each run has learned, as named tensors on the host; one run after the other."""
        return self.engine.run_states()

    def segments(self, start: int | None) -> Iterator[tuple[int, int, dict[str, Tensor]]]:
        """The replay's transitions from ``start`` on, or all that are needed, in parts of bounded size."""
        return self.engine.segments(start)

    def restore(
        self, state: dict[str, Tensor], runs: list[dict[str, Tensor]], segments: Sequence[dict[str, Tensor]]
    ) -> None:
        """Go on from a state that `state`, `run_states` and `segments` gave.

        Without segments the replay is empty, and no update is done for as many agent steps as the prefill has.
        """
        self.environments.restore(
            {
                name.removeprefix("environments."): tensor.numpy()
                for name, tensor in state.items()
                if name.startswith("environments.")
            }
        )
        self.engine.restore(state, runs, segments)
        self._games[:] = state["games"].numpy()
        self._raw[:] = state["raw_returns"].numpy()
        self._clipped[:] = state["clipped_returns"].numpy()
        self._lengths[:] = state["lengths"].numpy()
        self._choosing.clear()
        self._under_way.clear()
        self.agent_steps, self._dropped_updates, self._learns_from = state["counters"].tolist()
        if self.agent_steps and not len(segments):
            self._learns_from = self.agent_steps + self.config.settings.prefill_agent_steps

    def close(self) -> None:
        """Stop the learner and the emulators, these also where the learner has failed."""
        try:
            self.engine.close()
        finally:
            self.environments.close()

    def _advance(self) -> tuple[Step, NDArray[np.float32]]:
        """One step of everything: its outcome, and the rewards as the learner sees them."""
        settings, environments = self.config.settings, self.environments
        parts = len(environments.parts)
        if settings.sequential:
            self._learn()
        for part in range(parts):
            if part not in self._choosing and part not in self._under_way:
                self._act(part)
        if not settings.sequential:
            self._learn()
        after = self.agent_steps + settings.envs_per_run
        for part in range(parts):
            self._send(part)
            outcome = environments.recv(part)
            self._observe(part, outcome)
            # The part goes on at once, while the next part's environments finish and this step ends.
            if after < self.config.agent_steps and not settings.sequential:
                self._act(part, ahead=1)
        self.engine.store()
        self.agent_steps = after
        if self.done:  # no step comes after it
            self._learn()
        return outcome, np.sign(outcome.rewards) if settings.clip_rewards else outcome.rewards

    def _act(self, part: int, ahead: int = 0) -> None:
        """Let a part choose its actions, of this step or ``ahead``, and begin to carry them out.

        Where this process plays itself, it does its other work before it waits for the actions.
        """
        epsilon = epsilon_at(self.config.settings, self.agent_steps + ahead * self.config.settings.envs_per_run)
        self.engine.act(epsilon, self.engine.added + ahead, part)
        self._choosing.add(part)
        if not self.environments.here:
            self._send(part)

    def _send(self, part: int) -> None:
        """Let a part's environments carry out the actions that are being chosen, if any are."""
        if part in self._choosing:
            actions = self.engine.chosen(part).copy()
            self.environments.send(actions, part)
            # last, so that after an interruption the same actions are found again
            self._choosing.remove(part)
            self._under_way[part] = actions

    def _observe(self, part: int, outcome: Step) -> None:
        settings, runs = self.config.settings, self.environments.parts[part]
        rewards, terminated, life_lost = outcome.rewards[runs], outcome.terminated[runs], outcome.life_lost[runs]
        self.engine.observe(
            part,
            actions=self._under_way.pop(part),
            rewards=np.sign(rewards) if settings.clip_rewards else rewards,
            terminal=terminated | life_lost if settings.terminal_on_life_loss else terminated,
            truncated=outcome.truncated[runs],
            started=outcome.cleared[runs],
            frames=outcome.frames[runs],
            final_frames=outcome.final_frames[runs],
        )

    def _learn(self) -> None:
        """Begin the updates that are due."""
        due = updates_at(self.config.settings, self.agent_steps) - self._dropped_updates - self.engine.updates
        if due and self.agent_steps < self._learns_from:
            self._dropped_updates += due
            return
        for _ in range(due):
            self.engine.update()
        if due and self.config.settings.sequential:
            self.engine.sync_actor_weights()

    def _ended(self, ended: NDArray[np.bool_], truncated: NDArray[np.bool_]) -> list[Episode]:
        episodes = [
            Episode(
                run=int(run),
                environment=int(environment),
                episode=int(self._games[run, environment]),
                raw_return=float(self._raw[run, environment]),
                clipped_return=float(self._clipped[run, environment]),
                length_agent_steps=int(self._lengths[run, environment]),
                truncated=bool(truncated[run, environment]),
            )
            for run, environment in np.argwhere(ended)
        ]
        self._games[ended] += 1
        for sums in (self._raw, self._clipped, self._lengths):
            sums[ended] = 0
        return episodes
