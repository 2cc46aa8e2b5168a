"""Updates with factors in bfloat16 against those in float64, and against themselves."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.agent.networks import NetworkSpec, by_run, convolutions, forward
from gramian.deep.engines import pipeline
from gramian.deep.engines.acting import actors
from gramian.deep.engines.halves import HalvedUpdate
from gramian.deep.engines.rounding import RoundedUpdate, caution
from gramian.deep.training.trainer import Trainer, make_environments
from tests.deep.populations import EVERY_ARM, SPECS, alone_and_among_others, batch_of, update_in_threads
from tests.deep.test_pipeline import short, trained

KINDS = ("nature", "dopamine")
ATARI = {kind: NetworkSpec(kind, (4, 84, 84), actions=6, features_dim=512) for kind in KINDS}
ROUNDED = LearnerConfig(bf16=True)
ARMS = [Arm("dqn"), Arm("gram", 0.1), Arm("decor", 0.1), Arm("dr3", 0.001)]
HAS_UNITS = caution(ATARI["nature"], torch.device("cpu"), torch.float32) is None
CLOSE = 6e-3 if HAS_UNITS else 1.5e-2
"""Where a CPU cannot multiply bfloat16, torch rounds the sums in a convolution's backward pass on the way, too."""


class Rounded(torch.autograd.Function):
    """float64 rounded to bfloat16, and its gradient too."""

    @staticmethod
    def forward(_, values):
        return values.bfloat16().double()

    @staticmethod
    def backward(_, slopes):
        return slopes.bfloat16().double()


def rounded_once(values):
    """float64 rounded to bfloat16, but not its gradient."""
    return values + (values.bfloat16().double() - values).detach()


def obvious_forward(spec, own, observations):
    """Q-values and features in float64, with rounded factors; the slow, obvious way."""
    x = observations.double()
    for number, (_, size, stride) in enumerate(convolutions(spec), start=1):
        weight, bias = own[f"body.conv{number}.weight"], own[f"body.conv{number}.bias"]
        weight = rounded_once(weight / 255 if number == 1 else weight)
        x = functional.conv2d(spec.padded(x, size, stride), weight, rounded_once(bias), stride)
        x = Rounded.apply(x).relu()
    x = Rounded.apply(x.flatten(1) @ rounded_once(own["body.fc1.weight"]).mT) + own["body.fc1.bias"]
    if spec.layer_norm:
        x = functional.layer_norm(x, x.shape[1:], own["body.fc1.norm.weight"], own["body.fc1.norm.bias"])
    features = x.relu()
    return features @ own["head.weight"].mT + own["head.bias"], features


def obvious_gradients(spec, config, arm, batch):
    learner = Learner(spec, config, [0], [arm], dtype=torch.float64)
    (own,) = by_run(learner.layout.views(learner.state.online))
    own = {name: parameter.clone().requires_grad_() for name, parameter in own.items()}
    values, features = obvious_forward(spec, own, batch.observations[0])
    next_values, next_features = obvious_forward(spec, own, batch.next_observations[0])  # the target is a copy
    choosers = next_values.detach() if config.double_q else None
    targets = learner.objective.bootstrap(
        next_values.detach().unsqueeze(0), None if choosers is None else choosers.unsqueeze(0), batch
    )
    td = functional.huber_loss if config.loss == "huber" else functional.mse_loss
    loss = td(values.gather(1, batch.actions[0].unsqueeze(1)).squeeze(1), targets[0])
    arms = learner.objective.arms
    penalty = arms.penalties(features.unsqueeze(0), lambda _: next_features.unsqueeze(0))
    (loss + (arms.kappas * penalty).sum()).backward()
    return {name: parameter.grad for name, parameter in own.items()}


def first_gradients(spec, config, arm, batch, dtype=torch.float32):
    """The gradients of the first update: Adam's mean is a tenth of them then."""
    learner = Learner(spec, config, [0], [arm], dtype=dtype)
    learner.update(batch)
    return {name: 10 * mean[0].double() for name, mean in learner.layout.views(learner.state.mean).items()}


def differences(ours, theirs):
    """The largest relative error of a parameter's gradient, and the smallest cosine."""
    pairs = [(ours[name].flatten(), wanted.flatten()) for name, wanted in theirs.items()]
    error = max(((one - other).norm() / other.norm()).item() for one, other in pairs)
    return error, min(torch.cosine_similarity(one, other, dim=0).item() for one, other in pairs)


CONFIGS = {
    "huber": ROUNDED,
    "double_q": replace(ROUNDED, double_q=True),
    "squared": replace(ROUNDED, loss="squared"),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("arm", ARMS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_rounded_factors(kind, arm, config):
    batch = batch_of(ATARI[kind], [0], size=32)
    error, cosine = differences(
        first_gradients(ATARI[kind], config, arm, batch), obvious_gradients(ATARI[kind], config, arm, batch)
    )
    assert error < CLOSE
    assert cosine > 0.9999


def test_gradients_of_a_normalised_layer_are_those_of_rounded_factors():
    spec = replace(ATARI["nature"], layer_norm=True)
    batch = batch_of(spec, [0], size=32)
    error, cosine = differences(
        first_gradients(spec, ROUNDED, ARMS[1], batch), obvious_gradients(spec, ROUNDED, ARMS[1], batch)
    )
    assert error < CLOSE
    assert cosine > 0.9999


@pytest.mark.parametrize("arm", ARMS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_point_where_those_of_float64_do(kind, arm):
    batch = batch_of(ATARI[kind], [0], size=32)
    error, cosine = differences(
        first_gradients(ATARI[kind], ROUNDED, arm, batch),
        first_gradients(ATARI[kind], LearnerConfig(), arm, batch, torch.float64),
    )
    # Rectifiers near zero go the other way: any network with these roundings is as far from float64.
    assert error < 0.15
    assert cosine > 0.99


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_halves_of_any_size_are_rounded(kind, size):
    arms = [arm for arm in EVERY_ARM if arm.minimum_batch_size <= size]
    learner = Learner(SPECS[kind], ROUNDED, list(range(len(arms))), arms)
    before = learner.state.online.clone()
    learner.update(batch_of(SPECS[kind], list(range(len(arms))), size=size))
    assert learner.diverged_at.eq(-1).all()
    assert (learner.state.online != before).any(1).all()


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("double_q", [False, True])
def test_rounded_halves_in_threads_give_the_same_bits(workers, double_q):
    spec, seeds = SPECS["dopamine"], list(range(len(EVERY_ARM)))
    config = LearnerConfig(target_period_updates=2, bf16=True, double_q=double_q)
    in_turn, threaded = (Learner(spec, config, seeds, EVERY_ARM) for _ in range(2))
    with ThreadPoolExecutor(workers) as threads:
        for number in range(1, 6):
            batch = batch_of(spec, seeds, number, size=17)
            in_turn.update(batch)
            update_in_threads(threaded, batch, number, threads, workers)
    for name, tensor in in_turn.state_dict().items():
        assert torch.equal(threaded.state_dict()[name], tensor), name


@pytest.mark.parametrize("threads", [2, 3])
def test_rounded_updates_give_the_same_bits_whatever_number_of_threads_torch_has(threads):
    learners = [Learner(ATARI["nature"], ROUNDED, [0], [Arm("gram", 0.1)]) for _ in range(2)]
    before = torch.get_num_threads()
    try:
        for learner, count in zip(learners, (1, threads), strict=True):
            torch.set_num_threads(count)
            for number in range(2):
                learner.update(batch_of(ATARI["nature"], [0], number, size=32))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(learners[0].state.online, learners[1].state.online)


def test_a_rounded_run_has_the_same_bits_alone_and_among_others():
    for alone, among_others in alone_and_among_others(ATARI["nature"], ROUNDED, ARMS[:2], updates=2, size=32):
        assert torch.equal(alone, among_others)


def test_a_target_network_that_is_copied_or_loaded_is_rounded_anew():
    spec = SPECS["nature"]
    often = Learner(spec, LearnerConfig(learning_rate=0.01, target_period_updates=2, bf16=True), [0], [Arm("dqn")])
    for number in range(3):
        often.update(batch_of(spec, [0], number))
    fresh = Learner(spec, often.config, [7], [Arm("dqn")])
    fresh.update(batch_of(spec, [0], 9))  # has rounded another target network
    fresh.load_state_dict(often.state_dict())
    for number in range(3, 6):
        for learner in (often, fresh):
            learner.update(batch_of(spec, [0], number))
    assert torch.equal(often.state.online, fresh.state.online)


@pytest.mark.parametrize(
    ("spec", "config", "dtype", "expected"),
    [
        (SPECS["nature"], ROUNDED, torch.float32, RoundedUpdate),
        (SPECS["dopamine"], ROUNDED, torch.float32, RoundedUpdate),
        (SPECS["nature"], LearnerConfig(), torch.float32, HalvedUpdate),
        (SPECS["nature"], ROUNDED, torch.float64, HalvedUpdate),
    ],
)
def test_atari_s_networks_in_float32_round_where_they_are_told_to(spec, config, dtype, expected):
    (run,) = Learner(spec, config, [0], [Arm("dqn")], dtype=dtype).run_updates
    assert type(run) is expected


@pytest.mark.parametrize("kind", ["mlp", "minatar"])
def test_other_networks_do_not_round(kind):
    learners = [Learner(SPECS[kind], LearnerConfig(bf16=bf16), [0], [Arm("gram", 0.1)]) for bf16 in (False, True)]
    for learner in learners:
        learner.update(batch_of(SPECS[kind], [0]))
    assert torch.equal(learners[0].state.online, learners[1].state.online)


@pytest.mark.parametrize(
    ("flags", "device", "dtype", "words"),
    [
        ("flags : avx512f avx512_bf16 avx512vl", "cpu", torch.float32, None),
        ("flags : amx_bf16", "cpu", torch.float32, None),
        ("Features : asimd bf16 i8mm", "cpu", torch.float32, None),
        ("flags : avx2 avx512f", "cpu", torch.float32, "this CPU cannot multiply bfloat16"),
        ("flags : avx512_bf16", "cuda", torch.float32, "here it changes nothing"),
        ("flags : avx512_bf16", "cpu", torch.float64, "here it changes nothing"),
    ],
)
def test_one_who_rounds_in_vain_is_told_so(tmp_path, flags, device, dtype, words):
    (tmp_path / "cpuinfo").write_text(flags)
    said = caution(SPECS["nature"], torch.device(device), dtype, tmp_path / "cpuinfo")
    assert said is None if words is None else words in said
    assert caution(SPECS["nature"], torch.device("cpu"), torch.float32, tmp_path / "none") is None


@pytest.mark.parametrize("kind", KINDS)
def test_rounded_actors_follow_their_weights_and_choose_nearly_as_others_do(kind):
    spec = ATARI[kind]
    learner = Learner(spec, LearnerConfig(), [0, 1], [Arm("dqn")] * 2)
    weights = learner.state.online.clone()
    observations = torch.zeros(2, 100, *spec.observation_shape, dtype=torch.uint8)
    values = actors(spec, learner.layout, weights, observations, bf16=True)
    for number in range(2):
        observations.copy_(batch_of(spec, [0, 1], number, size=100).observations)
        exact = forward(spec, learner.layout.views(weights), observations).values
        rounded = values()
        assert (rounded - exact).norm() < 1e-2 * exact.norm()
        assert (rounded.argmax(2) == exact.argmax(2)).double().mean() > 0.95
        weights.copy_(Learner(spec, LearnerConfig(), [2, 3], [Arm("dqn")] * 2).state.online)


@pytest.fixture(scope="module")
def rounded_config():
    config = short("breakout", "author")
    return replace(config, settings=replace(config.settings, bf16=True))


def test_a_rounded_population_learns_the_same_bits_in_threads_as_without(monkeypatch, rounded_config):
    weights = {}
    for cores in (1, 2, 3):
        monkeypatch.setattr(pipeline, "cores", lambda cores=cores: cores)
        trainer, episodes = trained(rounded_config, dtype=torch.float32)
        weights[cores] = trainer.learner.state.online, trainer.updates, episodes
    assert all(torch.equal(weights[1][0], other[0]) and weights[1][1:] == other[1:] for other in weights.values())


def test_a_rounded_population_learns_nearly_what_others_do(rounded_config):
    rounded, _ = trained(rounded_config, dtype=torch.float32)
    whole, _ = trained(
        replace(rounded_config, settings=replace(rounded_config.settings, bf16=False)), dtype=torch.float32
    )
    ours, theirs = rounded.learner.state.online, whole.learner.state.online
    assert not torch.equal(ours, theirs)
    assert (ours - theirs).norm() < 1e-2 * theirs.norm()


def test_the_actors_of_a_rounded_population_round(rounded_config):
    trainer, _ = trained(rounded_config, dtype=torch.float32)
    learner, stack = trainer.learner, trainer.stack
    with torch.no_grad():
        seen = trainer.pipeline._actors[0]()
        rounded, whole = (
            actors(learner.spec, learner.layout, trainer.pipeline.acting, stack.observations, bf16=bf16)()
            for bf16 in (True, False)
        )
    assert torch.equal(seen, rounded)
    assert not torch.equal(seen, whole)


def test_a_resumed_rounded_population_is_the_one_that_was_never_interrupted(rounded_config):
    whole, _ = trained(rounded_config, dtype=torch.float32)
    first, second = (Trainer(rounded_config, make_environments(rounded_config)) for _ in range(2))
    for _ in range(118):
        first.step()
    state, runs = first.state(), list(first.run_states())
    segments = [part for _, _, part in first.segments(None)]
    for _ in range(110):  # has learned and acted with other weights
        second.step()
    second.restore(state, runs, segments)
    while not second.done:
        second.step()
    assert second.updates == whole.updates
    assert torch.equal(second.learner.state.online, whole.learner.state.online)
    assert torch.equal(second.pipeline.acting, whole.pipeline.acting)
    for trainer in (first, second):
        trainer.close()
