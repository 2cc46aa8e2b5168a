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
| convolutions, backwards | samples |
| gradients of their weights | samples; those of both halves are added up |
| Adam | parameters |

Each half of each line is a piece of work by itself, which waits for the pieces that it needs and for no others. Threads
take one piece after the other: whoever has lost his core to the actors or to an emulator does the fewer of them. The
target network does not wait for the update before, as the online network has to: its pieces fill the gaps of that one.

There are two halves whatever the number of threads, and sums over them have an order, so that a run is the same run on
any number of cores. A piece has one thread: divided further by torch, the order of a sum would depend on the cores, and
threads would wait for each other within every single operation.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import torch
from torch import Tensor
from torch.nn import functional

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.layout import Layout
from gramian.deep.agent.losses import Losses, Objective
from gramian.deep.agent.networks import PIXELS, Layer, Parameters, QOutput, convolutions, convolved, rectified
from gramian.deep.agent.optimiser import Adam
from gramian.deep.agent.state import State
from gramian.deep.engines.backward import (
    RunUpdate,
    differentiate_filters,
    through_filters,
    through_head,
    through_rectified_images,
    through_rectifier,
)
from gramian.deep.engines.prepared import Prepared

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


@dataclass(frozen=True)
class Pass:
    """A network that looks at some samples."""

    own: Parameters
    observations: Tensor
    """``[B', ...]``."""
    inputs: Tensor
    """What the hidden layer sees, ``[B', I]``."""
    raw: Tensor
    """What it rectifies, ``[B', d]``."""
    records: Sequence[list[Layer] | None]
    """Where the convolutions of each half are noted, if they are needed once more."""


@dataclass
class Work:
    """An update under way."""

    batch: Batch
    """The run's own."""
    number: int
    records: tuple[list[Layer], list[Layer]]
    """The convolutions of the online network, in each half."""
    online: Pass
    """In the states, and after them in the next ones where the loss has φ(s') in it."""
    target: Pass
    """In the next states."""
    chooser: Pass | None
    """The online network in the next states, where double Q needs it."""
    nexts: Tensor = field(init=False)
    """What the target network says of the next states, ``[B, A]``."""
    losses: Losses = field(init=False)
    slope: Tensor = field(init=False)
    """The gradient of the loss with respect to what the hidden layer rectifies, ``[B', d]``."""
    lower_slope: Tensor = field(init=False)
    """That with respect to what it sees, ``[B', I]``."""
    slopes: tuple[list[Tensor], list[Tensor]] = field(default_factory=lambda: ([], []))
    """In each half, that with respect to what the convolutions rectify, from the top down."""
    norms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Of the gradients of the hidden layer's weights, in each half."""
    norm: float | None = None
    """Of the whole gradient, where a step is to be taken."""
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Of the new weights, in each half."""


class Piece:
    """Some work of an update, to be done after some other pieces."""

    def __init__(self, work: Callable[[], object] = lambda: None, needs: Sequence["Piece"] = ()) -> None:
        self.work, self.done, self._needs = work, False, needs

    @property
    def ready(self) -> bool:
        """Whether all that it needs is done."""
        return all(piece.done for piece in self._needs)


@dataclass(frozen=True)
class Preparation:
    """Pieces that come before the convolutions, forwards, of a network, its hidden layer, and the way backwards."""

    looks: list[Piece] = field(default_factory=list)
    weighs: list[Piece] = field(default_factory=list)
    slopes: list[Piece] = field(default_factory=list)


class _Group:
    """Pieces that are awaited together."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.left, self.future = len(pieces), Future[None]()


class Agenda:
    """Pieces of any number of updates, for any number of threads.

    Pieces are taken in the order in which they were added, each as soon as all that it needs is done: where an update
    has nothing to do for a thread, one that was added later has.

    Examples
    --------
    >>> agenda, gate = Agenda(), Piece()
    >>> waiting = agenda.add([Piece(partial(print, "added first"), [gate])])
    >>> ready = agenda.add([Piece(partial(print, "added second")), Piece(partial(agenda.open, gate))])
    >>> agenda.work()
    added second
    added first
    """

    def __init__(self) -> None:
        self._left: list[tuple[Piece, _Group]] = []
        self._changed = threading.Condition()
        self._workers = 0

    def add(self, pieces: Sequence[Piece]) -> "Future[None]":
        """Put the pieces behind all others. The future is done when they are, or fails as the first one that failed."""
        group = _Group(pieces)
        with self._changed:
            self._left += [(piece, group) for piece in pieces]
            self._changed.notify_all()
        return group.future

    def staff(self, threads: Executor, count: int) -> None:
        """See to it that ``count`` of the threads are at work; they are free again when no piece is left."""
        with self._changed:
            missing = max(count - self._workers, 0)
            self._workers += missing
        for _ in range(missing):
            threads.submit(self._work).add_done_callback(self._gone)

    def _gone(self, thread: "Future[None]") -> None:
        if (failure := thread.exception()) is not None:  # it never began, or broke outside of a piece
            with self._changed:
                self._workers -= 1
            self._fail(failure)

    def clear(self) -> None:
        """Forget all pieces that have not been begun."""
        with self._changed:
            self._left.clear()
            self._changed.notify_all()

    def open(self, gate: Piece) -> None:
        """Note that a piece is done which is on no agenda."""
        with self._changed:
            gate.done = True
            self._changed.notify_all()

    def drop(self, future: "Future[None]") -> None:
        """Forget those pieces that belong to a future of `add` and have not been begun."""
        with self._changed:
            self._left = [(piece, group) for piece, group in self._left if group.future is not future]
            self._changed.notify_all()

    def work(self) -> None:
        """Do one piece after the other, always the first that is ready, until none is left."""
        with self._changed:
            self._workers += 1
        self._work()

    def _work(self) -> None:
        with one_thread(), torch.inference_mode():
            while (found := self._next()) is not None:
                piece, group = found
                try:
                    piece.work()
                except BaseException as failure:
                    self._fail(failure, group)
                    continue
                with self._changed:
                    piece.done = True
                    group.left -= 1
                    last = not group.left
                    self._changed.notify_all()
                if last:
                    group.future.set_result(None)

    def _fail(self, failure: BaseException, *failed: _Group) -> None:
        """Nobody is to wait for what does not come."""
        with self._changed:  # the futures too: two threads may fail at once
            groups = {id(each): each for each in (*failed, *(other for _, other in self._left))}
            self._left.clear()
            for each in groups.values():
                if not each.future.done():
                    each.future.set_exception(failure)
            self._changed.notify_all()

    def _next(self) -> tuple[Piece, _Group] | None:
        with self._changed:
            while self._left:
                for place, (piece, _) in enumerate(self._left):
                    if piece.ready:
                        return self._left.pop(place)
                self._changed.wait()
            self._workers -= 1  # while nobody can add a piece and count on this thread
        return None


class HalvedUpdate(RunUpdate):
    """A `RunUpdate` of Atari's network in pieces, two halves of everything that is long.

    Examples
    --------
    >>> from gramian.deep.agent.arms import Arm
    >>> from gramian.deep.agent.learner import Learner, LearnerConfig
    >>> from gramian.deep.agent.networks import NetworkSpec
    >>> spec = NetworkSpec("nature", (4, 36, 36), actions=6, features_dim=32)
    >>> learner = Learner(spec, LearnerConfig(), seeds=[0], arms=[Arm("gram", 0.1)])
    >>> (run,) = learner.run_updates
    >>> states = torch.ones(1, 32, 4, 36, 36, dtype=torch.uint8)
    >>> batch = Batch(states, torch.zeros(1, 32, dtype=torch.int64), torch.ones(1, 32), torch.zeros(1, 32), states)
    >>> agenda = Agenda()
    >>> done = agenda.add(run.pieces(batch, number=1))
    >>> thread = threading.Thread(target=agenda.work)
    >>> thread.start()
    >>> agenda.work()
    >>> done.result()
    >>> torch.equal(learner.state.online, learner.state.target)
    False
    """

    def __init__(
        self,
        run: int,
        objective: Objective,
        adam: Adam,
        layout: Layout,
        state: State,
        prepared: Callable[[Layout, Tensor], Prepared] = Prepared,
    ) -> None:
        super().__init__(run, objective, adam, layout, state)
        self._prepared_online, self._prepared_target = (
            prepared(layout, rows[run]) for rows in (state.online, state.target)
        )
        self._online, self._target = self._prepared_online.parameters, self._prepared_target.parameters
        gradient = self._rows[1]
        filters = {name: shape for name, shape in layout.shapes.items() if name.startswith("body.conv")}
        sizes = [math.prod(shape) for shape in filters.values()]
        # The convolutions come first in a row. The second half's share of their gradient has a place of its own.
        self._first_share, self._second_share = gradient[: sum(sizes)], gradient.new_zeros(sum(sizes))
        shares = zip(filters.items(), self._second_share.split(sizes), strict=True)
        self._shares: tuple[Parameters, Parameters] = (
            self._gradient,
            {name: share.view(shape) for (name, shape), share in shares},
        )
        self._features = halves(objective.spec.features_dim)
        self._parts = [[row[part] for row in self._rows] for part in halves(len(gradient))]
        # all of the gradient but the hidden layer's weights, which come after the convolutions
        self._small = self._first_share, gradient[sum(sizes) + self._gradient["body.fc1.weight"].numel() :]

    def update(self, batch: Batch, number: int) -> Losses:
        """See :meth:`RunUpdate.update`: all pieces in this thread."""
        work, agenda = self._begin(batch, number), Agenda()
        done = agenda.add(self._pieces(work, []))
        agenda.work()
        done.result()
        return work.losses

    def _differentiate(self, _batch: Batch) -> Losses:
        """Not to be asked for: the parameters here are prepared for the pieces."""
        raise TypeError("a halved update is done in pieces")

    def pieces(self, batch: Batch, number: int, after: Sequence[Piece] = ()) -> list[Piece]:
        """An `update` for an `Agenda`; what looks at the run's own weights comes after some other pieces.

        The target network is looked at before that: it must not change any more until the update is done.
        """
        return self._pieces(self._begin(batch, number), after)

    def work(self, piece: Callable[[], None]) -> None:
        """Do a piece of an update; a profile can look at the clock here."""
        piece()

    @torch.inference_mode()
    def _begin(self, batch: Batch, number: int) -> Work:
        self._prepared_target.refresh()  # so rarely needed that it need not be a piece
        own = self._own(batch)
        states, next_states = own.observations[0], own.next_observations[0]
        seen = torch.cat([states, next_states]) if self._looks_ahead else states
        chooses = self._objective.double_q and not self._looks_ahead
        records: tuple[list[Layer], list[Layer]] = [], []
        return Work(
            own,
            number,
            records,
            online=self._pass(self._online, seen, records),
            target=self._pass(self._target, next_states),
            chooser=self._pass(self._online, next_states) if chooses else None,
        )

    def _pass(
        self, own: Parameters, observations: Tensor, records: Sequence[list[Layer] | None] = (None, None)
    ) -> Pass:
        weight, count = own["body.fc1.weight"], len(observations)
        inputs, raw = weight.new_empty(count, weight.shape[1]), own["body.fc1.bias"].new_empty(count, len(weight))
        return Pass(own, observations, inputs, raw, records)

    def _piece(self, needs: Sequence[Piece], work: Callable[..., None], *arguments: object) -> Piece:
        return Piece(lambda: self.work(partial(work, *arguments)), needs)

    def _pieces(self, work: Work, after: Sequence[Piece]) -> list[Piece]:
        piece = self._piece
        before = self._prepare(after)
        target_looks = self._looks(work.target, [])
        target_weighs = self._weighs(work.target, target_looks)
        conclude = piece(target_weighs, self._conclude_target, work)
        looks: list[Piece] = []
        weighs: list[Piece] = []
        for seen in (work.online, *([] if work.chooser is None else [work.chooser])):
            own_looks = self._looks(seen, [*after, *before.looks])
            looks += own_looks
            weighs += self._weighs(seen, [*own_looks, *before.weighs])
        meet = piece([conclude, *weighs], self._meet, work)
        descents = [piece([meet], self._descend, work, half) for half in HALVES]
        chains = [[piece([*descents, *before.slopes], self._convolve, work, half, 0)] for half in HALVES]
        for half, each in zip(HALVES, chains, strict=True):
            for number in range(1, len(convolutions(self._objective.spec))):
                each.append(piece(each[-1:], self._convolve, work, half, number))
        filters = self._filter_pieces(work, chains)
        weights = [piece([meet], self._differentiate_weights, work, half) for half in HALVES]
        add_up = piece([*filters, *weights], self._add_up, work)
        steps = [piece([add_up], self._step, work, half) for half in HALVES]
        check = piece(steps, self._check, work)
        # What others wait for comes first; the gradients of the weights fill the gaps.
        ahead = [*target_looks, *looks, *before.weighs, *target_weighs, *weighs, conclude]
        first = [*before.looks, *ahead, *before.slopes, meet]
        return [*first, *descents, *chain.from_iterable(chains), *filters, *weights, add_up, *steps, check]

    def _filter_pieces(self, work: Work, chains: Sequence[Sequence[Piece]]) -> list[Piece]:
        """The gradients of filters, after the convolutions backwards, from the top down in each half."""
        return [
            self._piece([done], self._differentiate_filters, work, half, number)
            for half, each in zip(HALVES, chains, strict=True)
            for number, done in enumerate(each)
        ]

    def _prepare(self, after: Sequence[Piece]) -> Preparation:
        """What comes before the pieces of the online network."""
        return Preparation(looks=[self._piece(after, self._prepared_online.renew_convolutions)])

    def _looks(self, seen: Pass, needs: Sequence[Piece]) -> list[Piece]:
        """The convolutions, forwards."""
        return [self._piece(needs, self._look, seen, half) for half in HALVES]

    def _look(self, seen: Pass, half: int) -> None:
        samples = halves(len(seen.observations))[half]
        pictures, record = seen.observations[samples], seen.records[half]
        outputs = convolved(self._objective.spec, seen.own, pictures, record, prepared=True)
        seen.inputs[samples].view(outputs.shape).copy_(outputs)

    def _weighs(self, seen: Pass, needs: Sequence[Piece]) -> list[Piece]:
        """The hidden layer, forwards."""
        return [self._piece(needs, self._weigh, seen, half) for half in HALVES]

    def _weigh(self, seen: Pass, half: int) -> None:
        features = self._features[half]
        weight, bias = seen.own["body.fc1.weight"][features], seen.own["body.fc1.bias"][features]
        torch.addmm(bias, seen.inputs, weight.mT, out=seen.raw[:, features])

    def _conclude_target(self, work: Work) -> None:
        """What the target network says."""
        work.nexts = self._conclude(work.target)[1].values

    def _meet(self, work: Work) -> None:
        """The loss of the whole batch, and backwards as far as the hidden layer."""
        hidden, output = self._conclude(work.online)
        nexts, choosers = work.nexts, None
        if self._objective.double_q:
            choosers = output.values[len(nexts) :] if work.chooser is None else self._conclude(work.chooser)[1].values
        work.losses, value_slopes, feature_slopes = self._judge(output, nexts, choosers, work.batch)
        slope = through_head(self._online, output.features, value_slopes, feature_slopes, self._gradient)
        work.slope = through_rectifier(self._online, hidden, slope, self._gradient)
        work.lower_slope = work.online.inputs.new_empty(len(work.slope), self._objective.spec.body_inputs)

    def _conclude(self, done: Pass) -> tuple[Layer, QOutput]:
        layer = rectified(self._objective.spec, done.own, "body.fc1", done.inputs, done.raw)
        values = functional.linear(layer.outputs, done.own["head.weight"], done.own["head.bias"])
        return layer, QOutput(values, layer.outputs)

    def _descend(self, work: Work, half: int) -> None:
        """The hidden layer, backwards."""
        columns = halves(work.lower_slope.shape[1])[half]
        torch.mm(work.slope, self._online["body.fc1.weight"][:, columns], out=work.lower_slope[:, columns])

    def _differentiate_weights(self, work: Work, half: int) -> None:
        """The gradient of the hidden layer's weights."""
        features = self._features[half]
        weight = self._gradient["body.fc1.weight"][features]
        self._multiply(work.slope[:, features].mT, work.online.inputs, out=weight)
        work.norms[half] = torch.linalg.vector_norm(weight).item()

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        torch.mm(left, right, out=out)

    def _convolve(self, work: Work, half: int, number: int) -> None:
        """The convolutions backwards, down to what the ``number``-th from the top rectifies."""
        record, slopes = work.records[half], work.slopes[half]
        if number:
            slope = through_filters(self._online, record[-number], slopes[-1])
        else:
            slope = work.lower_slope[halves(len(work.slope))[half]]
        slopes.append(through_rectified_images(record[-1 - number], slope))

    def _differentiate_filters(self, work: Work, half: int, number: int) -> None:
        """The gradient of a convolution's weights, the ``number``-th from the top."""
        layer, slope = work.records[half][-1 - number], work.slopes[half][number]
        differentiate_filters(self._online, layer, slope, self._shares[half])
        if layer is work.records[half][0]:  # whose filters see whole numbers
            self._shares[half][f"{layer.name}.weight"].div_(PIXELS)

    def _add_up(self, work: Work) -> None:
        """The gradients of both halves; whether a step is to be taken."""
        self._add_shares()
        norm = math.hypot(*work.norms, *(torch.linalg.vector_norm(row).item() for row in self._small))
        if self._mark < 0 and math.isfinite(norm) and math.isfinite(work.losses.components["td"]):
            work.norm = norm

    def _add_shares(self) -> None:
        self._first_share += self._second_share

    def _step(self, work: Work, half: int) -> None:
        if work.norm is not None:
            rows = self._parts[half]
            self._adam.step_run(*rows, run=self._run, number=work.number, norm=work.norm)
            work.sums[half] = rows[0].sum().item()

    def _check(self, work: Work) -> None:
        """Mark the run where something is not finite."""
        finite = work.norm is not None and math.isfinite(sum(work.sums))
        if self._mark < 0 and not finite:
            self._mark.fill_(work.number)


def halves(size: int) -> tuple[slice, slice]:
    """The two halves of so many; where they differ, the second is larger.

    Examples
    --------
    >>> halves(5)
    (slice(0, 2, None), slice(2, 5, None))
    """
    return slice(0, size // 2), slice(size // 2, size)
