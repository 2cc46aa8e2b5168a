"""A process that gets no further ends itself, so that its population can be taken up again.

A wait that never ends, for a compiler, a driver or a disk, looks like work to everybody else: the process lives, and it
holds its lock. So whatever works gives a sign of life after each of its steps, and a thread beside it counts how long
there has been none.
"""

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

LOOKS = 30
"""How often a sign of life is looked for within the time limit. Looks are counted and not seconds: a process that was
suspended for less than the limit is not blamed for it."""


@contextmanager
def watched(limit_s: float, note: Callable[[str], object]) -> Iterator[Callable[[], None]]:
    """End this process if the block gives no sign of life for a while; gives the function that it does so with.

    The end is SIGKILL, to all processes of this one's group if it leads one, as workers do. Where each thread stood is
    printed first. A thread that hangs without letting any other thread of Python run is caught too, by the interpreter:
    then there is no note, the exit code is 1, and a process that was suspended for so long is not spared.

    Parameters
    ----------
    limit_s
        How long without a sign of life; 0 for ever.
    note
        Called with the reason, before the end.

    Examples
    --------
    >>> with watched(60.0, print) as alive:
    ...     for _ in range(3):
    ...         alive()
    """
    beats = 0

    def alive() -> None:
        nonlocal beats
        beats += 1

    ended = threading.Event()

    def watch() -> None:
        seen, silent = beats, 0
        while not ended.wait(limit_s / LOOKS):
            faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
            seen, silent = beats, silent + 1 if beats == seen else 0
            if silent == LOOKS:
                _end(f"made no step for {limit_s / 60:g} minute{'' if limit_s == 60 else 's'}", note)
        faulthandler.cancel_dump_traceback_later()

    if not 0 < limit_s < threading.TIMEOUT_MAX:
        yield alive
        return
    faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield alive
    finally:
        ended.set()
        watcher.join()


def _end(reason: str, note: Callable[[str], object]) -> None:
    with suppress(Exception):  # what cannot be written down, on a full disk, must not keep the process alive
        os.write(2, f"gramian: {reason}; the process is killed. Its threads stood here:\n".encode())
        faulthandler.dump_traceback(file=2)
    with suppress(Exception):
        note(reason)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
