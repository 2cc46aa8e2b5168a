"""What the peers of the benchmark share with the package: games, network, update, replay ratio."""

import numpy as np
import pytest
import torch

pytest.importorskip("ale_py")
pytest.importorskip("minatar")

from benchmarks.contestants import CONTESTANTS
from benchmarks.peer_games import LifeIsEpisode, MinAtarRules, VectorOfOne, make_game
from benchmarks.plain_dqn import PlainDQN, Sample
from gramian.core.arms import Arm
from gramian.core.games import find_game
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec, forward
from gramian.deep.envs import Environments, make_games
from tests.benchmarks.workloads import tiny

pytestmark = pytest.mark.slow

ATARI = {"game": "breakout", "preset": "author"}


def play(env, actions):
    """Observation, reward, end of each step; a new episode where one ends."""
    env.reset()
    for action in actions:
        seen, reward, terminated, truncated, _ = env.step(action)
        yield seen, reward, terminated
        if terminated or truncated:
            env.reset()


def test_peers_see_the_same_atari_as_the_package():
    pytest.importorskip("cv2")
    settings = tiny(**ATARI).settings
    actions = np.random.default_rng(0).integers(0, 4, 400)
    ours = Environments([find_game("breakout")], [0], 1, settings.environment)
    ours.reset()
    vector = LifeIsEpisode(VectorOfOne(find_game("breakout"), settings.environment.atari), True, True)
    lives_lost = 0
    try:
        peers = zip(play(make_game("breakout", settings, seed=0), actions), play(vector, actions), strict=True)
        for action, (peer, other) in zip(actions, peers, strict=True):
            step = ours.step(np.array([[action]]))
            lives_lost += step.life_lost.item()
            if step.terminated.item():  # games start anew in their own ways
                break
            np.testing.assert_array_equal(peer[0][-1], step.frames[0, 0])
            np.testing.assert_array_equal(peer[0], other[0])
            assert peer[1] == other[1] == np.sign(step.rewards).item()
            assert peer[2] == other[2] == step.life_lost.item()
    finally:
        ours.close()
    assert lives_lost > 2


def test_a_lost_life_does_not_end_the_game():
    env = make_game("breakout", tiny(**ATARI).settings, seed=0)
    env.reset()
    terminated = False
    random = np.random.default_rng(0)
    while not terminated:
        before, _, terminated, _, info = env.step(random.integers(4))
    after, _ = env.reset()
    assert info["lives"] == 4
    np.testing.assert_array_equal(before, after)
    assert env.step(np.int64(0))[4]["lives"] == 4


@pytest.mark.parametrize("game", ["minatar/breakout", "minatar/seaquest"])
def test_peers_play_the_same_minatar_as_the_package(game):
    options = tiny(game=game).settings.environment
    ours = make_games(find_game(game), 1, options)
    peer = MinAtarRules(find_game(game), options.minatar, seed=5)
    np.testing.assert_array_equal(peer.reset()[0], ours.start(np.array([0]), np.array([5]))[0])
    over = False
    random = np.random.default_rng(0)
    while not over:
        action = random.integers(6)
        ours.send(np.array([action]))
        outcome = ours.recv()
        seen, reward, over, _, _ = peer.step(action)
        np.testing.assert_array_equal(seen, outcome.frames[0])
        assert (reward, over) == (outcome.rewards[0], outcome.terminated[0])


def copied(parameters, network):
    """Put the package's parameters of run 0 into a peer's network, whose layers stand in the same order."""
    own = list(network.parameters())
    assert [tuple(p.shape) for p in own] == [tuple(p.shape[1:]) for p in parameters.values()]
    with torch.no_grad():
        for mine, theirs in zip(own, parameters.values(), strict=True):
            mine.copy_(theirs[0])


def learner_like(work, env):
    settings = work.settings
    kind = "nature" if len(env.observation_space.shape) == 3 and env.observation_space.shape[1] == 84 else "minatar"
    spec = NetworkSpec(kind, env.observation_space.shape, int(env.action_space.n), settings.features_dim)
    config = LearnerConfig(settings.learning_rate, adam_epsilon=settings.adam_epsilon)
    return Learner(spec, config, [0], [Arm("dqn")])


def observations(env, count):
    random = np.random.default_rng(0)
    return torch.from_numpy(
        random.integers(0, int(env.observation_space.high.max()) + 1, (count, *env.observation_space.shape), np.uint8)
    )


@pytest.mark.parametrize("where", [ATARI, {}], ids=["atari", "minatar"])
def test_the_plain_update_is_the_packages(where):
    work = tiny("plain", **where)
    agent = PlainDQN(
        make_game(work.game, work.settings, 0), work.settings, work.settings.features_dim, 0, torch.device("cpu")
    )
    learner = learner_like(work, agent.env)
    copied(learner.layout.views(learner.state.online), agent.online)
    copied(learner.layout.views(learner.state.target), agent.target)
    seen, later = observations(agent.env, 8), observations(agent.env, 8).flip(0)
    actions, rewards = torch.arange(8) % agent.action_count, torch.linspace(-1, 1, 8)
    terminal = (torch.arange(8) == 3).float()
    for _ in range(3):
        agent.update(Sample(seen, actions, rewards, terminal, later))
        learner.update(Batch(*(x[None] for x in (seen, actions, rewards, 0.99 * (1 - terminal), later))))
    for theirs, ours in zip(
        agent.online.parameters(), learner.layout.views(learner.state.online).values(), strict=True
    ):
        torch.testing.assert_close(theirs, ours[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("where", [ATARI, {}], ids=["atari", "minatar"])
def test_stable_baselines_has_the_packages_network(where):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("cv2")
    work = tiny("sb3", **where)
    model = CONTESTANTS["sb3"].make(work).model
    learner = learner_like(work, model.env)
    parameters = learner.layout.views(learner.state.online)
    copied(parameters, model.q_net)
    pictures = observations(model.env, 4)
    with torch.no_grad():
        expected = forward(learner.spec, parameters, pictures[None]).values[0]
        torch.testing.assert_close(model.q_net(pictures), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["sb3", "plain"])
def test_a_preset_without_a_width_gets_the_networks_own(name):
    if name == "sb3":
        pytest.importorskip("stable_baselines3")
        pytest.importorskip("cv2")
    peer = CONTESTANTS[name].make(tiny(name, game="breakout", preset="smoke"))
    network = peer.model.q_net if name == "sb3" else peer.agent.online
    assert list(network.parameters())[-2].shape == (4, 512)


@pytest.mark.parametrize("name", ["sb3", "sb3-lean", "plain", "gramian"])
def test_every_learner_updates_once_in_four_steps_and_not_in_the_prefill(name):
    if name.startswith("sb3"):
        pytest.importorskip("stable_baselines3")
    contestant = CONTESTANTS[name].make(tiny(name))
    contestant.fill()
    assert contestant.updates() == 0
    steps = sum(contestant.run(0.0) for _ in range(12))
    # the last steps of each stretch may be left without their update
    assert steps // 5 <= contestant.updates() <= steps // 4
