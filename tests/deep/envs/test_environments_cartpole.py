import gymnasium
import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.agent.streams import Stream, bits
from gramian.deep.envs import CartPoleOptions, EnvironmentOptions, Environments
from tests.deep.envs.environment_checks import check_independence, check_restore, random_actions, snapshot

CARTPOLE = find_game("cartpole")


def make(limit=500, runs=2, each=2):
    options = EnvironmentOptions(cartpole=CartPoleOptions(max_episode_steps=limit))
    return Environments([CARTPOLE] * runs, list(range(runs)), each, options)


def test_it_plays_gymnasium_s_cartpole_with_the_seed_of_each_episode():
    environments = make(runs=1, each=1)
    reference = gymnasium.make("CartPole-v1")
    step = environments.reset()
    episode = 0
    for action in random_actions(environments, 300):
        if step.started:
            seed = int(bits(0, Stream.EPISODE, 0, episode)) >> 33
            observation, _ = reference.reset(seed=seed)
            np.testing.assert_array_equal(step.frames[0, 0], observation)
            episode += 1
        step = environments.step(action)
        observation, reward, terminated, truncated, _ = reference.step(action.item())
        assert (step.rewards.item(), step.terminated.item(), step.truncated.item()) == (reward, terminated, truncated)
        if not terminated:
            np.testing.assert_array_equal(step.frames[0, 0], observation)
    assert episode > 5


def test_the_time_limit_truncates_and_keeps_the_last_frame():
    environments = make(limit=3)
    environments.reset()
    steps = [snapshot(environments.step(np.array([[0, 1], [0, 1]]))) for _ in range(6)]
    assert [bool(step["truncated"].all()) for step in steps] == [False, False, True] * 2
    assert [bool(step["started"].all()) for step in steps] == [False, False, True] * 2
    assert not any(step["terminated"].any() for step in steps)
    last = steps[2]
    assert np.abs(last["final_frames"].reshape(2, 2, 4) - steps[1]["frames"]).max() < 1
    assert not np.array_equal(last["final_frames"].reshape(2, 2, 4), last["frames"])


@pytest.mark.parametrize("before", [0, 1, 47, 300])
def test_restore_gives_the_same_continuation(before):
    history = check_restore(lambda: make(limit=40), before, 300)
    assert any(step["truncated"].any() for step in history)
    assert any(step["terminated"].any() for step in history)


def test_a_run_s_episodes_do_not_depend_on_the_population():
    histories = check_independence(CARTPOLE, EnvironmentOptions(), 100)
    assert not np.array_equal(histories[0][0]["frames"], histories[1][0]["frames"])


def test_the_actions_logged_grow_with_the_episode():
    environments = Environments([find_game("minatar/freeway")], [0])  # an episode of 2,500 steps
    environments.reset()
    actions = random_actions(environments, 700)
    for action in actions:
        environments.step(action)
    assert environments.state()["actions"].tolist() == actions.flatten().tolist()


def test_actions_outside_the_game_s_range_or_of_the_wrong_shape_are_refused():
    environments = make()
    environments.reset()
    with pytest.raises(ValueError, match="outside their games' ranges"):
        environments.step(np.full((2, 2), 2))
    with pytest.raises(ValueError, match=r"actions have shape \(3,\), not \(2, 2\)"):
        environments.step(np.zeros(3, np.int64))


def test_send_and_recv_alternate():
    environments = make()
    environments.reset()
    with pytest.raises(RuntimeError, match="no actions were sent"):
        environments.recv()
    environments.send(np.zeros((2, 2), np.int64))
    with pytest.raises(RuntimeError, match="actions were sent before"):
        environments.send(np.zeros((2, 2), np.int64))
    assert environments.recv().rewards.sum() == 4


def test_actions_under_way_are_no_part_of_the_state():
    environments, again = make(), make()
    environments.reset()
    again.reset()
    actions = random_actions(environments, 9)
    for action in actions[:8]:
        environments.step(action)
    before = environments.state()
    environments.send(actions[8])
    state = environments.state()
    for name, array in before.items():
        np.testing.assert_array_equal(state[name], array)
    again.send(actions[0])  # which restoring makes away with
    again.restore(state)
    np.testing.assert_array_equal(again.step(actions[8]).frames, environments.recv().frames)


def test_parts_play_as_the_whole_does():
    whole, divided = make(runs=3), Environments([CARTPOLE] * 3, [0, 1, 2], 2, parts=2)
    assert divided.parts == (slice(0, 1), slice(1, 3))
    np.testing.assert_array_equal(whole.reset().frames, divided.reset().frames)
    ended = 0
    for action in random_actions(whole, 100):
        expected = whole.step(action)
        divided.send(action[1:], 1)
        divided.send(action[:1], 0)
        divided.recv(0)
        found = divided.recv(1)
        for field in ("frames", "started", "rewards", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
        ended += int(expected.started.sum())
    assert ended > 6
    with pytest.raises(ValueError, match="2 runs cannot be divided into 3 parts"):
        Environments([CARTPOLE] * 2, [0, 1], parts=3)


def test_a_state_of_other_environments_or_settings_is_refused():
    environments = make()
    environments.reset()
    for action in random_actions(environments, 8):
        environments.step(action)
    state = environments.state()
    with pytest.raises(UserError, match="the saved environments are 4 and these are 2"):
        make(runs=1).restore(state)
    state["actions"] = 1 - state["actions"]
    with pytest.raises(UserError, match="do not come out as they were saved"):
        make().restore(state)


def test_games_with_other_observations_do_not_share_a_population():
    with pytest.raises(UserError, match=r"'cartpole' and 'minatar/freeway' cannot share .* \(4,\) and \(7, 10, 10\)"):
        Environments([CARTPOLE, find_game("minatar/freeway")], [0, 1])


@pytest.mark.parametrize("arguments", [{"envs_per_run": 0}, {"threads": -1}])
def test_bad_numbers_are_errors(arguments):
    with pytest.raises(UserError, match=r"(envs_per_run|threads) is .*; it must be at least"):
        Environments([CARTPOLE], [0], **arguments)
