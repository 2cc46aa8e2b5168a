"""The engine of a GPU on a CPU: queues that do their work at any time that the waits allow."""

import random
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import pytest
import torch

from gramian.deep import engines
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.learner import Learner
from gramian.deep.engines import cuda
from gramian.deep.envs import Environments
from gramian.deep.replay import Exponents, Replay
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.trainer import Trainer

CAPACITY = 100
"""Transitions in a replay."""


class LazyGPU:
    """Stands in for ``torch.cuda``.

    Parameters
    ----------
    laziness
        Chance that no queue does anything when it could; 0 does everything at once, 1 only what is waited for.
    """

    def __init__(self, monkeypatch, laziness, seed=0):
        self.random, self.laziness = random.Random(seed), laziness
        self.queues, self.current, self.working = [], None, False
        gpu, copy, zeros, copy_target = self, torch.Tensor.copy_, torch.zeros, Learner.copy_target

        class Event:
            def __init__(self):
                self.recorded = self.done = 0

            def record(self, queue):
                self.recorded += 1
                queue.put(lambda number=self.recorded: setattr(self, "done", number))

            def synchronize(self):
                gpu.work_until(lambda: self.done == self.recorded)

        class Queue:
            def __init__(self, *_, **__):
                self.items = deque()
                gpu.queues.append(self)

            def put(self, work, ready=lambda: True):
                self.items.append((ready, work))
                gpu.work_perhaps()

            def wait_event(self, event):
                self.put(lambda: None, lambda number=event.recorded: event.done >= number)

        @contextmanager
        def on(queue):
            before, gpu.current = gpu.current, queue
            yield
            gpu.current = before

        def later(work):
            """Put the work into the current queue, if there is one that is not at work itself."""

            def run(tensor, *arguments, **_):
                if gpu.current is None or gpu.working:
                    return work(tensor, *arguments)
                gpu.current.put(lambda: work(tensor, *arguments))
                return tensor

            return run

        def record(function, changed, _queue, *, compiled):
            assert not compiled
            before = [tensor.clone() for tensor in changed]
            gpu.work(function)
            for tensor, saved in zip(changed, before, strict=True):
                copy(tensor, saved)
            return lambda: gpu.current.put(function)

        def engine(learner, replay, stack, batch_size, parts, threads=0):
            del threads
            exponents = Exponents() if replay.prioritized else None
            on_device = Replay(stack.spec, *stack.environments, CAPACITY, exponents=exponents)
            kind, chosen = (cuda.HostReplayEngine, replay) if gpu.replay_on_host else (cuda.CudaEngine, on_device)
            return kind(learner, chosen, stack, batch_size, parts, compiled=False)

        self.replay_on_host = False
        monkeypatch.setattr(torch.cuda, "Stream", Queue)
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "stream", on)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: gpu.current)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: gpu.work_until(lambda: not any(gpu.waiting())))
        monkeypatch.setattr(torch, "zeros", lambda *a, pin_memory=False, **named: zeros(*a, **named))  # noqa: ARG005
        monkeypatch.setattr(torch.Tensor, "pin_memory", torch.Tensor.clone)
        monkeypatch.setattr(torch.Tensor, "copy_", later(copy))
        monkeypatch.setattr(Learner, "copy_target", later(copy_target))
        monkeypatch.setattr(cuda, "record", record)
        monkeypatch.setattr(engines, "PlainEngine", engine)

    def waiting(self):
        return [queue for queue in self.queues if queue.items]

    def work(self, function):
        before, self.working = self.working, True
        function()
        self.working = before

    def work_once(self):
        """Let any queue do one thing, if any can."""
        able = [queue for queue in self.waiting() if queue.items[0][0]()]
        if able:
            self.work(self.random.choice(able).items.popleft()[1])
        return bool(able)

    def work_perhaps(self):
        while not self.working and self.random.random() >= self.laziness and self.work_once():
            pass

    def work_until(self, done):
        while not done():
            assert self.work_once(), "nobody can go on"


def settings(*, sequential, prioritized=False):
    chosen = load_preset("cartpole")
    options = chosen.environment
    chosen = replace(
        chosen,
        prefill_agent_steps=40,
        frames=100,
        sequential=sequential,
        prioritized=prioritized,
        batch_size=16,
        replay_capacity=CAPACITY,
        epsilon_decay_agent_steps=50,
        update_period_agent_steps=4,
        target_period_agent_steps=20,
        environment=replace(options, cartpole=replace(options.cartpole, max_episode_steps=17)),
    )
    return Config("cartpole", chosen, population(["cartpole"], [Arm("dqn"), Arm("gram", 0.1)], [0]))


def make(config, parts, *, here):
    environments = Environments([run.game for run in config.runs], [0, 0], 1, config.settings.environment, parts=parts)
    environments.here = here  # if not, somebody else would play, and could begin at once
    return Trainer(config, environments)


def trained(config, parts, *, here, restore_at=()):
    """What comes of a run; at some steps it goes on from its state, in another trainer that has done something else."""
    played, episodes = make(config, parts, here=here), []
    while not played.done:
        episodes += played.step()
        if played.agent_steps in restore_at:
            state = {name: tensor.clone() for name, tensor in played.state().items()}
            runs = [{name: tensor.clone() for name, tensor in run.items()} for run in played.run_states()]
            segments = [{name: tensor.clone() for name, tensor in part.items()} for *_, part in played.segments(None)]
            played = make(config, parts, here=here)
            played.step()
            played.restore(state, runs, segments)
    return [tensor for one in (played.state(), *played.run_states()) for tensor in one.values()], episodes


@pytest.fixture(autouse=True)
def small_work():
    """Threads for operations of this size would wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same(mine, theirs):
    tensors = zip(mine[0], theirs[0], strict=True)
    return mine[1] == theirs[1] and all(torch.equal(one, other) for one, other in tensors)


UNIFORM = list(product([False, True], [1, 2], [False, True], [False, True], [False]))
PRIORITIZED = list(product([False, True], [2], [True], [False, True], [True]))


@pytest.mark.parametrize(("sequential", "parts", "here", "replay_on_host", "prioritized"), UNIFORM + PRIORITIZED)
def test_a_run_does_not_depend_on_when_the_queues_of_a_gpu_do_their_work(
    monkeypatch, sequential, parts, here, replay_on_host, prioritized
):
    config, outcomes = settings(sequential=sequential, prioritized=prioritized), []
    for laziness, seed, restore_at in ((0.0, 0, ()), (0.5, 1, ()), (1.0, 2, ()), (0.8, 3, (30, 61, 79))):
        with monkeypatch.context() as patch:
            LazyGPU(patch, laziness, seed).replay_on_host = replay_on_host
            outcomes.append(trained(config, parts, here=here, restore_at=restore_at))
    assert any(episode.truncated for episode in outcomes[0][1])
    assert all(same(outcomes[0], other) for other in outcomes[1:])


@pytest.mark.parametrize(
    ("owner", "method"),
    [(cuda.CudaEngine, "_observe_unseen"), (torch.cuda.Event, "synchronize"), (torch.cuda.Stream, "wait_event")],
)
def test_without_one_of_its_waits_it_would(monkeypatch, owner, method):
    config, outcomes = settings(sequential=method == "_observe_unseen"), []
    for laziness in (0.0, 1.0):
        with monkeypatch.context() as patch:
            LazyGPU(patch, laziness)
            if laziness:
                found = owner if owner is cuda.CudaEngine else getattr(torch.cuda, owner.__name__)
                patch.setattr(found, method, lambda *_: None)
            outcomes.append(trained(config, 1, here=True))
    assert not same(*outcomes)
