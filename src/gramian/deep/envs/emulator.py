"""Atari 2600 consoles, and a process that plays some of them.

`gramian.deep.envs.atari` runs this file as a program, once for each core, or plays the consoles itself. It
imports nothing of the package, but for a kernel where one is wanted, so that a process is there in a fraction of a
second.

An episode must be a function of its seed and its actions. Resetting a game does not give that: in a dozen games the
console's memory hangs on what was before. Loading the cartridge again does, and costs as much as some three hundred
agent steps. So a console is saved once, when its game is about to begin, and every episode starts from that state. What
is random in an episode (no-ops at its beginning, sticky actions) is drawn from its seed here, and the emulator's own
generator is never asked.
"""

import contextlib
import json
import mmap
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ale_py
import numpy as np
from ale_py.roms import get_rom_path
from numpy.typing import NDArray

PIXELS = 84
"""Height and width of a frame as an agent sees it."""
SCREEN = (210, 160)
"""Height and width of the screen of every game of the paper."""
GREYS = np.frombuffer(
    bytes.fromhex(
        "004a6f8eaac0d6ec405f7a94acc1d6e93f576e8396a7b8c73b556b8194a7b7c72c445a6e8092a1b0334a5f738495a4b2"
        "273f556b7d8f9fae16314960748899a91129405568798999203c556d8296a8ba28455f788da2b6c82b4a657f97adc1d4"
        "2847627c93a9bdcf294a68849db5cbdf2f4f6b859db3c8dc2f4f6b859db3c8dc"
    ),
    np.uint8,
).repeat(2)
"""The grey that the emulator shows each colour of an (NTSC) console in; the last bit of a colour means nothing."""
LINE_SHARES = np.array([0.4, 0.4, 0.2, 0.4, 0.4], np.float32)
"""Shares of five lines in the two that become of them; the third is in both."""
ACT, START = b"a", b"s"
"""What a process is told to do with its consoles that are chosen."""
DONE = b"d"
"""What it answers."""
LONGEST_REST = 4096
"""Waits through which a `Waiter` sleeps when others want its core, at most."""
SHORT_REST = 8
"""Waits through which it sleeps after one that was longer than its patience."""
RESET = {"qbert"}
"""Games whose reset switch, which no state contains, is still down when they begin. They are saved before the reset,
and reset (some sixty frames) at the beginning of every episode."""


def shared_arrays(count: int, colour: bool) -> dict[str, tuple[tuple[int, ...], str]]:
    """The arrays in the memory that the processes of an engine share: shape and type by name."""
    frame = (*SCREEN, 3) if colour else (PIXELS, PIXELS)
    return {
        "seeds": ((count,), "int64"),
        "noops": ((count,), "int64"),
        "actions": ((count,), "int64"),
        "chosen": ((count,), "bool"),
        "rewards": ((count,), "float32"),
        "over": ((count,), "bool"),
        "lives": ((count,), "int64"),
        "frames": ((count, *frame), "uint8"),
    }


def map_arrays(memory: mmap.mmap | None, count: int, colour: bool) -> tuple[dict[str, NDArray[Any]], int]:
    """The arrays in ``memory``, and how many bytes they take; without memory the latter alone."""
    arrays, place = {}, 0
    for name, (shape, kind) in shared_arrays(count, colour).items():
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        if memory is not None:
            arrays[name] = np.frombuffer(memory, kind, int(np.prod(shape)), place).reshape(shape)
        place += -(-size // 64) * 64  # no two arrays in one cache line
    return arrays, place


def rom(game: str) -> Path:
    """The cartridge of a game (by ALE's name).

    Examples
    --------
    >>> rom("pong").name
    'pong.bin'
    """
    path = get_rom_path(game)
    if path is None:
        raise FileNotFoundError(f"ale-py has no cartridge for {game!r}")
    return Path(path)


class Console:
    """One game.

    Parameters
    ----------
    game
        ALE's name.
    frame_skip
        Frames that an action is held for.
    sticky_probability
        Chance, at each frame, that the action before is repeated instead.
    fire_reset
        Press FIRE when the game begins, where it has that button.
    full_actions
        All 18 actions instead of those the game responds to.
    flavour
        Mode and difficulty; None leaves the console as it is switched on.
    colour
        Show the whole screen in colour instead of 84×84 greys.
    compiled
        Make the greys by a compiled kernel, where there is numba; they are the same.

    Examples
    --------
    >>> console, frame = Console("pong"), np.zeros((84, 84), np.uint8)
    >>> console.start(seed=0, noops=0, out=frame)
    >>> console.act(0, out=frame)
    (0.0, False)
    """

    def __init__(
        self,
        game: str,
        *,
        frame_skip: int = 4,
        sticky_probability: float = 0.0,
        fire_reset: bool = False,
        full_actions: bool = False,
        flavour: tuple[int, int] | None = None,
        colour: bool = False,
        compiled: bool = False,
    ):
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._ale = ale_py.ALEInterface()
        # every setting that bears on a game is set explicitly; sticky actions and the frame skip are done here
        for name, number in (("random_seed", 0), ("frame_skip", 1), ("max_num_frames_per_episode", 0)):
            self._ale.setInt(name, number)
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setBool("color_averaging", False)
        self._ale.setBool("truncate_on_loss_of_life", False)
        self._ale.loadROM(rom(game))
        if flavour is not None:
            self._ale.setMode(flavour[0])
            self._ale.setDifficulty(flavour[1])
        self._resets = game in RESET
        if self._resets:
            self._beginning = self._ale.cloneSystemState()
            self._ale.reset_game()
        else:
            self._ale.reset_game()
            self._beginning = self._ale.cloneSystemState()
        self._look = self._ale.getScreenRGB if colour else self._ale.getScreen
        self._picture = ColourPicture() if colour else grey_picture(compiled=compiled)
        self._first_screen = self._look()  # which is no part of a state
        if not colour and not np.array_equal(GREYS[self._first_screen], self._ale.getScreenGrayscale()):
            raise RuntimeError(f"this ale-py shows {game!r} in other greys than ale-py 0.12 does")
        self._actions = self._ale.getLegalActionSet() if full_actions else self._ale.getMinimalActionSet()
        self._fire = ale_py.Action.FIRE if fire_reset and ale_py.Action.FIRE in self._actions else None
        self._frame_skip, self._sticky = frame_skip, sticky_probability
        self._chance = random.Random(0)
        self._before = ale_py.Action.NOOP

    @property
    def actions(self) -> int:
        """The number of actions."""
        return len(self._actions)

    @property
    def lives(self) -> int:
        """Lives left; 0 in a game that has none."""
        return int(self._ale.lives())

    def start(self, seed: int, noops: int, out: NDArray[np.uint8]) -> None:
        """Begin episode ``seed`` with ``noops`` frames of no-op; the first frame is written into ``out``."""
        self._chance.seed(seed)
        self._begin()
        screens = self._picture.screens
        screens[:] = self._first_screen
        presses = [ale_py.Action.NOOP] * noops + ([] if self._fire is None else [self._fire])
        for press in presses:
            self._press(press)
            screens[:] = self._look()
            if self._ale.game_over():
                self._begin()
                screens[:] = self._first_screen
        self._picture.show(out)

    def act(self, action: int, out: NDArray[np.uint8]) -> tuple[float, bool]:
        """Hold an action for a frame skip: the reward, and whether the game is over; the frame goes into ``out``."""
        reward, press = 0, self._actions[action]
        screens, seen = self._picture.screens, 0
        for left in range(self._frame_skip - 1, -1, -1):
            reward += self._press(press)
            over = self._ale.game_over()
            if left < 2 or over:
                self._look(screens[seen])
                seen += 1
            if over:
                break
        if not seen:
            raise ValueError("a frame skip of no frames")
        if seen == 1:
            screens[1] = screens[0]
        self._picture.show(out)
        return float(reward), over

    def _begin(self) -> None:
        self._ale.restoreSystemState(self._beginning)
        if self._resets:
            self._ale.reset_game()
        self._before = ale_py.Action.NOOP

    def _press(self, action: ale_py.Action) -> int:
        """One frame."""
        if not self._sticky or self._chance.random() >= self._sticky:
            self._before = action
        return int(self._ale.act(self._before))


class ColourPicture:
    """Two screens in colour, which it shows as the brighter of both at each pixel."""

    def __init__(self) -> None:
        self.screens = np.zeros((2, *SCREEN, 3), np.uint8)

    def show(self, out: NDArray[np.uint8]) -> None:
        """Write the frame of the two ``screens`` into ``out``."""
        np.maximum(self.screens[0], self.screens[1], out=out)


class GreyPicture:
    """Two screens, of numbers of colours, which it shows as the brighter grey of both, averaged over areas to 84×84.

    The averages are those of OpenCV's ``INTER_AREA`` to the last bit: in float32, one term after the other, along the
    lines first. 40 pixels of a line become 21, the next 40 the next 21. So a screen consists of 840 pieces that have
    nothing to do with each other, and only those that differ from the pair of screens before are computed anew. Of
    five lines become two, in which each line has one share: 2, 2, 1 and 1, 2, 2 fifths.

    Examples
    --------
    >>> picture, frame = GreyPicture(), np.zeros((84, 84), np.uint8)
    >>> picture.screens[0], picture.screens[1] = 14, 2
    >>> picture.show(frame)
    >>> frame.min(), frame.max()
    (np.uint8(236), np.uint8(236))
    """

    _two_greys = (GREYS[:, None] * np.uint16(256) + GREYS).ravel()
    """Greys of two neighbours by their colours: half as many to look up. (Of either byte order.)"""

    def __init__(self) -> None:
        self.screens, self._screens_before = np.zeros((2, 2, *SCREEN), np.uint8)
        # What is looked at of both: eight pixels at a time to compare, two to find their greys. They change places.
        self._words, self._words_before = (x.view(np.uint64).ravel() for x in (self.screens, self._screens_before))
        self._pairs, self._pairs_before = (
            x.view(np.uint16).reshape(2, 840, 20) for x in (self.screens, self._screens_before)
        )
        self._differ = np.empty(self._words.shape, bool)
        self._piece_of_word = np.arange(self._words.size) // 5 % 840
        self._changed = np.empty(840, bool)
        pixels, shares = _areas(40, 21)
        self._pixels, self._shares = pixels.ravel(), shares.reshape(-1, 1)
        # Shrunk pieces are kept line 0, 5, 10, ... first, then 1, 6, 11, ...: what is added up lies in one stretch.
        line, quarter = np.divmod(np.arange(840), 4)
        self._place = (line % 5 * 42 + line // 5) * 4 + quarter
        self._line_shares = LINE_SHARES[line % 5]
        self._narrow = np.zeros((840, 21), np.float32)
        lines = self._narrow.reshape(5, -1)
        self._lines = lines[0:3:2], lines[1:4:2], lines[2:5:2]
        self._grey = np.zeros((2, 42 * PIXELS), np.float32)

    def show(self, out: NDArray[np.uint8]) -> None:
        """Write the frame of the two ``screens`` into ``out``; what is in ``screens`` then is to be overwritten."""
        np.not_equal(self._words, self._words_before, out=self._differ)
        (words,) = self._differ.nonzero()
        if words.size:
            self._changed.fill(False)
            self._changed[self._piece_of_word.take(words)] = True
            (pieces,) = self._changed.nonzero()
            self._shrink(pieces)
        out.reshape(42, 2, PIXELS)[:] = self._grey.reshape(2, 42, PIXELS).swapaxes(0, 1)
        self.screens, self._screens_before = self._screens_before, self.screens
        self._words, self._words_before = self._words_before, self._words
        self._pairs, self._pairs_before = self._pairs_before, self._pairs

    def _shrink(self, pieces: NDArray[np.intp]) -> None:
        first, second = self._two_greys.take(self._pairs.take(pieces, axis=1)).view(np.uint8)
        # Pixels by pieces from here on: every operation then runs along many pieces instead of a few pixels.
        pixels = np.maximum(first, second).T.astype(np.float32, order="C")
        terms = pixels.take(self._pixels, axis=0)
        terms *= self._shares
        narrow = terms[:21]
        narrow += terms[21:42]
        narrow += terms[42:]
        narrow *= self._line_shares.take(pieces)
        self._narrow[self._place.take(pieces)] = narrow.T
        first_lines, second_lines, third_lines = self._lines
        np.add(first_lines, second_lines, out=self._grey)
        self._grey += third_lines
        np.rint(self._grey, out=self._grey)


class CompiledPicture:
    """A `GreyPicture` with the same bits, by a kernel that numba compiles: a quarter of the time.

    Examples
    --------
    >>> picture, frame = CompiledPicture(), np.zeros((84, 84), np.uint8)
    >>> picture.screens[0], picture.screens[1] = 14, 2
    >>> picture.show(frame)
    >>> frame.min(), frame.max()
    (np.uint8(236), np.uint8(236))
    """

    def __init__(self) -> None:
        from gramian.deep.envs.pictures import shrink  # which loads numba

        self._shrink = shrink
        self.screens, self._screens_before = np.zeros((2, 2, *SCREEN), np.uint8)
        self._words, self._words_before = (x.view(np.uint64) for x in (self.screens, self._screens_before))
        self._greys = GREYS.astype(np.float32)
        pixels, shares = _areas(40, 21)
        self._pixels, self._shares = np.ascontiguousarray(pixels.T), np.ascontiguousarray(shares.T)
        self._narrow = np.zeros((SCREEN[0], PIXELS), np.float32)
        self._frame = np.zeros((PIXELS, PIXELS), np.uint8)

    def show(self, out: NDArray[np.uint8]) -> None:
        """Write the frame of the two ``screens`` into ``out``; what is in ``screens`` then is to be overwritten."""
        self._shrink(
            self.screens,
            self._words,
            self._words_before,
            self._greys,
            self._pixels,
            self._shares,
            LINE_SHARES,
            self._narrow,
            self._frame,
        )
        out[:] = self._frame
        self.screens, self._screens_before = self._screens_before, self.screens
        self._words, self._words_before = self._words_before, self._words


def grey_picture(*, compiled: bool) -> GreyPicture | CompiledPicture:
    """What makes an agent's frames: ``compiled`` where that is wanted and numba is there."""
    if compiled:
        with contextlib.suppress(ImportError):
            return CompiledPicture()
    return GreyPicture()


def _areas(size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """``[k, count]`` each: the pixels, of ``size``, under each of ``count`` equal areas, and their shares in it."""
    scale = size / count
    begin = np.arange(count) * scale
    pixels = np.floor(begin + 1e-9).astype(np.intp) + np.arange(int(np.ceil(scale)) + 1)[:, None]
    overlap = np.minimum(pixels + 1, begin + scale) - np.maximum(pixels, begin)
    shares = np.where(overlap > 1e-9, overlap / scale, 0).astype(np.float32)
    return np.minimum(pixels, size - 1), shares


def cores_lost() -> int:
    """How often this thread has had to leave its core to somebody else so far."""
    # where threads are not counted apart, those of the whole process are: rather too many than too few
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


class Waiter:
    """Waits for bytes from pipes: awake for a while, asleep after that.

    A core that has gone to sleep takes long to be woken, in a virtual machine half as long as an agent step. But who
    stays awake keeps a core from others, among whom may be the one it waits for. So it offers its core before every
    look at the pipe, which counts as a core lost if somebody takes it, and goes to sleep as soon as it has lost one.
    It rests then: it sleeps through the next waits too, twice as many as the last time and `LONGEST_REST` at most. A
    wait that ends awake and undisturbed, and was no mere look, makes the next rest an eighth shorter. So who is
    disturbed in more than some sixth of its waits hardly tries any more, and who is rarely disturbed hardly rests.

    A wait that is longer than the patience ends asleep, and the next `SHORT_REST` waits are slept through, so that who
    waits long every time is rarely awake in vain. That rest never grows: where all sleep all wait longer, and a moment
    in which one was held up must not keep the others asleep for seconds.

    Parameters
    ----------
    pipes
        File descriptors of all pipes that are to be waited for, to be read by nobody else.
    patience_s
        Seconds to stay awake in one wait. With 0 the pipes are read as they are, which is to sleep at once.
    cores_lost
        A count of cores lost.

    Examples
    --------
    >>> out, into = os.pipe()
    >>> waiter = Waiter([out], patience_s=0.002)
    >>> os.write(into, b"a")
    1
    >>> waiter.wait(out)
    b'a'
    >>> os.close(into)
    >>> waiter.wait(out)
    b''
    """

    def __init__(self, pipes: Sequence[int], patience_s: float, cores_lost: Callable[[], int] = cores_lost) -> None:
        self._patience_s, self._cores_lost = patience_s, cores_lost
        self._waits_asleep, self._rest = 0, 1.0
        self._alarms: dict[int, select.poll] = {}
        if patience_s:
            for pipe in pipes:
                os.set_blocking(pipe, False)
                self._alarms[pipe] = select.poll()
                self._alarms[pipe].register(pipe, select.POLLIN)

    def wait(self, pipe: int) -> bytes:
        """The next byte; nothing at all if there is nobody left who could write one."""
        if not self._patience_s:
            return os.read(pipe, 1)
        if self._waits_asleep:
            self._waits_asleep -= 1
        else:
            byte = _look(pipe)  # often it is there already, and nothing has to be counted
            if byte is None:
                byte = self._wait_awake(pipe)
            if byte is not None:
                return byte
        self._alarms[pipe].poll()
        return os.read(pipe, 1)

    def _wait_awake(self, pipe: int) -> bytes | None:
        """The next byte, unless patience or the core is lost before it comes."""
        byte, disturbed = None, False
        before, end = self._cores_lost(), time.perf_counter() + self._patience_s
        while byte is None and not disturbed and time.perf_counter() < end:
            os.sched_yield()
            byte, disturbed = _look(pipe), self._cores_lost() != before
        if disturbed:
            self._waits_asleep, self._rest = int(self._rest), min(2 * self._rest, LONGEST_REST)
        elif byte is None:
            self._waits_asleep = SHORT_REST
        else:
            self._rest = max(self._rest * 7 / 8, 1.0)
        return byte


def _look(pipe: int) -> bytes | None:
    """What a pipe that does not block has to give: a byte, nothing at all if it has ended, None if it is empty."""
    try:
        return os.read(pipe, 1)
    except BlockingIOError:
        return None


def serve(
    memory: mmap.mmap,
    count: int,
    mine: range,
    settings: dict[str, Any],
    orders: int,
    answers: int,
    patience_s: float = 0.0,
) -> None:
    """Play the consoles ``mine`` of ``count`` until nobody gives orders any more.

    Parameters
    ----------
    memory
        Shared with whoever gives the orders.
    settings
        Of every `Console`.
    orders, answers
        File descriptors: one byte comes in for each order, and one goes out when it is carried out.
    patience_s
        How long to stay awake for an order, see `Waiter`.
    """
    arrays, _ = map_arrays(memory, count, settings["colour"])
    consoles = {i: Console(**settings) for i in mine}
    waiter = Waiter([orders], patience_s)
    os.write(answers, DONE)
    while order := waiter.wait(orders):  # nothing at all: the other side has gone, in whatever way
        carry_out(order, consoles, arrays)
        os.write(answers, DONE)


def carry_out(order: bytes, consoles: dict[int, Console], arrays: dict[str, NDArray[Any]]) -> None:
    """Let those of the consoles that are chosen act, or start; what comes of it goes into the arrays."""
    for i, console in consoles.items():
        if not arrays["chosen"][i]:
            continue
        frame = arrays["frames"][i]
        if order == START:
            console.start(int(arrays["seeds"][i]), int(arrays["noops"][i]), frame)
            arrays["rewards"][i], arrays["over"][i] = 0, False
        else:
            arrays["rewards"][i], arrays["over"][i] = console.act(int(arrays["actions"][i]), frame)
        arrays["lives"][i] = console.lives


def main() -> None:
    """Read what to play from the command line, as JSON, and play."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever gives the orders
    told = json.loads(sys.argv[1])
    size = map_arrays(None, told["count"], told["settings"]["colour"])[1]
    memory = mmap.mmap(told["memory"], size)
    mine = range(told["first"], told["count"], told["step"])
    serve(memory, told["count"], mine, told["settings"], told["orders"], told["answers"], told["patience_s"])


if __name__ == "__main__":
    main()
