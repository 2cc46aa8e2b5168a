import csv
from dataclasses import replace

import pytest
import torch

from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.agent.networks import forward
from gramian.deep.envs import CartPoleOptions, EnvironmentOptions, MinAtarOptions
from gramian.deep.training.heldout import HeldOut, held_out_states
from gramian.deep.training.session import train
from gramian.deep.training.trainer import Trainer, make_environments
from gramian.representation import measures
from tests.deep.sessions import fingerprint, small

BREAKOUT = find_game("minatar/breakout")


def rows(folder, name="representation.csv"):
    with (folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_states_are_always_the_same_and_all_different():
    states = held_out_states(BREAKOUT, EnvironmentOptions(), 200)
    assert torch.equal(states, held_out_states(BREAKOUT, EnvironmentOptions(), 200))
    assert len(torch.unique(states.flatten(1), dim=0)) == 200


def test_repetitions_are_taken_where_a_game_has_too_few_states():
    options = EnvironmentOptions(cartpole=CartPoleOptions(max_episode_steps=1))
    states = held_out_states(find_game("cartpole"), options, 40)
    assert len(states) == 40
    again = held_out_states(BREAKOUT, EnvironmentOptions(minatar=MinAtarOptions(max_episode_steps=1)), 40)
    assert len(torch.unique(again.flatten(1), dim=0)) < 40


def test_fewer_states_than_players_can_be_asked_for():
    assert len(held_out_states(BREAKOUT, EnvironmentOptions(), 3)) == 3


def test_atari_states_are_stacks_of_different_frames():
    states = held_out_states(find_game("pong"), EnvironmentOptions(), 40)
    assert states.shape == (40, 4, 84, 84)
    assert not torch.equal(states[-1, 0], states[-1, 3])


def test_the_measures_are_those_of_each_runs_features():
    config = small(representation_states=70)
    trainer = Trainer(config, make_environments(config))
    found = HeldOut(config, torch.device("cpu")).measure(trainer.learner)
    states = held_out_states(find_game("cartpole"), config.settings.environment, 70)
    learner = trainer.learner
    everyone = forward(learner.spec, learner.layout.views(learner.state.online), states.expand(4, -1, -1)).features
    assert [run["srank"] for run in found] == [measures.srank(features) for features in everyone.detach()]
    norms = [measures.feature_norm(features) for features in everyone.detach()]
    assert [run["feature_norm"] for run in found] == pytest.approx(norms, rel=1e-6)


def test_a_row_is_written_at_each_interval(tmp_path):
    out = train(small(frames=400, representation_period_agent_steps=150), tmp_path / "out", device="cpu")
    for folder in out.glob("cartpole-*"):
        written = rows(folder)
        assert [int(row["agent_steps"]) for row in written] == [150, 300]
        assert all(0 < float(row["effective_rank"]) <= 64 for row in written)


def test_zero_turns_it_off(tmp_path):
    out = train(small(frames=300, representation_period_agent_steps=0), tmp_path / "out", device="cpu")
    assert [rows(folder) for folder in out.glob("cartpole-*")] == [[]] * 4


def test_measuring_changes_nothing_in_the_training(tmp_path):
    with_it = train(small(frames=400), tmp_path / "with", device="cpu")
    without = train(small(frames=400, representation_period_agent_steps=0), tmp_path / "without", device="cpu")
    one, other = fingerprint(with_it), fingerprint(without)
    differ = {name.rpartition("/")[2] for name in one if one[name] != other[name]}
    assert differ == {"representation.csv", "config.toml"}


def test_a_run_whose_weights_are_not_finite_is_measured_as_such():
    config = small()
    trainer = Trainer(config, make_environments(config))
    trainer.learner.state.online[0] = torch.nan
    found = HeldOut(config, torch.device("cpu")).measure(trainer.learner)
    assert [run["nonfinite_share"] for run in found] == [1, 0, 0, 0]


def test_no_held_out_states_are_refused():
    with pytest.raises(UserError, match="representation_states is 0; it must be at least 1"):
        replace(small().settings, representation_states=0)
