from dataclasses import replace

import numpy as np
import pytest
import torch

from gramian.core.games import find_game
from gramian.deep.agent.arms import Arm
from gramian.deep.envs import Step
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.training.config import Config, RunSpec, load_preset
from gramian.deep.training.trainer import Trainer, make_environments
from tests.deep.sessions import small


class Scripted:
    """An environment that does what a list says: one (reward, event) for each step; a frame counts the steps."""

    observation = ObservationSpec((84, 84), np.uint8, 4)
    shape = (1, 1)
    parts = (slice(0, 1),)
    here = True
    actions = np.array([3])

    def __init__(self, script, per_life=False):
        self.script, self.per_life = script, per_life
        self.taken = 0

    def _step(self, reward, event):
        def flag(name):
            return np.array([[event == name]])

        frame = np.full((1, 1, 84, 84), self.taken, np.uint8)
        started = np.array([[event in ("over", "out of time", "begin")]])
        final = np.full((1, 1, 84, 84), 200 + self.taken, np.uint8)
        rewards = np.array([[reward]], np.float32)
        cleared = started | (flag("life") & self.per_life)
        return Step(frame, started, cleared, rewards, flag("over"), flag("life"), flag("out of time"), final)

    def reset(self):
        return self._step(0.0, "begin")

    def send(self, *_):
        pass

    def recv(self, _=0):
        reward, event = self.script[self.taken]
        self.taken += 1
        return self._step(reward, event)


def scripted(script, per_life=False, **changes):
    settings = replace(load_preset("smoke"), prefill_agent_steps=100, replay_capacity=50, **changes)
    config = Config("smoke", settings, (RunSpec(find_game("breakout"), Arm("dqn"), 0),))
    trainer = Trainer(config, Scripted(script, per_life))
    episodes = [episode for _ in script for episode in trainer.step()]
    return trainer, episodes


SCRIPT = [(5.0, ""), (-2.0, "life"), (0.0, ""), (7.0, "over"), (1.0, ""), (3.0, "out of time"), (1.0, "")]


def transitions(trainer, count):
    zeros = torch.zeros(1, count, dtype=torch.int64)
    return trainer.replay.fetch(zeros, torch.arange(count)[None])


def test_a_lost_life_ends_the_learner_s_episode_and_not_the_game():
    trainer, episodes = scripted(SCRIPT)
    assert [(e.raw_return, e.length_agent_steps, e.truncated) for e in episodes] == [(10.0, 4, False), (4.0, 2, True)]
    discounts = transitions(trainer, 7).discounts[0].tolist()
    assert [discount == 0 for discount in discounts] == [False, True, False, True, False, False, False]


def test_where_a_life_is_not_an_end_only_the_game_s_end_is():
    trainer, _ = scripted(SCRIPT, terminal_on_life_loss=False)
    discounts = transitions(trainer, 7).discounts[0].tolist()
    assert [discount == 0 for discount in discounts] == [False, False, False, True, False, False, False]


def test_rewards_are_clipped_for_the_learner_and_raw_in_the_returns():
    trainer, episodes = scripted(SCRIPT)
    assert transitions(trainer, 7).rewards[0].tolist() == [1, -1, 0, 1, 1, 1, 1]
    assert [episode.clipped_return for episode in episodes] == [1.0, 2.0]
    trainer, episodes = scripted(SCRIPT, clip_rewards=False)
    assert transitions(trainer, 7).rewards[0].tolist() == [5, -2, 0, 7, 1, 3, 1]
    assert [episode.clipped_return for episode in episodes] == [episode.raw_return for episode in episodes]


def test_a_truncated_game_bootstraps_from_its_own_last_frame():
    trainer, _ = scripted(SCRIPT)
    batch = transitions(trainer, 7)
    assert batch.discounts[0, 5] == pytest.approx(0.99)
    assert batch.next_observations[0, 5, :, 0, 0].tolist() == [0, 4, 5, 206]


def test_the_actor_sees_the_stack_that_the_learner_is_given():
    trainer, _ = scripted(SCRIPT[:3])
    assert trainer.engine._stack.observations[0, 0, :, 0, 0].tolist() == [0, 1, 2, 3]  # over the lost life
    assert transitions(trainer, 3).next_observations[0, 2, :, 0, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_stack_that_a_lost_life_clears_is_zero_for_the_actor_and_the_learner(terminal):
    trainer, episodes = scripted(SCRIPT[:4], per_life=True, terminal_on_life_loss=terminal)
    assert len(episodes) == 1
    assert trainer.engine._stack.observations[0, 0, :, 0, 0].tolist() == [0, 0, 0, 4]
    batch = transitions(trainer, 4)
    assert batch.observations[0, :, :, 0, 0].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 2, 3]]
    assert batch.next_observations[0, 2, :, 0, 0].tolist() == [0, 0, 2, 3]


def updates_of(**changes):
    config = small(**changes)
    trainer = Trainer(config, make_environments(config))
    counts = []
    while not trainer.done:
        trainer.step()
        counts.append(trainer.learner.updates)
    return trainer, counts


def test_the_first_update_comes_after_the_prefill_and_then_one_in_every_period():
    _, counts = updates_of(frames=200, seeds=[0])
    assert counts[107] == 0  # it falls due by step 108, which is number 107 here
    assert counts[108] == 1  # and is done while the next one is under way
    assert counts[-1] == 100 // 8


def test_several_environments_keep_the_ratio_of_updates_to_agent_steps():
    trainer, counts = updates_of(frames=200, seeds=[0], envs_per_run=16)
    assert trainer.agent_steps == 208
    assert counts[-1] == 108 // 8


def test_the_target_network_is_copied_every_so_many_agent_steps():
    config = small(frames=400, seeds=[0], target_period_agent_steps=80)
    trainer = Trainer(config, make_environments(config))
    copied_at = []
    before = trainer.learner.state.target.clone()
    while not trainer.done:
        trainer.step()
        if not torch.equal(trainer.learner.state.target, before):
            copied_at.append(trainer.agent_steps)
            before = trainer.learner.state.target.clone()
    # the periods count from the first update on, and an update is done in the step after the one that it falls due by
    assert copied_at == [181, 261, 341]


def test_looking_at_the_learner_changes_nothing():
    config = small(frames=300, seeds=[0])
    plain, watched = (Trainer(config, make_environments(config)) for _ in range(2))
    while not plain.done:
        plain.step()
        watched.step()
        if watched.learner.updates:
            watched.diagnose()
    assert torch.equal(plain.learner.state.online, watched.learner.state.online)


def trained(config, dtype=torch.float64):
    trainer = Trainer(config, make_environments(config), dtype=dtype)
    episodes = []
    while not trainer.done:
        episodes += trainer.step()
    return trainer, episodes


@pytest.mark.parametrize(
    ("game", "prioritized"), [("cartpole", False), ("minatar/breakout", False), ("cartpole", True)]
)
def test_a_run_is_the_same_alone_and_anywhere_in_a_population(game, prioritized):
    arms = [Arm("decor", 0.1), Arm("norm", 0.3), Arm("gram", 0.1, centered=False)]
    changes = {"game": game, "frames": 900, "update_period_agent_steps": 4, "target_period_agent_steps": 40}
    changes["prioritized"] = prioritized
    whole, whole_episodes = trained(small(arms=arms, seeds=[3, 5], **changes))
    assert whole.learner.updates == 200
    for place, arm, seed in [(0, arms[0], 3), (3, arms[1], 5), (4, arms[2], 3)]:
        alone, alone_episodes = trained(small(arms=[arm], seeds=[seed], **changes))
        together = [replace(episode, run=0) for episode in whole_episodes if episode.run == place]
        assert together == alone_episodes  # every random choice was the same
        torch.testing.assert_close(
            whole.learner.state.online[place], alone.learner.state.online[0], rtol=1e-9, atol=1e-9
        )


def test_games_with_different_numbers_of_actions_share_a_population():
    settings = replace(small().settings, frames=1_000, prefill_agent_steps=150, update_period_agent_steps=20,
                       target_period_agent_steps=40)  # fmt: skip
    runs = tuple(RunSpec(find_game(game), Arm("gram", 0.1), 0) for game in ("breakout", "seaquest"))
    trainer = Trainer(Config("smoke", settings, runs), make_environments(Config("smoke", settings, runs)))
    assert trainer.environments.actions.tolist() == [4, 18]
    while not trainer.done:
        trainer.step()
    assert trainer.learner.updates == 5


def test_float32_and_float64_make_the_same_first_choices():
    config = small(frames=150, seeds=[0])
    single, _ = trained(config, torch.float32)
    double, _ = trained(config, torch.float64)
    assert torch.equal(single.replay.sample(torch.tensor([0, 0]), 0, 8).actions,
                       double.replay.sample(torch.tensor([0, 0]), 0, 8).actions)  # fmt: skip
