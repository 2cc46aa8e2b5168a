import math

import pytest
import torch

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.batch import Batch
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec
from tests.deep.naive import NaiveAgent, own_part
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

GRADIENTS = [f"grad_norm_{part}{source}" for part in ("head", "body") for source in ("", "_td", "_penalty")]


def learner_of(arms, spec=SPECS["mlp"], **config):
    return Learner(spec, LearnerConfig(**config), range(len(arms)), arms, dtype=torch.float64)


def gradient_norms(run, loss):
    """Norms of the gradient of ``loss`` with respect to head and body, by torch's own backward pass."""
    named = run.online.named()
    slopes = torch.autograd.grad(loss, list(named.values()), retain_graph=True, allow_unused=True)
    sums = {"head": 0.0, "body": 0.0}
    for name, slope in zip(named, slopes, strict=True):
        sums[name.split(".")[0]] += 0.0 if slope is None else float(slope.square().sum())
    return {part: math.sqrt(total) for part, total in sums.items()}


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_losses_and_gradient_norms_equal_those_of_naive_runs(kind):
    spec = SPECS[kind]
    seeds = list(range(len(EVERY_ARM)))
    learner = learner_of(EVERY_ARM, spec)
    learner.update(batch_of(spec, seeds, 1))  # so that online and target networks differ
    batch = batch_of(spec, seeds, 2)
    numbers = learner.diagnose(batch)
    for run, arm in enumerate(EVERY_ARM):
        naive = NaiveAgent(learner, run)
        naive.updates = learner.updates
        td, penalty, _ = naive.losses(own_part(batch, run))
        expected = {"loss": td + penalty, "td_loss": td, "penalty_loss": penalty}
        expected["penalty"] = penalty / arm.kappa if arm.kappa else penalty
        for source, loss in (("", td + penalty), ("_td", td), ("_penalty", penalty)):
            norms = gradient_norms(naive, loss) if loss.requires_grad else {"head": 0.0, "body": 0.0}
            expected |= {f"grad_norm_{part}{source}": norm for part, norm in norms.items()}
        for name, value in expected.items():
            value = value.item() if isinstance(value, torch.Tensor) else value
            assert numbers[name][run].item() == pytest.approx(value, rel=1e-9, abs=1e-12), (name, run)


def hand_made():
    """One run with φ(s) = relu(s), Q(s, ·) = (φ₁ + 2φ₂, 3φ₁), and a target network that says 10."""
    spec = NetworkSpec("mlp", (2,), actions=2, features_dim=2)
    learner = learner_of([Arm("gram", 0.5)], spec)
    views = learner.layout.views(learner.state.online.zero_())
    for name in ("body.fc1.weight", "body.fc2.weight"):
        views[name].copy_(torch.eye(2))
    views["head.weight"].copy_(torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    learner.layout.views(learner.state.target.zero_())["head.bias"].fill_(10.0)
    batch = Batch(
        observations=torch.tensor([[[3.0, 4.0], [1.0, -1.0], [-5.0, 2.0]]]),
        actions=torch.tensor([[0, 1, 0]]),
        rewards=torch.tensor([[10.0, 1.0, 2.0]]),
        discounts=torch.tensor([[0.0, 0.5, 0.0]]),
        next_observations=torch.zeros(1, 3, 2),
    )
    return learner, batch


def test_numbers_by_hand():
    learner, batch = hand_made()
    numbers = {name: value.item() for name, value in learner.diagnose(batch).items()}
    # Φ = [[3, 4], [1, 0], [0, 2]]; Q = 11, 3, 4; y = 10, 6, 2; errors 1, -3, 2
    assert numbers["q"] == pytest.approx(6.0)
    assert numbers["td_error"] == pytest.approx(2.0)
    assert numbers["td_loss"] == pytest.approx((0.5 + 2.5 + 1.5) / 3)
    assert numbers["feature_norm"] == pytest.approx((5 + 1 + 2) / 3)
    assert numbers["feature_cross"] == pytest.approx((3**2 + 8**2 + 0) * 2 / 6)
    assert numbers["feature_std"] == pytest.approx(math.sqrt(14 / 9) + math.sqrt(24 / 9))
    assert numbers["active_features"] == pytest.approx(4 / 6)
    # C_12 = (12 - 3·(4/3)·2)/3 = 4/3
    assert numbers["penalty"] == pytest.approx(2 * (4 / 3) ** 2)
    assert numbers["penalty_loss"] == pytest.approx((4 / 3) ** 2)
    assert numbers["loss"] == pytest.approx(1.5 + (4 / 3) ** 2)
    # slopes of Huber's loss: 1, -1, 1; head rows (φ₁ + φ₃)/3 and -φ₂/3, biases 2/3 and -1/3
    assert numbers["grad_norm_head"] == pytest.approx(math.sqrt(9 + 36 + 1 + 4 + 1) / 3)
    assert numbers["grad_norm_head_td"] == numbers["grad_norm_head"]
    assert numbers["grad_norm_head_penalty"] == 0


def test_features_are_raw_whatever_the_arm():
    arms = [Arm("dqn"), Arm("gram", 0.5), Arm("gram", 0.5, centered=False), Arm("decor", 0.1)]
    spec = SPECS["mlp"]
    learner = Learner(spec, LearnerConfig(), [3] * 4, arms, dtype=torch.float64)
    numbers = learner.diagnose(batch_of(spec, [3] * 4))
    for name in ("q", "td_error", "td_loss", "feature_norm", "feature_cross", "feature_std", "active_features"):
        assert torch.equal(numbers[name], numbers[name][:1].expand(4))


def test_every_arm_has_the_same_finite_numbers():
    spec = SPECS["mlp"]
    keys = {tuple(learner_of([arm]).diagnose(batch_of(spec, [0]))) for arm in EVERY_ARM}
    assert len(keys) == 1
    assert set(GRADIENTS) < set(keys.pop())
    for arm in EVERY_ARM:
        numbers = learner_of([arm]).diagnose(batch_of(spec, [0]))
        assert all(value.shape == (1,) and value.isfinite().all() for value in numbers.values())


def test_diagnosing_changes_nothing():
    spec = SPECS["mlp"]
    learners = [learner_of(EVERY_ARM, target_period_updates=2) for _ in range(2)]
    seeds = list(range(len(EVERY_ARM)))
    for number in range(5):
        batch = batch_of(spec, seeds, number)
        before = [tensor.clone() for tensor in batch.tensors]
        learners[0].diagnose(batch)
        assert all(torch.equal(a, b) for a, b in zip(batch.tensors, before, strict=True))
        for learner in learners:
            learner.update(batch)
    assert all(torch.equal(a, b) for a, b in zip(*(learner.state for learner in learners), strict=True))


def test_a_single_sample_has_no_cross_term():
    assert learner_of([Arm("dqn")]).diagnose(batch_of(SPECS["mlp"], [0], size=1))["feature_cross"].isnan().all()


def test_diagnosing_works_where_gradients_are_switched_off():
    learner, batch = hand_made()
    with torch.no_grad():
        assert learner.diagnose(batch)["grad_norm_head"] > 0
        assert learner.update(batch).total.isfinite().all()
