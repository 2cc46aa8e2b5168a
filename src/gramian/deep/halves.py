"""Updates of Atari runs on a CPU: every batch in two halves, which two threads can work on.

An update of Atari's network is long: some 2·10⁹ operations for 32 samples, nearly all of them in convolutions. They
divide by samples, and the rest by what lies side by side in memory:

| work | divided by |
| --- | --- |
| both networks, forwards | samples |
| TD errors, penalty, ∂φ | not at all: they are small, and the penalty is one of the whole batch |
| gradient of the hidden layer's weights | features |
| convolutions, backwards | samples; the gradients of both halves are added up |
| Adam | parameters |

There are two halves whatever the number of threads, so that a run is the same run on any number of cores. Each half
has one thread: divided further by torch, the order of a sum would depend on the cores, and threads would wait for each
other within every single operation.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from gramian.deep.backward import RunUpdate, through_convolution, through_head, through_rectifier
from gramian.deep.batch import Batch
from gramian.deep.layout import Layout
from gramian.deep.losses import Losses, Objective
from gramian.deep.networks import Layer, Parameters, QOutput, forward_run
from gramian.deep.optimiser import Adam
from gramian.deep.state import State

HALVES = (0, 1)
Found = TypeVar("Found")


@contextmanager
def one_thread() -> Iterator[None]:
    """In this block torch does everything in the thread that calls it; other threads are not concerned.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()  # asked first: until then, a new thread has no number of its own
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class _Work:
    """An update under way. What each half found stands under its number."""

    batch: Batch
    """The run's own."""
    number: int
    records: tuple[list[Layer], list[Layer]] = field(default_factory=lambda: ([], []))
    """The hidden layers of the online network."""
    outputs: dict[int, QOutput] = field(default_factory=dict)
    """Q(s, ·) and φ(s)."""
    nexts: dict[int, Tensor] = field(default_factory=dict)
    """Q⁻(s', ·)."""
    choosers: dict[int, Tensor] = field(default_factory=dict)
    """Q(s', ·), where double Q chooses by it."""
    norms: dict[int, float] = field(default_factory=dict)
    """Of the gradients of the hidden layer's weights."""
    sums: dict[int, float] = field(default_factory=dict)
    """Of the new weights."""
    losses: Losses = field(init=False)
    inputs: Tensor = field(init=False)
    """What the hidden layer saw, ``[B', I]``."""
    slope: Tensor = field(init=False)
    """The gradient of the loss with respect to what the hidden layer rectifies, ``[B', d]``."""
    norm: float | None = None
    """Of the whole gradient, where a step is to be taken."""


Step = tuple[Callable[[int], None], Callable[[], None]]
"""What both halves do at the same time, and what one of them then does for both."""


class HalvedUpdate(RunUpdate):
    """A `RunUpdate` of Atari's network in two halves.

    Examples
    --------
    >>> from gramian.deep.arms import Arm
    >>> from gramian.deep.learner import Learner, LearnerConfig
    >>> from gramian.deep.networks import NetworkSpec
    >>> spec = NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=32)
    >>> learner = Learner(spec, LearnerConfig(), seeds=[0], arms=[Arm("gram", 0.1)])
    >>> (run,) = learner.run_updates
    >>> states = torch.ones(1, 32, 4, 36, 36, dtype=torch.uint8)
    >>> batch = Batch(states, torch.zeros(1, 32, dtype=torch.int64), torch.ones(1, 32), torch.zeros(1, 32), states)
    >>> first, second = run.tasks(batch, number=1)
    >>> thread = threading.Thread(target=second)
    >>> thread.start()
    >>> first()
    >>> thread.join()
    >>> torch.equal(learner.state.online, learner.state.target)
    False
    """

    def __init__(self, run: int, objective: Objective, adam: Adam, layout: Layout, state: State) -> None:
        super().__init__(run, objective, adam, layout, state)
        gradient = self._rows[1]
        convolutions = {name: shape for name, shape in layout.shapes.items() if name.startswith("body.conv")}
        sizes = [math.prod(shape) for shape in convolutions.values()]
        # The convolutions come first in a row. The second half's share of their gradient has a place of its own.
        self._first_share, self._second_share = gradient[: sum(sizes)], gradient.new_zeros(sum(sizes))
        shares = zip(convolutions.items(), self._second_share.split(sizes), strict=True)
        self._shares: tuple[Parameters, Parameters] = (
            self._gradient,
            {name: share.view(shape) for (name, shape), share in shares},
        )
        self._features = _halves(objective.spec.features_dim)
        self._parts = [[row[part] for row in self._rows] for part in _halves(len(gradient))]
        # all of the gradient but the hidden layer's weights, which come after the convolutions
        self._small = self._first_share, gradient[sum(sizes) + self._gradient["body.fc1.weight"].numel() :]

    def update(self, batch: Batch, number: int) -> Losses:
        """See :meth:`RunUpdate.update`: both halves in this thread."""
        work = _Work(self._own(batch), number)
        with one_thread(), torch.inference_mode():
            for step, then in self._steps(work):
                for half in HALVES:
                    step(half)
                then()
        return work.losses

    def tasks(self, batch: Batch, number: int) -> list[Callable[[], None]]:
        """An `update` for two threads, one task for each; they wait for each other."""
        work = _Work(self._own(batch), number)
        steps = [(step, threading.Barrier(len(HALVES), then)) for step, then in self._steps(work)]
        return [partial(self._work, steps, half) for half in HALVES]

    @staticmethod
    def _work(steps: Sequence[tuple[Callable[[int], None], threading.Barrier]], half: int) -> None:
        try:
            with one_thread(), torch.inference_mode():
                for step, meeting in steps:
                    step(half)
                    meeting.wait()
        except BaseException:
            for _, meeting in steps:  # the other half need not wait
                meeting.abort()
            raise

    def _steps(self, work: _Work) -> list[Step]:
        return [
            (partial(self._look, work), partial(self._meet, work)),
            (partial(self._descend, work), partial(self._add_up, work)),
            (partial(self._step, work), partial(self._check, work)),
        ]

    def _look(self, work: _Work, half: int) -> None:
        """Both networks, forwards."""
        spec, states, next_states = self._objective.spec, work.batch.observations[0], work.batch.next_observations[0]
        samples = _halves(len(states))[half]
        work.nexts[half] = forward_run(spec, self._target, next_states[samples]).values
        # Where the loss has φ(s') in it, the online network sees the states in one half and the next ones in the other.
        seen = (states, next_states)[half] if self._looks_ahead else states[samples]
        work.outputs[half] = forward_run(spec, self._online, seen, work.records[half])
        if self._objective.double_q and not self._looks_ahead:
            work.choosers[half] = forward_run(spec, self._online, next_states[samples]).values

    def _meet(self, work: _Work) -> None:
        """The loss of the whole batch, and backwards as far as the hidden layer."""
        output = QOutput(*(torch.cat(pair) for pair in zip(*_both(work.outputs), strict=True)))
        choosers = None
        if self._objective.double_q:
            choosers = work.outputs[1].values if self._looks_ahead else torch.cat(_both(work.choosers))
        nexts = torch.cat(_both(work.nexts))
        work.losses, value_slopes, feature_slopes = self._judge(output, nexts, choosers, work.batch)
        slope = through_head(self._online, output.features, value_slopes, feature_slopes, self._gradient)
        first, second = (record.pop() for record in work.records)
        work.inputs = torch.cat([first.inputs, second.inputs])
        work.slope = through_rectifier(self._online, _together(first, second, output.features), slope, self._gradient)

    def _descend(self, work: _Work, half: int) -> None:
        """The hidden layer's weights, and the convolutions backwards."""
        features, samples = self._features[half], _halves(len(work.slope))[half]
        weight = self._gradient["body.fc1.weight"][features]
        torch.mm(work.slope[:, features].mT, work.inputs, out=weight)
        work.norms[half] = torch.linalg.vector_norm(weight).item()
        slope = torch.mm(work.slope[samples], self._online["body.fc1.weight"])
        record = work.records[half]
        while record:
            layer = record.pop()
            slope = through_convolution(self._online, layer, slope, self._shares[half], wanted=bool(record))

    def _add_up(self, work: _Work) -> None:
        """The gradients of both halves; whether a step is to be taken."""
        self._first_share += self._second_share
        norms = [*_both(work.norms), *(torch.linalg.vector_norm(row).item() for row in self._small)]
        norm = math.hypot(*norms)
        if self._mark < 0 and math.isfinite(norm) and math.isfinite(work.losses.components["td"]):
            work.norm = norm

    def _step(self, work: _Work, half: int) -> None:
        if work.norm is not None:
            rows = self._parts[half]
            self._adam.step_run(*rows, run=self._run, number=work.number, norm=work.norm)
            work.sums[half] = rows[0].sum().item()

    def _check(self, work: _Work) -> None:
        """Mark the run where something is not finite."""
        finite = work.norm is not None and math.isfinite(sum(_both(work.sums)))
        if self._mark < 0 and not finite:
            self._mark.fill_(work.number)


def _halves(size: int) -> tuple[slice, slice]:
    return slice(0, size // 2), slice(size // 2, size)


def _together(first: Layer, second: Layer, outputs: Tensor) -> Layer:
    """The hidden layer of both halves, without its inputs."""
    if first.normalised is None or second.normalised is None:
        return first._replace(outputs=outputs)
    raw, mean, inverse = (torch.cat(pair) for pair in zip(first.normalised, second.normalised, strict=True))
    return first._replace(outputs=outputs, normalised=(raw, mean, inverse))


def _both(found: dict[int, Found]) -> list[Found]:
    return [found[half] for half in HALVES]
