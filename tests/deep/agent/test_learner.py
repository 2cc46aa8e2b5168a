import pytest
import torch
from scipy.stats import chi2

from gramian.core.arms import PENALTIES
from gramian.core.errors import UserError
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec, forward
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

MLP = SPECS["mlp"]


def learner_of(arms, seeds=None, *, spec=MLP, dtype=torch.float64, action_counts=None, **config):
    seeds = list(range(len(arms))) if seeds is None else seeds
    options = {"learning_rate": 3e-3, "target_period_updates": 10} | config
    return Learner(spec, LearnerConfig(**options), seeds, arms, action_counts, dtype=dtype)


def train(learner, seeds, updates, first=0, **options):
    for number in range(first, first + updates):
        learner.update(batch_of(learner.spec, seeds, number, **options))
    return learner


def weights(learner):
    return learner.state.online.clone()


# --- arms ---


@pytest.mark.parametrize("kind", PENALTIES)
def test_kappa_zero_is_dqn_bit_for_bit(kind):
    others = [Arm("gram", 0.5), Arm("decor", 0.1)]
    plain = train(learner_of([Arm("dqn"), *others], dtype=torch.float32), [0, 1, 2], 30)
    zero = train(learner_of([Arm(kind, 0.0), *others], dtype=torch.float32), [0, 1, 2], 30)
    alone, zero_alone = (train(learner_of([arm], dtype=torch.float32), [0], 30) for arm in (Arm("dqn"), Arm(kind, 0.0)))
    for one, other in ((plain, zero), (alone, zero_alone)):
        assert all(torch.equal(a, b) for a, b in zip(one.state, other.state, strict=True))


@pytest.mark.parametrize("centered", [True, False])
def test_decor_and_gram_with_one_seed_agree_after_200_updates(centered):
    seeds = [5, 5, 5]
    learner = learner_of([Arm("decor", 0.5, centered), Arm("gram", 0.5, centered), Arm("dqn")], seeds)
    train(learner, seeds, 200, size=16)
    decor, gram, plain = learner.state.online
    assert (decor - gram).abs().max() <= 1e-9
    assert (decor - plain).abs().max() > 1e-3


def test_the_head_gets_no_gradient_from_the_penalty():
    batch = batch_of(MLP, [0] * len(EVERY_ARM))
    numbers = learner_of(EVERY_ARM, [0] * len(EVERY_ARM)).diagnose(batch)
    assert (numbers["grad_norm_head_penalty"] == 0).all()
    assert (numbers["grad_norm_body_penalty"][1:] > 0).all()
    learner = learner_of(EVERY_ARM, [0] * len(EVERY_ARM))
    learner.update(batch)
    assert (
        learner.state.mean[1:, learner.layout.body_size :] == learner.state.mean[0, learner.layout.body_size :]
    ).all()


# --- TD loss ---


def test_importance_weights_scale_the_loss_of_each_sample():
    learner = learner_of([Arm("dqn"), Arm("gram", 0.5)])
    batch = batch_of(MLP, [0, 1])
    weights = torch.rand(2, 6, dtype=torch.float64)
    objective, (online, target, *_) = learner.objective, learner.state
    targets = objective.targets(learner.layout.views(online), learner.layout.views(target), batch)
    plain, ones, weighted = (
        objective.gradients(learner.layout, online, targets, batch._replace(weights=weights))
        for weights in (None, torch.ones_like(weights), weights)
    )
    assert all(torch.equal(a, b) for a, b in zip((plain[0], plain[1].total), (ones[0], ones[1].total), strict=True))
    assert torch.equal(weighted[1].samples, plain[1].samples)
    torch.testing.assert_close(weighted[1].components["td"], (weights * plain[1].samples).mean(1))
    one_sample = torch.eye(6, dtype=torch.float64)[2].expand(2, 6)
    gradient, _ = objective.gradients(learner.layout, online, targets, batch._replace(weights=one_sample))
    alone = batch.map(lambda field: field[:1, 2:3])
    expected, _ = objective.select(slice(0, 1)).gradients(learner.layout, online[:1], targets[:1, 2:3], alone)
    torch.testing.assert_close(gradient[0], expected[0] / 6)


# --- target network ---


def test_the_target_is_constant_between_copies_and_equal_to_the_online_network_after_one():
    learner = learner_of([Arm("dqn"), Arm("gram", 0.1)], target_period_updates=3)
    held = learner.state.target.clone()
    assert torch.equal(held, learner.state.online)
    for number in range(1, 8):
        train(learner, [0, 1], 1, first=number)
        if number % 3 == 0:
            held = weights(learner)
        assert torch.equal(learner.state.target, held)
        assert learner.updates == number == int(learner.state.updates[0])


# --- population ---

MEMBERS = [
    (11, Arm("gram", 0.5), 3e-3, 3),
    (12, Arm("dqn"), 1e-3, 2),
    (13, Arm("gram", 0.1, centered=False), 3e-3, 3),
    (14, Arm("decor", 0.2), 2e-3, 1),
    (15, Arm("dr3", 0.1), 3e-3, 3),
    (16, Arm("gram", 0.3), 1e-3, 3),
]


def run_choices_and_weights(members, spec, updates=200):
    """Let a population act and learn on its own batches; actions and weights of each run by its seed."""
    seeds, arms, rates, actions = zip(*members, strict=True)
    config = LearnerConfig(learning_rate=rates, target_period_updates=20)
    learner = Learner(spec, config, seeds, arms, actions, dtype=torch.float64)
    choices = []
    for number in range(updates):
        batch = batch_of(spec, seeds, number, actions=actions)
        learner.update(batch)
        choices.append(learner.act(batch.observations, epsilon=0.5, agent_step=number))
    chosen = torch.stack(choices)
    return {seed: (chosen[:, run], learner.state.online[run]) for run, seed in enumerate(seeds)}


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_a_run_is_the_same_alone_and_in_any_population_and_position(kind):
    spec = SPECS[kind]
    together = run_choices_and_weights(MEMBERS, spec)
    populations = [[member] for member in MEMBERS] + [MEMBERS[::-1], MEMBERS[2:5]]
    for members in populations:
        for seed, (choices, final) in run_choices_and_weights(members, spec).items():
            assert torch.equal(choices, together[seed][0])
            assert (final - together[seed][1]).abs().max() <= 1e-9


def test_one_seed_gives_the_same_bits_again_and_another_gives_others():
    first, again, other = (weights(train(learner_of([Arm("gram", 0.1)], [seed]), [0], 5)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


# --- divergence ---


def spoil_rewards(batch, run, value):
    rewards = batch.rewards.clone()
    rewards[run, 2] = value
    return batch._replace(rewards=rewards, discounts=torch.zeros_like(batch.discounts))


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan, 3e38])
@pytest.mark.parametrize("spec", [MLP, SPECS["minatar"]], ids=["mlp", "minatar"])
def test_a_diverged_run_is_marked_and_frozen_and_the_others_are_untouched_to_the_bit(spec, value):
    arms, seeds = [Arm("dqn"), Arm("gram", 0.1), Arm("gram", 0.2)], [0, 1, 2]
    options = {"spec": spec, "dtype": torch.float32, "loss": "squared", "max_grad_norm": 10.0, "weight_decay": 0.01}
    sick, healthy = (learner_of(arms, target_period_updates=5, **options) for _ in range(2))
    frozen = None
    for number in range(1, 13):
        batch = batch_of(spec, seeds, number)
        if number == 4:
            frozen = {name: tensor[1].clone() for name, tensor in sick.state_dict().items() if name != "updates"}
            sick.update(spoil_rewards(batch, 1, value))
            healthy.update(spoil_rewards(batch, 1, 0.0))
        else:
            sick.update(batch)
            healthy.update(batch)
    assert sick.diverged_at.tolist() == [-1, 4, -1]
    state, expected = sick.state_dict(), healthy.state_dict()
    for name, before in frozen.items():
        assert name == "diverged_at" or torch.equal(state[name][1], before)
        assert torch.equal(state[name][[0, 2]], expected[name][[0, 2]])
    assert int(state["updates"]) == 12


def test_a_learning_rate_that_is_too_large_diverges_that_run_alone():
    seeds = [0, 1, 2]
    rates = {"wild": (1e-3, 1e30, 1e-3), "tame": (1e-3, 1e-3, 1e-3)}
    wild, tame = (
        train(learner_of([Arm("gram", 0.1)] * 3, dtype=torch.float32, learning_rate=rate), seeds, 10)
        for rate in rates.values()
    )
    diverged_at = wild.diverged_at.tolist()
    assert (diverged_at[0], diverged_at[2]) == (-1, -1)
    assert 1 < diverged_at[1] <= 3
    assert wild.state.online.isfinite().all()
    assert torch.equal(wild.state.online[[0, 2]], tame.state.online[[0, 2]])


def test_weights_that_are_not_finite_are_seen_even_where_the_loss_is():
    learner = learner_of([Arm("dqn"), Arm("dqn")])
    learner.layout.views(learner.state.online)["body.fc2.bias"][1, 0] = -torch.inf  # the rectifier hides it
    losses = learner.update(batch_of(MLP, [0, 1]))
    assert losses.total.isfinite().all()
    assert learner.diverged_at.tolist() == [-1, 1]


def test_a_penalty_that_is_not_finite_marks_its_run_alone():
    learner = learner_of([Arm("gram", 1e300), Arm("gram", 0.1), Arm("gram", 0.0)], dtype=torch.float64)
    learner.state.online.mul_(1e30)
    learner.state.online[1:].mul_(1e-30)
    learner.update(batch_of(MLP, [0, 1, 2]))
    assert learner.diverged_at.tolist() == [1, -1, -1]


def test_a_diverged_run_still_acts_within_its_own_actions():
    learner = learner_of([Arm("dqn"), Arm("dqn")], action_counts=[3, 2])
    learner.state.online[1] = torch.nan
    actions = learner.act(batch_of(MLP, [0, 1]).observations, 0.0, 0)
    assert ((actions[1] >= 0) & (actions[1] < 2)).all()


# --- acting ---


def test_epsilon_zero_is_greedy():
    learner = learner_of([Arm("dqn"), Arm("gram", 0.1)])
    head = learner.layout.views(learner.state.online)["head.weight"]
    head.copy_(torch.randn(head.shape, generator=torch.Generator().manual_seed(0)))  # best actions of all kinds
    observations = batch_of(MLP, [0, 1], size=50).observations
    values = forward(MLP, learner.layout.views(learner.state.online), observations).values
    for step in range(20):
        assert torch.equal(learner.act(observations, 0.0, step), values.argmax(2))
    assert len(values.argmax(2).unique()) > 1


def test_epsilon_one_is_uniform_over_the_runs_own_actions():
    spec = NetworkSpec("mlp", (5,), actions=18, features_dim=8)
    counts = [18, 3, 6]
    learner = learner_of([Arm("dqn")] * 3, spec=spec, action_counts=counts)
    observations = torch.zeros(3, 50, 5)
    actions = torch.stack([learner.act(observations, 1.0, step) for step in range(400)], dim=1).flatten(1)
    for run, count in enumerate(counts):
        observed = torch.bincount(actions[run], minlength=count).double()
        assert len(observed) == count
        expected = actions.shape[1] / count
        statistic = ((observed - expected) ** 2 / expected).sum().item()
        # 20,000 draws; a uniform choice exceeds the bound with probability 1e-6
        assert statistic < chi2.isf(1e-6, count - 1)


def test_random_actions_are_uniform_and_as_frequent_as_epsilon_for_a_small_epsilon_of_each_run():
    learner = learner_of([Arm("dqn")] * 2)
    learner.layout.views(learner.state.online.zero_())["head.bias"].copy_(torch.tensor([0.0, 0.0, 1.0]))
    epsilon = torch.tensor([0.03, 0.3])
    steps, environments = 400, 100
    actions = torch.stack([learner.act(torch.zeros(2, environments, 5), epsilon, s) for s in range(steps)], 1).flatten(
        1
    )
    for run in range(2):
        observed = torch.bincount(actions[run], minlength=3).double()
        share = float(epsilon[run]) / 3
        expected = torch.tensor([share, share, 1 - 2 * share]).double() * steps * environments
        assert ((observed - expected) ** 2 / expected).sum().item() < chi2.isf(1e-6, 2)


def test_exploration_differs_between_steps_environments_and_seeds():
    learner = learner_of([Arm("dqn")] * 2, [0, 1])
    observations = torch.zeros(2, 64, 5)
    base = learner.act(observations, 1.0, 0)
    assert torch.equal(base, learner.act(observations, 1.0, 0))
    assert torch.equal(base, learner.act(observations, 1.0, torch.tensor(0)))
    assert not torch.equal(base, learner.act(observations, 1.0, 1))
    assert not torch.equal(base[0], base[1])
    assert len(base[0].unique()) == 3


# --- state ---


def test_learning_goes_on_from_a_loaded_state_as_if_it_had_never_stopped():
    arms = [Arm("dqn"), Arm("gram", 0.1)]
    whole = train(learner_of(arms, target_period_updates=4), [0, 1], 10)
    first = train(learner_of(arms, target_period_updates=4), [0, 1], 5)
    second = learner_of(arms, [8, 9], target_period_updates=4)
    second.load_state_dict(first.state_dict())
    train(second, [0, 1], 5, first=5)
    assert all(torch.equal(a, b) for a, b in zip(whole.state, second.state, strict=True))
    assert second.updates == 10


def test_a_state_dict_is_a_contiguous_copy():
    learner = learner_of([Arm("dqn"), Arm("dqn")])
    state = learner.state_dict()
    before = state["online.head.weight"].clone()
    train(learner, [0, 1], 1)
    assert torch.equal(state["online.head.weight"], before)
    assert all(tensor.is_contiguous() for tensor in state.values())
    assert len({tensor.untyped_storage().data_ptr() for tensor in state.values()}) == len(state)


def test_the_state_of_one_run_makes_a_population_of_one():
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("dqn")]
    learner = train(learner_of(arms), [0, 1, 2], 3)
    alone = learner_of([arms[1]], [1])
    alone.load_state_dict(learner.run_state(1))
    train(learner, [0, 1, 2], 20, first=3)
    train(alone, [1], 20, first=3)
    assert (alone.state.online[0] - learner.state.online[1]).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("online.head.bias"), "'online.head.bias' is missing"),
        (lambda state: state.update(extra=torch.zeros(1)), "'extra' is not known here"),
        (
            lambda state: state.update({"mean.head.bias": torch.zeros(1, 4)}),
            r"'mean.head.bias' is torch.float32 \[1, 4\], not torch.float64 \[1, 3\]",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_an_error_and_changes_nothing(change, message):
    learner = learner_of([Arm("dqn")])
    before = learner.state_dict()
    state = train(learner_of([Arm("dqn")]), [0], 1).state_dict()
    change(state)
    with pytest.raises(UserError, match=message):
        learner.load_state_dict(state)
    assert all(torch.equal(before[name], tensor) for name, tensor in learner.state_dict().items())
