import gymnasium
import numpy as np
import pytest

from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.envs import EnvironmentOptions, Environments, GymOptions, make_games
from tests.deep.envs.environment_checks import check_independence, check_restore, random_actions

MADE = "gym:tests.deep.envs.made:"


@pytest.mark.parametrize(
    ("game", "shape", "dtype", "actions", "limit"),
    [
        ("gym:Acrobot-v1", (6,), np.float32, 3, 500),
        ("gym:MountainCar-v0", (2,), np.float32, 3, 200),
        (f"{MADE}Vector-v0", (5,), np.float32, 3, 40),
        (f"{MADE}Pixels-v0", (4, 84, 84), np.uint8, 3, 40),
        (f"{MADE}ChannelsFirst-v0", (4, 84, 84), np.uint8, 3, 40),
        (f"{MADE}Grey-v0", (1, 84, 84), np.uint8, 3, 40),
    ],
)
def test_what_is_seen_and_done_in_an_environment(game, shape, dtype, actions, limit):
    games = make_games(find_game(game), 1)
    found = (games.observation.shape, games.observation.dtype, games.actions, games.max_episode_steps)
    assert found == (shape, dtype, actions, limit)


@pytest.mark.parametrize(
    ("game", "complaint"),
    [
        ("gym:Nope-v0", "Gymnasium cannot make 'gym:Nope-v0': Environment `Nope` doesn't exist"),
        ("gym:no_module:X-v0", "No module named 'no_module'"),
        ("gym:Pendulum-v1", "'gym:Pendulum-v1' has actions Box.* they must be Discrete, at most 256"),
        (f"{MADE}Many-v0", "has actions Discrete"),
        (f"{MADE}Dict-v0", "it must be a vector"),
        (f"{MADE}Matrix-v0", "it must be a vector"),
    ],
)
def test_what_cannot_be_played_is_one_line(game, complaint):
    with pytest.raises(UserError, match=complaint) as refused:
        make_games(find_game(game), 1)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["gym:", "gym:../x", "gym:a/b/c", "gym:a b"])
def test_an_id_that_gymnasium_cannot_have_is_refused(name):
    with pytest.raises(UserError, match="write gym: and an environment's id"):
        find_game(name)


def test_it_plays_as_gymnasium_does():
    environments = Environments([find_game("gym:Acrobot-v1")], [0])
    reference = gymnasium.make("Acrobot-v1")
    step = environments.reset()
    seed = int(environments._episode_seeds(slice(None))[0])
    np.testing.assert_array_equal(step.frames[0, 0], reference.reset(seed=seed)[0])
    truncated = []
    for action in random_actions(environments, 500):
        step = environments.step(action)
        observation, reward, terminated, ended, _ = reference.step(action.item())
        assert (step.rewards.item(), step.terminated.item()) == (reward, terminated)
        shown = step.final_frames[0, 0] if ended else step.frames[0, 0]
        np.testing.assert_array_equal(shown, observation)
        truncated.append(step.truncated.item())
    assert np.flatnonzero(truncated).tolist() == [499]


def test_an_image_s_channels_come_first():
    environment = gymnasium.make("tests.deep.envs.made:Pixels-v0")
    games = make_games(find_game(f"{MADE}Pixels-v0"), 1)
    frames = games.start(np.arange(1), np.array([3]))
    np.testing.assert_array_equal(frames[0], environment.reset(seed=3)[0].transpose(2, 0, 1))


@pytest.mark.parametrize("game", ["gym:CartPole-v1", f"{MADE}Vector-v0"])
def test_restore_gives_the_same_continuation(game):
    options = EnvironmentOptions(gym=GymOptions(max_episode_steps=12))
    history = check_restore(lambda: Environments([find_game(game)] * 2, [0, 1], 2, options), 47, 100)
    assert any(step["truncated"].any() for step in history)
    assert any(step["terminated"].any() for step in history)


def test_a_run_s_episodes_do_not_depend_on_the_population():
    check_independence(find_game("gym:CartPole-v1"), EnvironmentOptions(), 60)
