"""Every engine does the same steps in the same order: in threads, in parts, on the CPU and on a GPU."""

import contextlib
from collections import deque
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from gramian.deep import engines
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner, LearnerConfig
from gramian.deep.engines import compare, make_engine
from gramian.deep.engines.engine import Transition
from gramian.deep.envs import Environments
from gramian.deep.envs.observations import ObservationSpec
from gramian.deep.replay import Exponents
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.schedules import updates_at
from gramian.deep.training.trainer import Trainer, make_environments
from tests.deep.populations import SPECS

GAMES = [("minatar/breakout", "minatar", False), ("minatar/breakout", "minatar", True), ("breakout", "author", False)]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def config(envs_per_run=1, game="minatar/breakout", preset="minatar", sequential=False, prioritized=False):
    settings = replace(
        load_preset(preset),
        sequential=sequential,
        prioritized=prioritized,
        frames=400 if preset == "minatar" else 1600,
        prefill_agent_steps=100,
        replay_capacity=150,
        envs_per_run=envs_per_run,
        epsilon_decay_agent_steps=50,
        target_period_agent_steps=40,
    )
    return Config(preset, settings, population([game], [Arm("dqn"), Arm("gram", 0.1)], [0, 1]))


def short(game, preset, sequential=False, prioritized=False):
    settings = config(game=game, preset=preset, sequential=sequential, prioritized=prioritized)
    if preset != "author":
        return settings
    # Atari's network is large: two runs, and few steps
    return replace(settings, runs=settings.runs[::2], settings=replace(settings.settings, frames=520))


def trained(settings, environments=None, dtype=torch.float64, **options):
    trainer = Trainer(settings, environments or make_environments(settings), dtype=dtype, **options)
    episodes = []
    while not trainer.done:
        episodes += trainer.step()
    trainer.close()
    return trainer, episodes


def divided(settings):
    runs = settings.runs
    return Environments(
        [run.game for run in runs],
        [run.seed for run in runs],
        settings.settings.envs_per_run,
        settings.settings.environment,
        parts=2,
    )


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(("game", "preset", "prioritized"), GAMES)
def test_a_population_in_two_parts_learns_what_it_learns_as_a_whole(game, preset, prioritized, sequential):
    settings = short(game, preset, sequential, prioritized)
    whole, episodes = trained(settings)
    parts, same = trained(settings, divided(settings))
    assert same == episodes
    assert parts.updates == whole.updates
    assert torch.equal(parts.learner.state.online, whole.learner.state.online)
    assert torch.equal(parts.engine.acting, whole.engine.acting)


@pytest.mark.parametrize("available", [2, 3])
@pytest.mark.parametrize(("game", "preset", "prioritized"), [*GAMES, ("breakout", "author", True)])
def test_a_population_learns_the_same_bits_in_threads_as_without(monkeypatch, game, preset, prioritized, available):
    settings = short(game, preset, prioritized=prioritized)
    monkeypatch.setattr(engines, "cores", lambda: 1)
    in_turn, episodes = trained(settings, dtype=torch.float32)
    monkeypatch.setattr(engines, "cores", lambda: available)
    threaded, same = trained(settings, dtype=torch.float32)
    assert same == episodes
    assert threaded.updates == in_turn.updates
    for name, tensor in in_turn.learner.state_dict().items():
        assert torch.equal(threaded.learner.state_dict()[name], tensor), name


def on_two_cores(monkeypatch, prioritized=False):
    """A trainer of Atari on a CPU whose learner has a thread, and which has learned twice."""
    chosen = config(game="breakout", preset="author", prioritized=prioritized)
    chosen = replace(chosen, runs=chosen.runs[:1], settings=replace(chosen.settings, frames=560))
    monkeypatch.setattr(engines, "cores", lambda: 2)
    trainer = Trainer(chosen, make_environments(chosen))
    while trainer.updates < 2:
        trainer.step()
    return trainer


def fail(*_, **__):
    raise MemoryError("no memory")


def test_a_failure_of_the_learner_is_told_as_it_was(monkeypatch):
    trainer = on_two_cores(monkeypatch)
    trainer.learner.update_block = fail
    with pytest.raises(MemoryError, match="no memory"):
        deque(iter(trainer.step, None), maxlen=0)
    with pytest.raises(MemoryError, match="no memory"):
        trainer.close()
    assert trainer.environments._groups[0].games._players == []  # the emulators are gone nevertheless


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("where", [("sync_actor_weights",), ("_replay", "draw"), ("_replay", "fetch"), ()])
def test_a_learner_that_is_interrupted_goes_on_as_if_it_had_not_been(monkeypatch, where, prioritized):
    undisturbed, interrupted = (on_two_cores(monkeypatch, prioritized) for _ in range(2))
    owner = interrupted.engine
    for name in where[:-1]:
        owner = getattr(owner, name)
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        if where:
            patched.setattr(owner, where[-1], interrupt)
        interrupted.engine.draw()
    for trainer in (undisturbed, interrupted):
        while not trainer.done:
            trainer.step()
    assert torch.equal(interrupted.learner.state.online, undisturbed.learner.state.online)
    for trainer in (undisturbed, interrupted):
        trainer.close()


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(("make", "parts"), [(make_environments, {0}), (divided, {0, 1})])
def test_after_a_step_it_is_stored_and_all_parts_play_on_unless_they_wait_or_it_was_the_last(make, parts, sequential):
    settings = config(sequential=sequential)
    trainer = Trainer(settings, make(settings))
    while not trainer.done:
        trainer.step()
        assert trainer.replay.added == trainer.agent_steps
        assert trainer._choosing == (set() if sequential or trainer.done else parts)
        assert not trainer._under_way
    trainer.close()


def playing(games, arm, *, here):
    """A trainer of Atari for sixty steps, in which updates begin after the 32nd."""
    settings = replace(
        load_preset("smoke"), prefill_agent_steps=32, update_period_agent_steps=4, replay_capacity=200, frames=4 * 60
    )
    chosen = Config("smoke", settings, population(games, [arm], [0]))
    runs = [run.game for run in chosen.runs]
    return Trainer(chosen, Environments(runs, [0] * len(runs), parts=len(runs), here=here))


@pytest.mark.parametrize("here", [False, True])
def test_actions_are_waited_for_at_once_and_where_this_process_plays_when_it_is_about_to(here):
    trainer, events = playing(["pong"], Arm("dqn"), here=here), []

    def watched(name, work):
        def run(*arguments, **named):
            events.append(name)
            return work(*arguments, **named)

        return run

    for owner, names in (
        (trainer.engine, ("act", "chosen", "draw", "learn", "observe", "store")),
        (trainer.environments, ("send", "recv")),
    ):
        for name in names:
            setattr(owner, name, watched(name, getattr(owner, name)))
    while not trainer.updates:
        trainer.step()
    trainer.step()
    one_step = ["recv", "observe", "act", "chosen", "send", "store"]
    if here:
        one_step = ["chosen", "send", "recv", "observe", "act", "store"]
    assert events[events.index("draw") :] == ["draw", "learn", *one_step, *one_step]
    trainer.close()


def test_a_run_whose_learner_plays_is_the_same_run():
    states = []
    for here in (False, True):
        trainer = playing(["pong", "breakout"], Arm("gram", 0.1), here=here)
        while not trainer.done:
            trainer.step()
        assert trainer.updates > 4
        states.append([trainer.state(), *trainer.run_states()])
        trainer.close()
    for mine, theirs in zip(*states, strict=True):
        for name, tensor in mine.items():
            assert torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize("sequential", [False, True])
def test_a_population_in_two_parts_goes_on_from_a_state_whose_next_actions_are_under_way(sequential):
    settings = config(sequential=sequential)
    whole, _ = trained(settings)
    first = Trainer(settings, divided(settings), dtype=torch.float64)
    for _ in range(252):  # an update has just fallen due
        first.step()
    state, runs = first.state(), list(first.run_states())
    segments = [part for _, _, part in first.segments(None)]
    for environments in (divided(settings), make_environments(settings)):
        second = Trainer(settings, environments, dtype=torch.float64)
        for _ in range(3):
            second.step()
        second.restore(state, runs, segments)
        while not second.done:
            second.step()
        assert torch.equal(second.learner.state.online, whole.learner.state.online)


@needs_cuda
@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("replay_device", ["cuda", "cpu"])
@pytest.mark.parametrize("envs_per_run", [1, 3, 8])  # with 8 two updates are due in a step
@pytest.mark.parametrize(
    ("execution", "sequential"),
    [("eager", False), ("graphed", False), ("compiled", False), ("graphed", True), ("compiled", True)],
)
def test_a_population_on_a_gpu_learns_what_it_learns_on_the_host(
    execution, sequential, envs_per_run, replay_device, prioritized
):
    settings = config(envs_per_run, sequential=sequential, prioritized=prioritized)
    on_host, episodes = trained(settings)
    on_device, same = trained(
        settings, divided(settings), device="cuda", replay_device=replay_device, execution=execution
    )
    assert same == episodes
    assert on_device.updates == on_host.updates
    torch.testing.assert_close(on_device.learner.state.online.cpu(), on_host.learner.state.online, rtol=0, atol=1e-9)
    torch.testing.assert_close(on_device.engine.acting.cpu(), on_host.engine.acting, rtol=0, atol=1e-9)


@needs_cuda
@pytest.mark.parametrize("prioritized", [False, True])
def test_a_resumed_population_on_a_gpu_is_the_one_that_was_never_interrupted(prioritized):
    settings = config(prioritized=prioritized)
    whole, _ = trained(settings, device="cuda", execution="graphed")
    first = Trainer(settings, make_environments(settings), dtype=torch.float64, device="cuda", execution="graphed")
    for _ in range(250):
        first.step()
    state, runs = first.state(), list(first.run_states())
    segments = [part for _, _, part in first.segments(None)]
    second = Trainer(settings, make_environments(settings), dtype=torch.float64, device="cuda", execution="graphed")
    second.restore(state, runs, segments)
    while not second.done:
        second.step()
    assert torch.equal(second.learner.state.online, whole.learner.state.online)


@needs_cuda
@pytest.mark.parametrize("execution", ["graphed", "compiled"])
def test_graphed_updates_give_the_weights_of_eager_ones(execution):
    assert compare(torch.device("cuda"), updates=10, execution=execution) <= 1e-5


@needs_cuda
def test_tf32_rounds_products_and_nothing_else():
    settings = short("breakout", "author")
    weights = {}
    for tf32 in (True, False):
        chosen = replace(settings, settings=replace(settings.settings, tf32=tf32))
        trainer, _ = trained(chosen, dtype=torch.float32, device="cuda", execution="graphed")
        weights[tf32] = trainer.learner.state.online
    assert not torch.equal(weights[True], weights[False])
    assert (weights[True] - weights[False]).norm() < 1e-3 * weights[False].norm()


MINATAR = replace(SPECS["minatar"], actions=3, features_dim=16)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("spec", "dtype"), [(SPECS["mlp"], torch.float32), (MINATAR, torch.float32), (MINATAR, torch.float64)]
)
def test_the_actors_of_an_engine_choose_as_the_learner_does(spec, dtype, epsilon):
    learner = Learner(spec, LearnerConfig(), [0, 9], [Arm("dqn")] * 2, [3, 2], dtype=dtype)
    frame = ObservationSpec(spec.observation_shape, np.float32 if spec.kind == "mlp" else np.uint8, 1)
    engine = make_engine(learner, frame, 2, capacity=50, batch_size=8)
    frames = np.random.default_rng(0).integers(0, 2, size=(2, 2, *spec.observation_shape)).astype(frame.dtype)
    engine.begin(frames, np.ones((2, 2), np.bool_))
    for step in range(50):
        expected = learner.act(torch.from_numpy(frames), epsilon, step)
        engine.act(epsilon, step)
        assert np.array_equal(engine.chosen(), expected.numpy())


@pytest.mark.parametrize(
    ("spec", "arm", "dtype", "numba", "exponents", "name"),
    [
        (MINATAR, Arm("gram", 0.1), torch.float32, True, None, "MinAtarEngine"),
        (MINATAR, Arm("dr3", 0.1), torch.float32, True, None, "MinAtarEngine"),
        (MINATAR, Arm("dqn"), torch.float64, True, None, "PlainEngine"),
        (MINATAR, Arm("dqn"), torch.float32, False, None, "PlainEngine"),
        (MINATAR, Arm("dqn"), torch.float32, True, Exponents(), "PlainEngine"),
        (replace(MINATAR, layer_norm=True), Arm("dqn"), torch.float32, True, None, "PlainEngine"),
        (SPECS["mlp"], Arm("dqn"), torch.float32, True, None, "PlainEngine"),
        (SPECS["nature"], Arm("dqn"), torch.float32, True, None, "PlainEngine"),
    ],
)
def test_the_engine_is_the_one_that_suits_network_and_replay(monkeypatch, spec, arm, dtype, numba, exponents, name):
    if not numba:
        monkeypatch.setattr(engines, "find_spec", lambda _: None)
    learner = Learner(spec, LearnerConfig(), [0], [arm], dtype=dtype)
    observation = ObservationSpec(spec.observation_shape, np.uint8, 1)
    engine = make_engine(learner, observation, 1, capacity=9, batch_size=2, exponents=exponents)
    assert type(engine).__name__ == name
    assert ("MinAtar learns in torch" in engine.remark) == (spec.kind == "minatar" and name == "PlainEngine")
    engine.close()


def test_a_run_whose_penalty_has_no_kernel_does_not_change_what_the_others_learn():
    settings = config()
    finals = []
    for arms in ([Arm("gram", 0.1)], [Arm("gram", 0.1), Arm("dr3", 0.1)]):
        chosen = replace(settings, runs=population(["minatar/breakout"], arms, [0]))
        trainer, _ = trained(chosen, dtype=torch.float32)
        finals.append(trainer.learner.state.online[0])
    assert torch.equal(*finals)


def test_a_replay_elsewhere_is_refused_to_a_learner_on_the_cpu():
    learner = Learner(SPECS["mlp"], LearnerConfig(), [0], [Arm("dqn")])
    with pytest.raises(engines.UserError, match="a learner on the CPU has its replay there too"):
        make_engine(learner, ObservationSpec((5,), np.float32, 1), 1, capacity=9, batch_size=2, replay_device="cuda")


@pytest.mark.parametrize(
    # Updates fall due by steps 104, 108, …; they begin in the steps 105, 109, … once these have acted, or before.
    ("sequential", "expected"),
    [(False, [0] * 109 + [1] * 4 + [2] * 4 + [3] * 4), (True, [0] * 104 + [1] * 4 + [2] * 4 + [3] * 4)],
)
def test_the_actors_get_the_weights_of_an_update_when_the_next_one_begins_or_at_once(sequential, expected):
    settings = config(sequential=sequential)
    trainer = Trainer(settings, make_environments(settings))
    after = [trainer.learner.state.online.clone()]  # the weights after so many updates
    used = []
    act = trainer.engine.act

    def watched(*arguments):
        used.append(trainer.engine._acting.clone())
        return act(*arguments)

    trainer.engine.act = watched
    while trainer.updates < 4:
        trainer.step()
        if trainer.updates == len(after):  # and `learner` waits until the last one is done
            after.append(trainer.learner.state.online.clone())
    assert not any(torch.equal(one, other) for one, other in pairwise(after))
    for weights, updates in zip(used, expected, strict=False):
        assert torch.equal(weights, after[updates])
    trainer.close()


@pytest.mark.parametrize(("envs_per_run", "period"), [(1, 2), (1, 4), (3, 4), (8, 4), (8, 2)])
def test_actors_that_wait_lack_no_update_also_where_several_are_due_and_after_a_replay_was_lost(envs_per_run, period):
    settings = config(envs_per_run, sequential=True)
    settings = replace(settings, settings=replace(settings.settings, update_period_agent_steps=period))
    trainer = Trainer(settings, make_environments(settings))
    acts = []
    act = trainer.engine.act

    def watched(*arguments):
        due = updates_at(settings.settings, trainer.agent_steps) - trainer._dropped_updates
        assert trainer.updates == due or trainer.agent_steps < trainer._learns_from
        assert torch.equal(trainer.engine.acting, trainer.learner.state.online)
        acts.append(trainer.updates)
        return act(*arguments)

    trainer.engine.act = watched
    while trainer.agent_steps < 200:
        trainer.step()
    state, runs = trainer.state(), list(trainer.run_states())
    trainer.restore(state, runs, [])
    while not trainer.done:
        trainer.step()
    assert trainer._dropped_updates > 0
    assert trainer.updates == updates_at(settings.settings, trainer.agent_steps) - trainer._dropped_updates
    assert len(set(acts)) > 10
    trainer.close()


def test_the_fields_of_a_transition_lie_in_one_piece_of_memory_without_overlapping():
    transition = Transition(ObservationSpec((5, 7), np.uint8, 4), (3, 2))
    for number, field in enumerate(transition.fields, start=1):
        field.fill_(number)
    for number, field in enumerate(transition.fields, start=1):
        assert (field == torch.tensor(number).to(field.dtype)).all()
        assert field.untyped_storage().data_ptr() == transition.memory.untyped_storage().data_ptr()
