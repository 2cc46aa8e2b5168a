"""Atari 2600 consoles, and a process that plays some of them.

`gramian.deep.environments.atari` runs this file as a program, once for each core. It imports nothing of the package,
so that a process is there in a fraction of a second.

An episode must be a function of its seed and its actions. Resetting a game does not give that: in a dozen games the
console's memory survives it. Loading the cartridge again does, and costs as much as some three hundred agent steps. So
a console is saved once, when its game is about to begin, and every episode starts from that state. What is random in
an episode (no-ops at its beginning, sticky actions) is drawn from its seed here, and the emulator's own generator is
never asked.
"""

import json
import mmap
import os
import random
import signal
import sys
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
ACT, START = b"a", b"s"
"""What a process is told to do with its consoles that are chosen."""
DONE = b"d"
"""What it answers."""
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
        self._colour = colour
        self._first_screen = self._screen()  # which is no part of a state
        self._shrink = Shrinker(self._first_screen.shape[:2])
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
        screen = self._first_screen
        presses = [ale_py.Action.NOOP] * noops + ([] if self._fire is None else [self._fire])
        for press in presses:
            self._press(press)
            screen = self._screen()
            if self._ale.game_over():
                self._begin()
                screen = self._first_screen
        self._show(screen, out)

    def act(self, action: int, out: NDArray[np.uint8]) -> tuple[float, bool]:
        """Hold an action for a frame skip: the reward, and whether the game is over; the frame goes into ``out``."""
        reward, press = 0, self._actions[action]
        last = before = None
        for left in range(self._frame_skip - 1, -1, -1):
            reward += self._press(press)
            over = self._ale.game_over()
            if left < 2 or over:
                before, last = last, self._screen()
            if over:
                break
        if last is None:
            raise ValueError("a frame skip of no frames")
        self._show(last if before is None else np.maximum(last, before), out)
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

    def _screen(self) -> NDArray[np.uint8]:
        return self._ale.getScreenRGB() if self._colour else self._ale.getScreenGrayscale()

    def _show(self, screen: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        if self._colour:
            out[:] = screen
        else:
            self._shrink(screen, out)


class Shrinker:
    """Averages grey screens over areas, to 84×84, as OpenCV's ``INTER_AREA`` does, to the last bit.

    Of a screen only the lines that differ from the screen before are computed anew: a tenth of them in most games.

    Parameters
    ----------
    shape
        Of a screen; its width is a multiple of 8.

    Examples
    --------
    >>> small = np.zeros((84, 84), np.uint8)
    >>> Shrinker((210, 160))(np.full((210, 160), 7, np.uint8), small)
    >>> small.min(), small.max()
    (np.uint8(7), np.uint8(7))
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        height, width = shape
        self._horizontal = list(zip(*_areas(width), strict=True))
        self._vertical = [
            (rows, np.tile(shares[:, None], (1, PIXELS))) for rows, shares in zip(*_areas(height), strict=True)
        ]
        self._before = np.zeros(shape, np.uint8)
        self._words = self._before.view(np.uint64)
        self._narrow = np.zeros((height, PIXELS), np.float32)  # the screen before, shrunk horizontally
        self._grey, self._term = np.empty((2, PIXELS, PIXELS), np.float32)

    def __call__(self, screen: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
        """Shrink ``screen`` into ``out``."""
        # One term after the other in float32, rows within columns, as OpenCV adds them up.
        (changed,) = (screen.view(np.uint64) != self._words).any(axis=1).nonzero()
        if changed.size:
            lines = screen[changed]
            self._before[changed] = lines
            narrow = np.zeros((changed.size, PIXELS), np.float32)
            for columns, shares in self._horizontal:
                narrow += lines[:, columns] * shares
            self._narrow[changed] = narrow
        for number, (rows, shares) in enumerate(self._vertical):
            self._narrow.take(rows, axis=0, out=self._term if number else self._grey, mode="clip")
            if number:
                self._term *= shares
                self._grey += self._term
            else:
                self._grey *= shares
        np.rint(self._grey, out=self._grey)
        out[:] = self._grey


def _areas(size: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """``[k, 84]`` each: the pixels, of ``size``, under each of 84 areas of equal width, and their shares in it."""
    scale = size / PIXELS
    begin = np.arange(PIXELS) * scale
    pixels = np.floor(begin + 1e-9).astype(np.intp) + np.arange(int(np.ceil(scale)) + 1)[:, None]
    overlap = np.minimum(pixels + 1, begin + scale) - np.maximum(pixels, begin)
    shares = np.where(overlap > 1e-9, overlap / scale, 0).astype(np.float32)
    used = shares.any(axis=1)
    return np.minimum(pixels, size - 1)[used], shares[used]


def serve(memory: mmap.mmap, count: int, mine: range, settings: dict[str, Any], orders: int, answers: int) -> None:
    """Play the consoles ``mine`` of ``count`` until nobody gives orders any more.

    Parameters
    ----------
    memory
        Shared with whoever gives the orders.
    settings
        Of every `Console`.
    orders, answers
        File descriptors: one byte comes in for each order, and one goes out when it is carried out.
    """
    arrays, _ = map_arrays(memory, count, settings["colour"])
    consoles = {i: Console(**settings) for i in mine}
    os.write(answers, DONE)
    while order := os.read(orders, 1):  # nothing at all: the other side has gone, in whatever way
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
        os.write(answers, DONE)


def main() -> None:
    """Read what to play from the command line, as JSON, and play."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever gives the orders
    told = json.loads(sys.argv[1])
    size = map_arrays(None, told["count"], told["settings"]["colour"])[1]
    memory = mmap.mmap(told["memory"], size)
    mine = range(told["first"], told["count"], told["step"])
    serve(memory, told["count"], mine, told["settings"], told["orders"], told["answers"])


if __name__ == "__main__":
    main()
