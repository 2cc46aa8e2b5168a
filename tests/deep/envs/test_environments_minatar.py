import os
import subprocess
import sys

import numpy as np
import pytest

from gramian.core.games import MINATAR_IDS, find_game
from gramian.deep.envs import EnvironmentOptions, Environments, MinAtarOptions
from tests.deep.envs.environment_checks import check_independence, check_restore, play, random_actions
from tests.deep.envs.minatar_package import reference_game


def make(id_, runs=2, each=2, **options):
    return Environments(
        [find_game(f"minatar/{id_}")] * runs,
        list(range(runs)),
        each,
        EnvironmentOptions(minatar=MinAtarOptions(**options)),
    )


def test_the_wrapper_s_generator_is_the_game_s():
    game = reference_game("seaquest", 3)
    assert game.random is game.env.random


@pytest.mark.parametrize("id_", MINATAR_IDS)
def test_an_episode_is_a_function_of_its_seed_and_its_actions(id_):
    # episode 1 after two different episodes 0: the same seed and the same actions give the same frames
    histories = []
    for seed in (1, 2):
        environments = make(id_, runs=1, each=1, max_episode_steps=80, sticky_probability=0.25)
        environments.reset()
        for action in random_actions(environments, 80, seed):
            step = environments.step(action)
            if step.started:
                break
        histories.append(play(environments, random_actions(environments, 79)))
    for mine, theirs in zip(*histories, strict=True):
        np.testing.assert_array_equal(mine["frames"], theirs["frames"])
        if mine["started"]:
            break


@pytest.mark.parametrize("id_", MINATAR_IDS)
@pytest.mark.parametrize("before", [1, 333])
def test_restore_gives_the_same_continuation(id_, before):
    check_restore(lambda: make(id_, max_episode_steps=150, sticky_probability=0.25), before, 300)


def test_a_run_s_episodes_do_not_depend_on_the_population():
    check_independence(find_game("minatar/asterix"), EnvironmentOptions(), 200)


def test_the_minimal_actions_are_those_with_an_effect():
    assert make("breakout").actions.tolist() == [6, 6]
    environments = make("breakout", runs=1, each=1, full_actions=False, sticky_probability=0.0)
    assert environments.actions.tolist() == [3]
    paddles = []
    for action in range(3):
        environments.reset()
        paddles.append(int(environments.step(np.array([[action]])).frames[0, 0, 0, 9].argmax()))
    assert paddles == [4, 3, 5]  # stay, left, right


def test_games_of_equal_observations_share_a_population():
    environments = Environments([find_game("minatar/breakout"), find_game("minatar/asterix")], [0, 0])
    assert environments.reset().frames.shape == (2, 1, 4, 10, 10)


def test_playing_imports_no_drawing_library():
    code = (
        "import sys; from gramian.deep.envs import Environments; from gramian.core.games import find_game;"
        "Environments([find_game('minatar/breakout')], [0]).reset();"
        "assert not {'matplotlib', 'seaborn', 'ale_py', 'minatar'} & set(sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
