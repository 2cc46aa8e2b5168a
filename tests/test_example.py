"""The algorithm in one file: it takes the steps of the learner, and trains."""

import pytest
import torch

from examples import dqn_gram
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec

SPECS = {"mlp": (NetworkSpec("mlp", (4,), 2, 32), 0.1), "nature": (NetworkSpec("nature", (4, 84, 84), 6, 64), 1e3)}
"""With a κ that matters: at the beginning the features of pictures are small."""


def batch_of(spec: NetworkSpec, number: int) -> Batch:
    generator = torch.Generator().manual_seed(number)
    shape = (1, 32, *spec.observation_shape)
    if spec.sees_pictures:
        seen = [torch.randint(256, shape, generator=generator, dtype=torch.uint8) for _ in range(2)]
    else:
        seen = [torch.randn(shape, generator=generator) for _ in range(2)]
    return Batch(
        seen[0],
        torch.randint(spec.actions, (1, 32), generator=generator),
        3 * torch.randn(1, 32, generator=generator),
        0.99 * torch.randint(2, (1, 32), generator=generator),
        seen[1],
    )


def distance_to_the_learner(kind: str, share: float, updates: int) -> float:
    """Largest difference of a weight after as many updates on the same batches, with a share of the learner's κ."""
    spec, kappa = SPECS[kind]
    config = LearnerConfig(learning_rate=1e-3, target_period_updates=3)
    learner = Learner(spec, config, seeds=[0], arms=[Arm("gram", kappa)], dtype=torch.float64)
    weights = [view for name, view in learner.state_dict().items() if name.startswith("online.")]
    shape = spec.observation_shape
    online, target = (dqn_gram.QNetwork(shape, spec.actions, spec.features_dim).double() for _ in range(2))
    for network in (online, target):
        for parameter, weight in zip(network.parameters(), weights, strict=True):
            parameter.data.copy_(weight[0])
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3, eps=config.adam_epsilon)
    for number in range(1, updates + 1):
        batch = batch_of(spec, number)
        learner.update(batch)
        dqn_gram.update(
            online, target, optimizer, dqn_gram.Batch(*(field[0] for field in batch.tensors)), share * kappa
        )
        if number % config.target_period_updates == 0:
            target.load_state_dict(online.state_dict())
    learned = [view for name, view in learner.state_dict().items() if name.startswith("online.")]
    pairs = zip(online.parameters(), learned, strict=True)
    return max(float((mine.detach() - theirs[0]).abs().max()) for mine, theirs in pairs)


@pytest.mark.parametrize("kind", SPECS)
def test_it_takes_the_steps_of_the_learner(kind: str) -> None:
    assert distance_to_the_learner(kind, 1.0, updates=7) < 1e-9
    assert distance_to_the_learner(kind, 0.5, updates=2) > 1e-5  # or else the line above would say nothing


def test_it_trains_on_vectors(capsys) -> None:
    words = "--env CartPole-v1 --device cpu --steps 600 --prefill 100 --features 16 --batch-size 8 --log-every 300"
    _, returns = dqn_gram.train(dqn_gram.arguments([*words.split(), "--update-every", "1", "--target-every", "100"]))
    assert 600 / 500 <= len(returns) <= 600 / 8
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["step 300", "step 600"]
    assert "nan" not in lines[-1]


def test_it_trains_on_pictures(capsys) -> None:
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    words = "--env ALE/Breakout-v5 --device cpu --steps 120 --prefill 100 --features 16 --batch-size 4 --log-every 120"
    online, _ = dqn_gram.train(dqn_gram.arguments([*words.split(), "--replay-capacity", "80"]))
    assert online.head.out_features == 4
    assert "nan" not in capsys.readouterr().out


def test_what_the_network_sees_begins_with_its_episode_and_the_last_observation_is_never_drawn() -> None:
    import gymnasium
    import numpy as np

    replay = dqn_gram.Replay(6, gymnasium.spaces.Box(0, 255, (1, 1), np.uint8), stack=4)
    for start, length in ((0, 3), (4, 3)):  # two games of three steps: observations 0 to 3 and 4 to 7
        for number in range(start, start + length):
            replay.add_observation(np.full((1, 1), number), start)
            replay.add_step(number, 1.0, 0.99)
        replay.add_observation(np.full((1, 1), start + length), start)
    stacks = replay.observations(np.array([4, 5, 7]))[:, :, 0, 0]
    assert stacks.tolist() == [[4, 4, 4, 4], [4, 4, 4, 5], [4, 5, 6, 7]]
    batch = replay.sample(50, np.random.default_rng(0), "cpu")
    assert set(batch.actions.tolist()) == {6}  # 2 is too old for its stack, 3 and 7 are last, of 4 and 5 as of 2
    assert batch.next_observations[0, :, 0, 0].tolist() == [4, 5, 6, 7]
