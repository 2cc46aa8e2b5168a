import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing

from gramian.core.errors import UserError
from gramian.core.games import PAPER_TITLES, find_game
from gramian.deep.envs import AtariOptions, EnvironmentOptions, Flavour, find_flavours, make_games

gymnasium.register_envs(ale_py)


def make(title, flavour, count=1, **options):
    return make_games(find_game(title), count, EnvironmentOptions(atari=AtariOptions(**options)), flavour=flavour)


def act(games, action):
    games.send(np.full(1, action))
    outcome = games.recv()
    return outcome.frames[0].copy(), outcome.rewards.item(), outcome.terminated.item(), outcome.life_lost.item()


# Demon Attack's and Centipede's first modes are not number 0
@pytest.mark.parametrize(
    ("title", "flavour"),
    [("Breakout", None), ("DemonAttack", None), ("Centipede", None), ("Breakout", Flavour(12, 1))],
)
def test_a_flavour_plays_as_gymnasium_s_single_environment(title, flavour):
    chosen = {} if flavour is None else {"mode": flavour.mode, "difficulty": flavour.difficulty}
    reference = AtariPreprocessing(
        gymnasium.make(f"ALE/{title}-v5", frameskip=1, repeat_action_probability=0.0, **chosen),
        noop_max=0,
        terminal_on_life_loss=False,
    )
    games = make(title, flavour or find_flavours(find_game(title))[0])
    expected, _ = reference.reset(seed=0)
    np.testing.assert_array_equal(games.start(np.arange(1), np.zeros(1, np.int64))[0], expected)
    for action in np.random.default_rng(0).integers(0, games.actions, 300).tolist():
        frame, reward, over, _ = act(games, action)
        expected, expected_reward, terminated, _, _ = reference.step(action)
        assert (reward, over) == (expected_reward, terminated)
        if over:  # nobody sees the last frame of a game that is over
            break
        np.testing.assert_array_equal(frame, expected)
    games.close()


@pytest.mark.slow
def test_every_game_of_the_paper_has_a_first_flavour_with_difficulty_zero():
    for title in PAPER_TITLES:
        first, *others = find_flavours(find_game(title))
        assert first.difficulty == 0
        assert first not in others


def test_another_mode_is_another_game():
    default, other = make("breakout", Flavour(0, 0)), make("breakout", Flavour(12, 0))
    everyone, seed = np.arange(1), np.zeros(1, np.int64)
    frames = [np.stack([e.start(everyone, seed)[0], *(act(e, 1)[0] for _ in range(40))]) for e in (default, other)]
    assert (frames[0] != frames[1]).any()


def test_an_episode_is_a_function_of_its_seed_and_its_actions():
    games = make("breakout", Flavour(4, 1), count=2, sticky_probability=0.25, noop_max=30)
    actions = np.random.default_rng(1).integers(0, games.actions, 60).astype(np.uint8)
    first, alive = games.replay(np.array([5, 6]), [actions, actions[:20]])
    first = first.copy()
    again, _ = games.replay(np.array([5, 6]), [actions, actions[:20]])
    assert alive
    np.testing.assert_array_equal(first, again)


def test_a_mode_that_a_game_does_not_have_is_refused():
    with pytest.raises(UserError, match=r"unknown mode of 'pong': '7:0'"):
        make("pong", Flavour(7, 0))


def test_a_game_without_modes_is_refused():
    with pytest.raises(UserError, match="'cartpole' has no modes"):
        find_flavours(find_game("cartpole"))
