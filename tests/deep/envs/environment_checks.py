"""What every kind of environment must do; shared by the tests of each kind."""

import copy

import numpy as np

from gramian.deep.envs import Environments

FIELDS = ("frames", "started", "cleared", "rewards", "terminated", "life_lost", "truncated")


def snapshot(step):
    taken = {name: getattr(step, name).copy() for name in FIELDS}
    taken["final_frames"] = step.final_frames[step.truncated]
    return taken


def assert_same(first, second):
    assert len(first) == len(second)
    for t, (mine, theirs) in enumerate(zip(first, second, strict=True)):
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=f"{name} at step {t}")


def random_actions(environments, steps, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, environments.actions[:, None], (steps, *environments.shape))


def play(environments, actions):
    return [snapshot(environments.step(a)) for a in actions]


def check_restore(make, before, after, copies=1):
    """Play ``before`` steps, restore into fresh environments, and compare that step and the next ``after``."""
    environments = make()
    environments.reset()
    actions = random_actions(environments, before + after)
    last = None
    for a in actions[:before]:
        last = snapshot(environments.step(a))
    state = copy.deepcopy(environments.state())
    expected = play(environments, actions[before:])
    for _ in range(copies):
        other = make()
        step = snapshot(other.restore(state))
        if last is not None:
            assert_same([step], [last])
        assert_same(play(other, actions[before:]), expected)
        other.close()
    # restoring works in used environments too
    environments.restore(state)
    assert_same(play(environments, actions[before:]), expected)
    environments.close()
    return expected


def check_independence(game, options, steps):
    """A run's episodes are the same alone and in a population, whatever its place."""
    seeds = [5, 6, 7]

    def histories(runs):
        environments = Environments([game] * len(runs), [seeds[r] for r in runs], 2, options)
        everyone = np.stack(
            [np.random.default_rng(r).integers(0, environments.actions[0], (steps, 2)) for r in runs], 1
        )
        first = snapshot(environments.reset())
        history = [first, *play(environments, everyone)]
        environments.close()
        return [
            [{k: v[i] for k, v in step.items() if k != "final_frames"} for step in history] for i in range(len(runs))
        ]

    together = histories([0, 1, 2])
    assert_same(histories([2])[0], together[2])
    for alone, whole in zip(histories([2, 0]), (together[2], together[0]), strict=True):
        assert_same(alone, whole)
    return together
