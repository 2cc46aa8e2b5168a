"""Ending in time: what would not be finished is stopped early, so that the rest is.

A machine that is lent for an hour, and gone after it, leaves nothing of a study whose runs all come to nine tenths of
their frames. So it is asked again and again whether what is left can be done in the time that is left, at the rate of
the last minutes. Where some populations can be finished and not all of them, the one that has the most to do is
stopped, and the others have its cores and its share of the GPU. Where none can, all go on to the end. The rate is that
of all populations together: which of them are at work hardly changes it where they share a machine.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise

WINDOW_S = 120.0
"""How far back the rate is looked for. Nothing is stopped before, nor so soon after a stop."""
STALL_S = 20.0
"""Where nobody makes a step for so long, all of them start or compile: the window begins anew after it."""


class Allotment:
    """The time that a study has.

    Parameters
    ----------
    wanted
        Agent steps of each population, in the plan's order.
    ends
        When it is over, by the clock.
    stop
        Called with every population that is to be stopped, at each look until it is done or told no more of.
    clock
        Seconds.

    Examples
    --------
    >>> seconds, stopped = [0.0], []
    >>> allotment = Allotment({"p000": 2000, "p001": 2000}, ends=240.0, stop=stopped.append, clock=lambda: seconds[0])
    >>> for now in range(0, 121, 10):  # 14 steps a second: in the 120 that are left they make 1,680 of 2,320
    ...     seconds[0] = float(now)
    ...     allotment.look({"p000": 7 * now, "p001": 7 * now})
    >>> stopped
    ['p001']
    """

    def __init__(
        self,
        wanted: Mapping[str, int],
        ends: float,
        stop: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted, self._ends, self._stop, self._clock = wanted, ends, stop, clock
        self._past: deque[tuple[float, int]] = deque()
        self._given_up: set[str] = set()

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self._clock() >= self._ends

    def leave_out(self, population: str) -> None:
        """Reckon with a population no more, since nobody will go on with it."""
        self._given_up.add(population)

    def look(self, done: Mapping[str, int]) -> None:
        """Stop what is not to go on; to be called every few seconds with the agent steps of every population."""
        missing = {name: wanted - done[name] for name, wanted in self._wanted.items() if done[name] < wanted}
        left = {name: steps for name, steps in missing.items() if name not in self._given_up}
        rate = self._rate(sum(done.values()))
        if self.is_over:
            self._given_up.update(left)
        elif (
            rate is not None and left and min(left.values()) <= rate * (self._ends - self._clock()) < sum(left.values())
        ):
            # of those that have as much to do as any other, the last in the plan
            self._given_up.add(max(reversed(left), key=left.__getitem__))
            self._past.clear()
        for name in missing.keys() & self._given_up:  # again and again: one that has just begun may not have heard it
            self._stop(name)

    def _rate(self, done: int) -> float | None:
        """Agent steps a second in the best quarter of the window: compilers and checkpoints take time out of others.

        None where it is not known yet, or nothing new.
        """
        now = self._clock()
        if self._past and done == self._past[-1][1]:
            return None
        if self._past and now - self._past[-1][0] > STALL_S:
            self._past.clear()
        self._past.append((now, done))
        if now - self._past[0][0] < WINDOW_S:
            return None
        while now - self._past[1][0] >= WINDOW_S:
            self._past.popleft()
        begin = self._past[0][0]
        marks = [begin + part / 4 * (now - begin) for part in range(5)]
        nearest = [min(self._past, key=lambda one: abs(one[0] - mark)) for mark in marks]
        return max((end[1] - start[1]) / (end[0] - start[0]) for start, end in pairwise(dict.fromkeys(nearest)))
