"""A replay that stores the whole stack of every observation, one Python object a transition."""

from dataclasses import dataclass

import numpy as np
import torch

from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import Outcome

GO_ON, LIFE_LOST, GAME_OVER, OUT_OF_TIME, LIFE_LOST_AND_OUT_OF_TIME = range(5)


@dataclass
class Transition:
    observation: np.ndarray
    action: int
    reward: float
    terminal: bool
    truncated: bool
    following: np.ndarray


class Player:
    """One environment with scripted events; every frame it shows is unique and not zero."""

    def __init__(self, spec, number):
        self.spec, self.number = spec, number
        self.shown = 0
        self.stack = []
        self.history = []

    def frame(self):
        self.shown += 1
        value = self.number * 10_000 + self.shown
        if self.spec.dtype == np.uint8:
            digits = [1 + value // 200**2, 1 + value // 200 % 200, 1 + value % 200]
            return np.resize(np.array(digits, np.uint8), self.spec.frame_shape)
        return np.full(self.spec.frame_shape, value, np.float32)

    def observation(self):
        padding = [np.zeros(self.spec.frame_shape, self.spec.dtype)] * self.spec.stack
        return np.stack((padding + self.stack)[-self.spec.stack :]).reshape(self.spec.shape)

    def begin(self):
        self.stack = [self.frame()]
        return self.stack[-1]

    def play(self, action, reward, event):
        """Take a step; give (terminal, truncated, newest frame, started, final frame)."""
        before = self.observation()
        terminal = event in (LIFE_LOST, GAME_OVER, LIFE_LOST_AND_OUT_OF_TIME)
        truncated = event in (OUT_OF_TIME, LIFE_LOST_AND_OUT_OF_TIME)
        started = truncated or event == GAME_OVER
        final = self.frame()
        self.stack.append(final)
        following = np.zeros_like(before) if event == GAME_OVER else self.observation()
        self.history.append(Transition(before, action, reward, terminal, truncated, following))
        newest = self.begin() if started else final
        return terminal, truncated, newest, started, final

    def n_step(self, i, n, gamma):
        """Transition i over n steps, or None where they are not known yet."""
        total, steps = 0.0, 0
        for step in self.history[i : i + n]:
            total += gamma**steps * step.reward
            steps += 1
            if step.terminal or step.truncated:
                break
        else:
            if steps < n:
                return None
        discount = 0.0 if step.terminal else gamma**steps
        first = self.history[i]
        return first.observation, first.action, total, discount, step.following

    def sampleable(self, n, kept, reach):
        """Numbers of the transitions that may be sampled, by the rule in words.

        Among the newest ``kept``, those whose n steps are known and whose frame lies at most ``reach`` frames back,
        where frames that ended an episode by time count too.
        """
        numbers = []
        for i in range(max(0, len(self.history) - kept), len(self.history)):
            distance = sum(1 + step.truncated for step in self.history[i:])
            if distance <= reach and self.n_step(i, n, 1.0) is not None:
                numbers.append(i)
        return numbers


class Table:
    """P×E players beside a replay."""

    def __init__(self, replay, spec: ObservationSpec, gamma, numbers=None):
        self.replay, self.spec, self.gamma = replay, spec, gamma
        runs, each = replay.shape
        numbers = numbers or list(range(runs))
        self.players = [[Player(spec, run * each + e) for e in range(each)] for run in numbers]

    def grid(self, values):
        return torch.as_tensor(np.array(values), device=self.replay.device)

    def begin(self, replay=None):
        (replay or self.replay).begin(self.grid([[player.begin() for player in run] for run in self.players]))

    def add(self, events, *others):
        """One step with the events ``[P][E]``, given to the table's replay and to ``others``."""
        outcomes, actions, rewards = [], [], []
        for run, run_events in zip(self.players, events, strict=True):
            actions.append([(7 * len(player.history) + player.number) % 18 for player in run])
            rewards.append([float((3 * len(player.history) + player.number) % 11 - 5) for player in run])
            outcomes.append(
                [
                    player.play(a, r, e)
                    for player, a, r, e in zip(run, actions[-1], rewards[-1], run_events, strict=True)
                ]
            )
        terminal, truncated, frames, started, final = (
            [[outcome[k] for outcome in run] for run in outcomes] for k in range(5)
        )
        final_frames = self.grid(final) if np.any(truncated) else None
        for replay in (self.replay, *others):
            fields = (actions, np.array(rewards, np.float32), terminal, truncated, started, frames)
            replay.add(Outcome(*map(self.grid, fields)), final_frames)

    def check(self, replay=None):
        """Compare the sampleable transitions, and every one of them with the stored stacks."""
        replay = replay or self.replay
        kept, reach = replay._layout.kept, replay._layout.reach
        first, last = (bound.tolist() for bound in replay.bounds())
        for p, run in enumerate(self.players):
            expected = [player.sampleable(replay.n_step, kept, reach) for player in run]
            assert [list(range(first[p][e], last[p][e] + 1)) for e in range(len(run))] == expected
            for e, numbers in enumerate(expected):
                if not numbers:
                    continue
                environments = torch.full((len(self.players), len(numbers)), e, device=self.replay.device)
                transitions = torch.tensor(numbers, device=self.replay.device).expand(len(self.players), -1)
                batch = replay.fetch(environments, transitions)
                for b, i in enumerate(numbers):
                    observation, action, reward, discount, following = run[e].n_step(i, replay.n_step, self.gamma)
                    np.testing.assert_array_equal(batch.observations[p, b].cpu(), observation)
                    np.testing.assert_array_equal(batch.next_observations[p, b].cpu(), following)
                    assert int(batch.actions[p, b]) == action
                    np.testing.assert_allclose(float(batch.rewards[p, b]), reward, rtol=1e-6, atol=1e-6)
                    np.testing.assert_allclose(float(batch.discounts[p, b]), discount, rtol=1e-6)
