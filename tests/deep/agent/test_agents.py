"""Every head, with and without double Q, dueling and noise, against naive agents."""

from dataclasses import replace

import pytest
import torch

from gramian.deep.agent import heads
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.heads import Head
from gramian.deep.agent.learner import Learner, LearnerConfig, update
from gramian.deep.agent.networks import forward, init
from tests.deep.naive import NaiveAgent, atoms, naive_projection, naive_quantile_loss, own_part
from tests.deep.populations import EVERY_ARM, SPECS, batch_of

HEADS = {
    "dqn": Head(),
    "c51": Head("categorical", 7, (-3.0, 4.0)),
    "qr": Head("quantile", 5),
    "iqn": Head("implicit", 4, target_size=3, acting_size=5),
}
AGENTS = {
    **HEADS,
    "dueling-dqn": Head(dueling=True),
    "noisy-dqn": Head(noisy=True),
    "full-rainbow": replace(HEADS["c51"], dueling=True, noisy=True),
    "full-qr": replace(HEADS["qr"], dueling=True, noisy=True),
    "full-iqn": replace(HEADS["iqn"], dueling=True, noisy=True),
}
ARMS = [Arm("none"), Arm("gram", 0.5), Arm("dr3", 0.2)]
every_agent = pytest.mark.parametrize("head", AGENTS.values(), ids=AGENTS)


def spec_of(head, kind="mlp"):
    return replace(SPECS[kind], head=head)


def learner_of(head, arms=ARMS, kind="mlp", counts=None, seeds=None, dtype=torch.float64, layer_norm=False, **options):
    config = LearnerConfig(**{"learning_rate": 3e-3, "target_period_updates": 4} | options)
    spec = replace(spec_of(head, kind), layer_norm=layer_norm)
    return Learner(spec, config, seeds or list(range(len(arms))), arms, counts, dtype=dtype)


def batches(learner, count, counts=None, weighted=False):
    for number in range(count):
        batch = batch_of(learner.spec, learner.seeds.tolist(), number, actions=counts, scale=2.0)
        weights = torch.rand(batch.rewards.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
        yield batch._replace(weights=weights) if weighted else batch


def compare(learner, updates, counts=None, weighted=False, tolerance=1e-9):
    """Train the population and naive agents side by side; every loss, weight and greedy action must agree."""
    counts = counts or [learner.spec.actions] * len(learner.seeds)
    naive = [NaiveAgent(learner, run, count) for run, count in enumerate(counts)]
    close = {"rtol": tolerance, "atol": tolerance}
    for batch in batches(learner, updates, counts, weighted):
        losses = learner.update(batch)
        for run, one in enumerate(naive):
            td, penalty, samples = one.update(own_part(batch, run))
            torch.testing.assert_close(losses.components["td"][run], td, **close)
            torch.testing.assert_close(losses.components["penalty"][run], penalty, **close)
            torch.testing.assert_close(losses.total[run], td + penalty, **close)
            torch.testing.assert_close(losses.samples[run], samples, **close)
    state = learner.state_dict()
    for run, one in enumerate(naive):
        for role, network in (("online", one.online), ("target", one.target)):
            for name, parameter in network.named().items():
                ours = state[f"{role}.{name}"][run]
                torch.testing.assert_close(ours[: len(parameter)], parameter.detach(), **close, msg=f"{run} {name}")
                assert (ours[len(parameter) :] == 0).all()
    assert (learner.diverged_at == -1).all()
    observations = batch_of(learner.spec, learner.seeds.tolist(), 99).observations
    chosen = learner.greedy(observations, agent_step=7)
    assert chosen.tolist() == [one.act(observations[run], 7) for run, one in enumerate(naive)]


@every_agent
@pytest.mark.parametrize("double_q", [False, True])
def test_updates_equal_those_of_naive_agents(head, double_q):
    compare(learner_of(head, double_q=double_q), 20, weighted=double_q)


@every_agent
def test_runs_with_fewer_actions_equal_naive_agents_with_a_smaller_head(head):
    compare(learner_of(head, counts=[3, 2, 1]), 6, [3, 2, 1])


@pytest.mark.parametrize("name", ["c51", "qr", "iqn", "full-rainbow"])
def test_convolutional_agents_equal_naive_agents(name):
    few = [Arm("none"), Arm("norm", 0.5), Arm("dr3", 0.2)]  # the naive Gram penalty is a sum over pairs of features
    compare(learner_of(AGENTS[name], few, kind="minatar"), 3)


RATES = {"learning_rate": tuple(3e-3 * (1 + run / 2) for run in range(len(EVERY_ARM)))}
SOME_ARMS = [Arm("dqn"), Arm("gram", 0.5), Arm("decor", 0.2), Arm("dr3", 0.1)]
DQN_CASES = {
    **{f"{kind} network": {"kind": kind, "arms": SOME_ARMS} for kind in ("minatar", "nature", "dopamine")},
    **{f"layer norm, {kind}": {"kind": kind, "layer_norm": True} for kind in ("mlp", "minatar")},
    "layer norm, implicit": {"head": HEADS["iqn"], "layer_norm": True},
    "weight decay": {"weight_decay": 0.1},
    "gradient clipping": {"max_grad_norm": 0.05, "arms": [Arm("dqn"), Arm("gram", 5.0)]},
}


@pytest.mark.parametrize("loss", ["huber", "squared"])
@pytest.mark.parametrize("double_q", [False, True])
def test_every_arm_in_one_population_equals_naive_agents(loss, double_q):
    compare(learner_of(Head(), EVERY_ARM, loss=loss, double_q=double_q, **RATES), 10)


@pytest.mark.parametrize("arm", EVERY_ARM, ids=str)
def test_an_arm_alone_equals_a_naive_agent(arm):
    compare(learner_of(Head(), [arm]), 10)


@pytest.mark.parametrize("case", DQN_CASES.values(), ids=DQN_CASES)
def test_every_network_and_option_equals_naive_agents(case):
    compare(learner_of(**{"head": Head(), "arms": [Arm("dqn"), Arm("gram", 0.1), Arm("dr3", 0.1)]} | case), 10)


def test_float32_equals_naive_agents_within_its_precision():
    arms = [Arm("dqn"), Arm("gram", 0.1), Arm("decor", 0.1)]
    compare(learner_of(Head(), arms, kind="minatar", dtype=torch.float32), 10, tolerance=2e-5)


def test_the_full_nature_network_equals_a_naive_agent():
    spec = replace(SPECS["nature"], observation_shape=(4, 84, 84), actions=6, features_dim=512)
    arms = [Arm("dqn"), Arm("l2", 0.01)]
    compare(Learner(spec, LearnerConfig(), [0, 1], arms, dtype=torch.float64), 1)


@every_agent
def test_a_run_is_the_same_alone_and_among_others(head):
    together = learner_of(head)
    for batch in batches(together, 10):
        together.update(batch)
    alone = learner_of(head, [ARMS[1]], seeds=[1])
    for batch in batches(alone, 10):
        alone.update(batch)
    assert all(
        torch.equal(mine[0], all_of_them[1]) for mine, all_of_them in zip(alone.state, together.state, strict=True)
    )


@every_agent
def test_kappa_zero_is_the_plain_agent_bit_for_bit(head):
    plain, zero = (learner_of(head, [Arm("none"), arm], dtype=torch.float32) for arm in (Arm("none"), Arm("gram", 0.0)))
    for batch in batches(plain, 10):
        plain.update(batch)
        zero.update(batch)
    assert all(torch.equal(one, other) for one, other in zip(plain.state, zero.state, strict=True))


@every_agent
def test_all_runs_in_one_pass_have_the_loss_and_the_gradients_of_one_after_the_other(head):
    """What a GPU computes at once, a CPU computes run by run."""
    learner = learner_of(head, counts=[3, 2, 3])
    online, target, *_ = learner.state
    (batch,) = batches(learner, 1, [3, 2, 3])
    counter = learner.state.updates.unsqueeze(1)

    def gradients(objective, runs):
        views = learner.layout.views
        part, own = batch.map(lambda field: field[runs]), counter[runs]
        targets = objective.targets(views(online[runs]), views(target[runs]), part, own)
        return objective.gradients(learner.layout, online[runs], targets, part, own)

    together, losses = gradients(learner.objective, slice(None))
    for run in range(3):
        runs = slice(run, run + 1)
        alone, own = gradients(learner.objective.select(runs), runs)
        torch.testing.assert_close(together[runs], alone, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(losses.samples[runs], own.samples, rtol=1e-10, atol=1e-10)


def test_a_scalar_networks_parameters_have_the_names_they_always_had():
    names = {"body.fc1.weight", "body.fc1.bias", "body.fc2.weight", "body.fc2.bias", "head.weight", "head.bias"}
    assert set(init(SPECS["mlp"], [0])) == names


@pytest.mark.parametrize(("kind", "d"), [("mlp", 8), ("minatar", 16 * 8 * 8), ("nature", 64), ("dopamine", 64 * 25)])
def test_the_features_of_iqn_precede_its_quantiles(kind, d):
    spec = spec_of(HEADS["iqn"], kind)
    observations = batch_of(spec, [0]).observations
    parameters = init(spec, [0])
    one, other = (forward(spec, parameters, observations, torch.rand(1, n)) for n in (2, 3))
    assert spec.body_outputs == d
    assert one.features.shape == (1, 6, d)
    assert torch.equal(one.features, other.features)


def test_evaluation_has_neither_noise_nor_random_quantiles():
    spec = spec_of(AGENTS["full-iqn"])
    observations, parameters = batch_of(spec, [0]).observations, init(spec, [0])
    midpoints = (torch.arange(5) + 0.5).unsqueeze(0) / 5
    expected = forward(spec, parameters, observations, midpoints).values
    assert torch.equal(forward(spec, parameters, observations).values, expected)
    silent = {name: torch.zeros_like(value) if ".sigma." in name else value for name, value in parameters.items()}
    assert torch.equal(forward(spec, silent, observations).values, expected)


@pytest.mark.parametrize("name", ["iqn", "noisy-dqn"])
def test_every_agent_step_and_every_seed_has_draws_of_its_own(name):
    spec = spec_of(AGENTS[name])
    learner = Learner(spec, LearnerConfig(), [0, 1], ARMS[:2])
    model, ones = learner.objective.model, learner.layout.views(torch.ones_like(learner.state.online))

    def drawn(purpose, counter):
        taus = model.taus(purpose, counter, torch.float64)
        return model.noisy(ones, purpose, counter)["head.weight"] if taus is None else taus

    seen = [drawn(purpose, counter)[run].flatten() for purpose in (0, 3) for counter in (0, 1) for run in (0, 1)]
    assert len({tuple(values.tolist()) for values in seen}) == 8
    assert torch.equal(drawn(0, 1), drawn(0, torch.tensor(1)))


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_and_the_losses_of_distributions_equal_brute_force(seed):
    generator = torch.Generator().manual_seed(seed)
    head = Head("categorical", 7, (-3.0, 4.0))
    logits, other = (4 * torch.randn(1, 1, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    reward, discount = (torch.rand(2, generator=generator, dtype=torch.float64) * 4 - 2).view(2, 1, 1)
    target = heads.targets(head, reward, discount, logits)
    places = [float(reward + discount * z) for z in atoms(head)]
    expected = naive_projection(head, places, logits[0, 0].softmax(0))
    torch.testing.assert_close(target[0, 0], expected)
    assert target.sum().item() == pytest.approx(1)
    loss = heads.td_losses(head, "huber", other, None, target)
    torch.testing.assert_close(loss[0, 0], -(expected * other[0, 0].log_softmax(0)).sum())

    quantiles, targets = torch.randn(1, 1, 5, generator=generator), torch.randn(1, 1, 4, generator=generator) * 3
    taus = torch.rand(1, 5, generator=generator)
    expected = naive_quantile_loss(quantiles[0, 0], taus[0], targets[0, 0])
    torch.testing.assert_close(heads.quantile_huber(quantiles, taus, targets)[0, 0], expected)


def test_a_projection_keeps_the_mean_within_the_support_and_clips_beyond_it():
    head = Head("categorical", 11, (-5.0, 5.0))
    probabilities = torch.rand(20, 11, dtype=torch.float64).softmax(1)
    places = torch.rand(20, 11, dtype=torch.float64) * 10 - 5
    torch.testing.assert_close(
        heads.expected(head, heads.project(head, places, probabilities)), (places * probabilities).sum(1)
    )
    far = heads.project(head, places + 100, probabilities)
    torch.testing.assert_close(far[:, -1], torch.ones(20, dtype=torch.float64))


@every_agent
def test_the_diagnostics_have_the_mean_of_a_distribution(head):
    learner = learner_of(head)
    (batch,) = batches(learner, 1)
    numbers = learner.diagnose(batch)
    assert all(value.isfinite().all() for value in numbers.values())
    assert (numbers["grad_norm_head_penalty"] == 0).all()
    if not head.noisy and head.kind != "implicit":
        output = forward(learner.spec, learner.layout.views(learner.state.online), batch.observations)
        values = output.values.gather(2, batch.actions.unsqueeze(2)).squeeze(2)
        torch.testing.assert_close(numbers["q"], values.mean(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dqn", "full-rainbow", "full-qr", "full-iqn"]
)  # the full ones hold what the others do
def test_the_update_compiles_as_one_graph_and_gives_the_eager_numbers(name):
    eager, compiled = (learner_of(AGENTS[name], kind="minatar") for _ in range(2))
    step = torch.compile(update, fullgraph=True, dynamic=False)
    for batch in batches(eager, 2):
        update(eager.objective, eager.adam, eager.layout, eager.state, batch)
        step(compiled.objective, compiled.adam, compiled.layout, compiled.state, batch)
    torch.testing.assert_close(compiled.state.online, eager.state.online, rtol=1e-9, atol=1e-9)
    torch.compiler.reset()
