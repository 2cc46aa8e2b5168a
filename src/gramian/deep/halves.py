"""Updates of Atari runs on a CPU: every batch in two halves, which two threads can work on.

An update of Atari's network is long: some 2·10⁹ operations for 32 samples, nearly all of them in convolutions. They
divide by samples, and the rest by what lies side by side in memory:

| work | divided by |
| --- | --- |
| convolutions, forwards | samples |
| hidden layer, forwards | features |
| TD errors, penalty, ∂φ | not at all: they are small, and the penalty is one of the whole batch |
| hidden layer, backwards | inputs |
| gradient of its weights | features |
| convolutions, backwards | samples; the gradients of both halves are added up |
| Adam | parameters |

Each half of each line is a piece of work by itself, which waits for the pieces that it needs and for no others. Threads
take one piece after the other: whoever has lost his core to the actors or to an emulator does the fewer of them.

There are two halves whatever the number of threads, and sums over them have an order, so that a run is the same run on
any number of cores. A piece has one thread: divided further by torch, the order of a sum would depend on the cores, and
threads would wait for each other within every single operation.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from gramian.deep.backward import RunUpdate, through_convolution, through_head, through_rectifier
from gramian.deep.batch import Batch
from gramian.deep.layout import Layout
from gramian.deep.losses import Losses, Objective
from gramian.deep.networks import Layer, Parameters, QOutput, convolved, rectified
from gramian.deep.optimiser import Adam
from gramian.deep.state import State

HALVES = (0, 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """In this block torch does everything in the thread that calls it.

    Threads that have used torch before keep their numbers. One that first uses it while the block lasts begins with
    one thread, and keeps that after the block.

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


class _Pass(NamedTuple):
    """A network that looks at some samples."""

    own: Parameters
    observations: Tensor
    """``[B', ...]``."""
    inputs: Tensor
    """What the hidden layer sees, ``[B', I]``."""
    raw: Tensor
    """What it rectifies, ``[B', d]``."""
    records: Sequence[list[Layer] | None]
    """The convolutions of each half, where they are needed once more."""


@dataclass
class _Work:
    """An update under way."""

    batch: Batch
    """The run's own."""
    number: int
    online: _Pass
    """In the states, and after them in the next ones where the loss has φ(s') in it."""
    target: _Pass
    """In the next states."""
    chooser: _Pass | None
    """The online network in the next states, where double Q needs it."""
    losses: Losses = field(init=False)
    slope: Tensor = field(init=False)
    """The gradient of the loss with respect to what the hidden layer rectifies, ``[B', d]``."""
    lower_slope: Tensor = field(init=False)
    """That with respect to what it sees, ``[B', I]``."""
    norms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Of the gradients of the hidden layer's weights, in each half."""
    norm: float | None = None
    """Of the whole gradient, where a step is to be taken."""
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Of the new weights, in each half."""


class _Piece:
    """Some work of an update, to be done after some other pieces."""

    def __init__(self, work: Callable[[], None], needs: Sequence["_Piece"] = ()) -> None:
        self.work, self.done, self._needs = work, False, needs

    @property
    def ready(self) -> bool:
        return all(piece.done for piece in self._needs)


class _Plan:
    """Pieces for any number of threads, each after those that it needs."""

    def __init__(self, pieces: list[_Piece]) -> None:
        self._left, self._changed = pieces, threading.Condition()

    def work(self) -> None:
        """Do one piece after the other, always the first that is ready, until none is left."""
        try:
            with one_thread(), torch.inference_mode():
                while (piece := self._next()) is not None:
                    piece.work()
                    with self._changed:
                        piece.done = True
                        self._changed.notify_all()
        except BaseException:
            with self._changed:  # nobody is to wait for what does not come
                self._left.clear()
                self._changed.notify_all()
            raise

    def _next(self) -> _Piece | None:
        with self._changed:
            while self._left:
                piece = next((piece for piece in self._left if piece.ready), None)
                if piece is not None:
                    self._left.remove(piece)
                    return piece
                self._changed.wait()
        return None


class HalvedUpdate(RunUpdate):
    """A `RunUpdate` of Atari's network in pieces, two halves of everything that is long.

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
        """See :meth:`RunUpdate.update`: all pieces in this thread."""
        work = self._begin(batch, number)
        _Plan(self._pieces(work)).work()
        return work.losses

    def tasks(self, batch: Batch, number: int) -> list[Callable[[], None]]:
        """An `update` for two threads, one task for each; it is done when both are."""
        return [partial(self.work, _Plan(self._pieces(self._begin(batch, number))))] * len(HALVES)

    def work(self, plan: _Plan) -> None:
        """What one thread does of an update; a profile can look at the clock here."""
        plan.work()

    @torch.inference_mode()
    def _begin(self, batch: Batch, number: int) -> _Work:
        own = self._own(batch)
        states, next_states = own.observations[0], own.next_observations[0]
        seen = torch.cat([states, next_states]) if self._looks_ahead else states
        chooses = self._objective.double_q and not self._looks_ahead
        return _Work(
            own,
            number,
            online=self._pass(self._online, seen, [[], []]),
            target=self._pass(self._target, next_states),
            chooser=self._pass(self._online, next_states) if chooses else None,
        )

    def _pass(
        self, own: Parameters, observations: Tensor, records: Sequence[list[Layer] | None] = (None, None)
    ) -> _Pass:
        weight, count = own["body.fc1.weight"], len(observations)
        inputs, raw = (weight.new_empty(count, size) for size in (weight.shape[1], len(weight)))
        return _Pass(own, observations, inputs, raw, records)

    def _pieces(self, work: _Work) -> list[_Piece]:
        passes = [work.target, work.online, *([] if work.chooser is None else [work.chooser])]
        looks = [[_Piece(partial(self._look, seen, half)) for half in HALVES] for seen in passes]
        weighs = [
            _Piece(partial(self._weigh, seen, half), look)
            for seen, look in zip(passes, looks, strict=True)
            for half in HALVES
        ]
        meet = _Piece(partial(self._meet, work), weighs)
        descents = [_Piece(partial(self._descend, work, half), [meet]) for half in HALVES]
        convolutions = [_Piece(partial(self._convolve, work, half), descents) for half in HALVES]
        weights = [_Piece(partial(self._differentiate_weights, work, half), [meet]) for half in HALVES]
        add_up = _Piece(partial(self._add_up, work), [*convolutions, *weights])
        steps = [_Piece(partial(self._step, work, half), [add_up]) for half in HALVES]
        check = _Piece(partial(self._check, work), steps)
        # What others wait for comes first; the gradients of the weights fill the gaps.
        return [*chain(*looks), *weighs, meet, *descents, *convolutions, *weights, add_up, *steps, check]

    def _look(self, seen: _Pass, half: int) -> None:
        """The convolutions, forwards."""
        own, observations, inputs, _, records = seen
        samples = _halves(len(observations))[half]
        outputs = convolved(self._objective.spec, own, observations[samples], records[half])
        inputs[samples].view(outputs.shape).copy_(outputs)

    def _weigh(self, seen: _Pass, half: int) -> None:
        """The hidden layer, forwards."""
        own, _, inputs, raw, _ = seen
        features = self._features[half]
        weight, bias = own["body.fc1.weight"][features], own["body.fc1.bias"][features]
        torch.addmm(bias, inputs, weight.mT, out=raw[:, features])

    def _meet(self, work: _Work) -> None:
        """The loss of the whole batch, and backwards as far as the hidden layer."""
        hidden, output = self._conclude(work.online)
        _, (nexts, _) = self._conclude(work.target)
        choosers = None
        if self._objective.double_q:
            choosers = output.values[len(nexts) :] if work.chooser is None else self._conclude(work.chooser)[1].values
        work.losses, value_slopes, feature_slopes = self._judge(output, nexts, choosers, work.batch)
        slope = through_head(self._online, output.features, value_slopes, feature_slopes, self._gradient)
        work.slope = through_rectifier(self._online, hidden, slope, self._gradient)
        work.lower_slope = torch.empty_like(work.online.inputs)

    def _conclude(self, done: _Pass) -> tuple[Layer, QOutput]:
        layer = rectified(self._objective.spec, done.own, "body.fc1", done.inputs, done.raw)
        values = functional.linear(layer.outputs, done.own["head.weight"], done.own["head.bias"])
        return layer, QOutput(values, layer.outputs)

    def _descend(self, work: _Work, half: int) -> None:
        """The hidden layer, backwards."""
        columns = _halves(work.lower_slope.shape[1])[half]
        torch.mm(work.slope, self._online["body.fc1.weight"][:, columns], out=work.lower_slope[:, columns])

    def _differentiate_weights(self, work: _Work, half: int) -> None:
        """The gradient of the hidden layer's weights."""
        features = self._features[half]
        weight = self._gradient["body.fc1.weight"][features]
        torch.mm(work.slope[:, features].mT, work.online.inputs, out=weight)
        work.norms[half] = torch.linalg.vector_norm(weight).item()

    def _convolve(self, work: _Work, half: int) -> None:
        """The convolutions, backwards."""
        slope, record = work.lower_slope[_halves(len(work.slope))[half]], work.online.records[half]
        while record:
            layer = record.pop()
            slope = through_convolution(self._online, layer, slope, self._shares[half], wanted=bool(record))

    def _add_up(self, work: _Work) -> None:
        """The gradients of both halves; whether a step is to be taken."""
        self._first_share += self._second_share
        norm = math.hypot(*work.norms, *(torch.linalg.vector_norm(row).item() for row in self._small))
        if self._mark < 0 and math.isfinite(norm) and math.isfinite(work.losses.components["td"]):
            work.norm = norm

    def _step(self, work: _Work, half: int) -> None:
        if work.norm is not None:
            rows = self._parts[half]
            self._adam.step_run(*rows, run=self._run, number=work.number, norm=work.norm)
            work.sums[half] = rows[0].sum().item()

    def _check(self, work: _Work) -> None:
        """Mark the run where something is not finite."""
        finite = work.norm is not None and math.isfinite(sum(work.sums))
        if self._mark < 0 and not finite:
            self._mark.fill_(work.number)


def _halves(size: int) -> tuple[slice, slice]:
    return slice(0, size // 2), slice(size // 2, size)
