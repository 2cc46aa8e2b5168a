"""Our MinAtar games beside the package's: the same pictures, rewards and ends, in rare situations too."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from gramian.core.games import MINATAR_IDS
from gramian.deep.envs.minatar import MinAtarGames
from gramian.deep.envs.minatar_games import rows, seaquest
from gramian.deep.envs.options import MinAtarOptions
from tests.deep.envs.minatar_package import reference_game
from tests.deep.envs.minatar_players import Copies, Planner


def picture(reference):
    return reference.state().transpose(2, 0, 1)


@pytest.mark.parametrize("id_", MINATAR_IDS)
@pytest.mark.parametrize("ramping", [False, True])
@pytest.mark.parametrize("sticky", [0.0, 0.1, 0.9])
def test_many_environments_play_as_the_package_does(id_, ramping, sticky):
    count, random = 12, np.random.default_rng(3)
    engine = MinAtarGames(id_, count, MinAtarOptions(sticky_probability=sticky, difficulty_ramping=ramping))
    wrapper = {"sticky_action_prob": sticky, "difficulty_ramping": ramping}
    seeds = random.integers(0, 2**31, count)
    first = engine.start(np.arange(count), seeds)
    games = [reference_game(id_, int(seed), **wrapper) for seed in seeds]
    np.testing.assert_array_equal(first, [picture(game) for game in games])
    ends = 0
    for _ in range(250):
        actions = random.integers(0, 6, count)
        engine.send(actions)
        outcome = engine.recv()
        theirs = [game.act(action) for game, action in zip(games, actions.tolist(), strict=True)]
        np.testing.assert_array_equal(outcome.rewards, [reward for reward, _ in theirs])
        np.testing.assert_array_equal(outcome.terminated, [over for _, over in theirs])
        np.testing.assert_array_equal(outcome.frames, [picture(game) for game in games])
        assert not outcome.life_lost.any()
        (ended,) = np.nonzero(outcome.terminated)
        ends += ended.size
        for i in ended.tolist():
            seed = int(random.integers(0, 2**31))
            games[i] = reference_game(id_, seed, **wrapper)
            np.testing.assert_array_equal(engine.start(np.array([i]), np.array([seed]))[0], picture(games[i]))
    assert (ends > 0) == (id_ != "freeway")


def watch_breakout(env, before, seen):
    seen["wall rebuilt"] += np.count_nonzero(env.brick_map) > before["bricks"]
    seen["ball goes through a brick"] += bool(env.strike and before["strike"])
    seen["missed"] += env.terminal


def watch_asterix(env, _, seen):
    seen["fastest"] += env.spawn_speed == env.move_speed == 1
    seen["no lane is empty"] += None not in env.entities
    seen["levels"] = max(seen["levels"], env.ramp_index)


def watch_freeway(env, before, seen):
    seen["time is up"] += env.terminate_timer < 0
    seen["crossed"] += before["reward"] == 1
    seen["run over"] += env.pos == 9 and before["pos"] < 9 and before["reward"] == 0


def watch_space_invaders(env, before, seen):
    aliens = np.count_nonzero(env.alien_map)
    seen["new wave"] += aliens > before["aliens"] - before["reward"]
    seen["fastest"] += env.enemy_move_interval == 6
    seen["landed"] += bool(env.terminal and before["bottom"])
    seen["shot"] += bool(env.terminal and env.e_bullet_map[9, env.pos])


def watch_seaquest(env, before, seen):
    if env.surface and not before["surface"]:
        aboard = before["divers"]
        seen["surfaced with six" if aboard == 6 else "surfaced owing" if aboard < 0 else "surfaced with some"] += 1
    seen["surfaced with none"] += bool(env.terminal and env.sub_y == 0 and not env.surface and env.diver_count == 0)
    seen["suffocated"] += env.oxygen < 0
    seen["no room for a diver"] += env.diver_count == 6 and [env.sub_x, env.sub_y] in [d[:2] for d in env.divers]
    seen["fastest"] += env.e_spawn_speed == 1 and env.move_speed == 2
    seen["torpedo on its way"] += bool(env.e_bullets)


WATCH = {
    "asterix": (watch_asterix, lambda _: {}),
    "breakout": (watch_breakout, lambda env: {"bricks": np.count_nonzero(env.brick_map), "strike": env.strike}),
    "freeway": (watch_freeway, lambda env: {"pos": env.pos}),
    "seaquest": (watch_seaquest, lambda env: {"surface": env.surface, "divers": env.diver_count}),
    "space_invaders": (
        watch_space_invaders,
        lambda env: {"aliens": np.count_nonzero(env.alien_map), "bottom": env.alien_map[9].any()},
    ),
}


def play_beside(id_, steps, sticky=0.0, ramping=True, seed=0, episodes=10**6, **how):
    """Let a planner play ours and the package's; give how often each rare thing was seen in the package's state."""
    game = Copies(id_, 1, sticky, ramping)
    planner = Planner(game, id_, seed, **how)
    watch, look = WATCH[id_]
    seen = Counter()
    over = True
    for _ in range(steps):
        if over:
            if not episodes:
                break
            episodes -= 1
            seed += 1
            game.play(np.zeros((1, 0), np.int64), seed)
            reference = reference_game(id_, seed, sticky_action_prob=sticky, difficulty_ramping=ramping)
        action = planner.action()
        before = look(reference.env)
        game.play(np.array([[action]]))
        before["reward"], over = reference.act(action)
        assert (game.rewards[0], game.over[0]) == (before["reward"], over)
        np.testing.assert_array_equal(game.frames[0], picture(reference))
        watch(reference.env, before, seen)
        seen["reward"] += before["reward"]
    return seen


def divers_first(states):
    return 0.5 * states[:, seaquest.ON_BOARD]


def levels_first(states):
    return divers_first(states) + 2 * states[:, seaquest.LEVEL]


def the_end_first(states):
    return 2000 * states[:, rows.OVER]


NO_FIRE = (rows.STAY, rows.LEFT, rows.RIGHT)
SUBMERGED = (*NO_FIRE, rows.DOWN, rows.FIRE)
CALM = {"ramping": False}
BOTH = ({}, {"sticky": 0.1})
SITUATIONS = [
    *(("breakout", 1500, how, {"wall rebuilt": 1, "ball goes through a brick": 1, "missed": 1}, ()) for how in BOTH),
    *(("asterix", 1200, how, {"levels": 9, "fastest": 1, "no lane is empty": 1, "reward": 1}, ()) for how in BOTH),
    ("asterix", 500, CALM, {"reward": 1}, ("levels",)),
    *(("freeway", 2600, how, {"time is up": 1, "crossed": 1, "run over": 1}, ()) for how in BOTH),
    *(("space_invaders", 1600, how, {"new wave": 7, "fastest": 1}, ()) for how in BOTH),
    ("space_invaders", 800, CALM | {"sticky": 0.1}, {"new wave": 3}, ("fastest",)),
    ("space_invaders", 1500, {"allowed": NO_FIRE}, {"landed": 1, "shot": 1}, ()),
    (
        *("seaquest", 2500, {"sticky": 0.1, "value": divers_first}),
        {"surfaced with some": 1, "surfaced with six": 1, "surfaced owing": 1, "no room for a diver": 1},
        (),
    ),
    ("seaquest", 1500, {"value": levels_first}, {"fastest": 1, "torpedo on its way": 1}, ()),
    ("seaquest", 1000, CALM | {"value": divers_first}, {"surfaced with some": 1}, ("fastest",)),
    ("seaquest", 700, {"allowed": SUBMERGED}, {"suffocated": 1}, ()),
    ("seaquest", 50, {"allowed": (rows.UP, rows.DOWN), "value": the_end_first}, {"surfaced with none": 1}, ()),
]
"""Game, steps, how it is played, what has to be seen how often at least, and what must not be seen."""


@pytest.mark.parametrize(("id_", "steps", "how", "least", "never"), SITUATIONS)
def test_rare_situations_come_out_as_the_package_s(id_, steps, how, least, never):
    seen = play_beside(id_, steps, **how)
    assert {name: seen[name] for name in least if seen[name] < least[name]} == {}
    assert not any(seen[name] for name in never)


class Herd(list):
    """A list that counts how often it takes out an equal of what it was asked to."""

    twins = 0

    def remove(self, member):
        Herd.twins += self[self.index(member)] is not member
        super().remove(member)


def crowd(random, most, waits):
    """Some that swim in few places, so that many of them are equal or meet."""
    return Herd(
        [int(random.choice([0, 4, 5, 9])), int(random.integers(4, 6)), bool(random.integers(2))]
        + [int(random.integers(2)) for _ in range(waits)]
        for _ in range(random.integers(most + 1))
    )


def seaquest_row(env):
    """Our row of the package's state."""
    state = np.zeros(seaquest.SIZE, np.int64)
    state[rows.OVER], state[rows.RAMPING] = env.terminal, env.ramping
    state[seaquest.X], state[seaquest.Y], state[seaquest.COURSE] = env.sub_x, env.sub_y, 1 if env.sub_or else -1
    state[seaquest.RELOAD], state[seaquest.OXYGEN] = env.shot_timer, env.oxygen
    state[seaquest.ON_BOARD], state[seaquest.AT_SURFACE] = env.diver_count, env.surface
    state[seaquest.ENEMY_PERIOD], state[seaquest.ENEMY_WAIT] = env.e_spawn_speed, env.e_spawn_timer
    state[seaquest.DIVER_WAIT], state[seaquest.MOVE_PERIOD] = env.d_spawn_timer, env.move_speed
    state[seaquest.LEVEL] = env.ramp_index
    herds = {
        seaquest.SHOTS: env.f_bullets,
        seaquest.DIVERS: env.divers,
        seaquest.FISH: env.e_fish,
        seaquest.HUNTERS: env.e_subs,
        seaquest.TORPEDOES: env.e_bullets,
    }
    for herd, members in herds.items():
        for x, y, right, *waits in members:
            wait, reload = (*waits, 0, 0)[:2]
            seaquest.add(state, herd, x, y, 1 if right else -1, wait, reload)
    return state


def without_leftovers(state):
    """The row with zeros behind the end of each herd, and without the action before."""
    clean = state.copy()
    starts = (seaquest.SHOTS, seaquest.DIVERS, seaquest.FISH, seaquest.HUNTERS, seaquest.TORPEDOES, seaquest.SIZE)
    for herd, end in pairwise(starts):
        clean[herd + 1 + seaquest.FIELDS * clean[herd] : end] = 0
    clean[rows.BEFORE] = 0
    return clean


def test_seaquest_in_crowds_with_twins():
    random = np.random.default_rng(0)
    game = Copies("seaquest", 1)
    Herd.twins, rewards = 0, 0
    for seed in range(600):
        game.play(np.zeros((1, 0), np.int64), seed)
        reference = reference_game("seaquest", seed, sticky_action_prob=0.0)
        env = reference.env
        env.f_bullets, env.e_bullets, env.divers = crowd(random, 4, 0), crowd(random, 8, 0), crowd(random, 4, 1)
        env.e_fish, env.e_subs = crowd(random, 8, 1), crowd(random, 8, 2)
        env.sub_x, env.sub_y, env.sub_or = int(random.integers(1, 9)), int(random.integers(9)), bool(random.integers(2))
        env.e_spawn_timer, env.d_spawn_timer = random.integers(2, size=2).tolist()
        env.diver_count, env.surface = int(random.integers(-1, 7)), env.sub_y == 0
        env.e_spawn_speed, env.move_speed, env.oxygen = 2, 2, int(random.integers(4))
        game.states[0] = seaquest_row(env)
        for action in random.integers(0, 6, 4).tolist():
            game.play(np.array([[action]]))
            reward, over = reference.act(action)
            rewards += reward
            assert (game.rewards[0], game.over[0]) == (reward, over)
            np.testing.assert_array_equal(without_leftovers(game.states[0]), seaquest_row(env))
            np.testing.assert_array_equal(game.frames[0], picture(reference))
    assert Herd.twins > 10
    assert rewards > 100
