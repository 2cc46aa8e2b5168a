"""Atari 2600 consoles, and a process that plays some of them.

`gramian.deep.envs.atari` runs this file as a program, or plays consoles itself. It imports nothing of the package, so
that a process starts in a fraction of a second.

An episode must be a function of its seed and its actions. A reset of the game is not enough for that: in a dozen games
the console's memory depends on what was played before. Loading the cartridge again is, and costs as much as 300 agent
steps. So the console is saved once, when its game begins, and every episode starts from that state. No-ops and sticky
actions are drawn here from the episode's seed; the emulator's own random generator is never used.
"""

import json
import mmap
import os
import random
import select
import signal
import sys
import time
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
"""The grey that the emulator shows for each (NTSC) colour; the last bit of a colour has no meaning."""
LINE_SHARES = np.array([0.4, 0.4, 0.2, 0.4, 0.4], np.float32)
"""Weights of five screen lines in the two frame lines that they become; the third is in both."""
ACT, START = b"a", b"s"
"""The orders that a process receives for its chosen consoles."""
DONE = b"d"
"""Its answer."""
RESET = {"qbert"}
"""Games whose reset switch, which no state contains, is still down when they begin. They are saved before the reset,
and reset (some sixty frames) at the beginning of every episode."""


def map_arrays(memory: mmap.mmap | None, count: int, colour: bool) -> tuple[dict[str, NDArray[Any]], int]:
    """The arrays that processes share for ``count`` consoles, and their bytes; without memory the latter alone."""
    frame = (*SCREEN, 3) if colour else (PIXELS, PIXELS)
    kinds = {"seeds": "int64", "noops": "int64", "actions": "int64", "chosen": "bool", "rewards": "float32"}
    arrays, place = {}, 0
    for name, kind in (kinds | {"over": "bool", "life_lost": "bool", "frames": "uint8"}).items():
        shape = (count, *frame) if name == "frames" else (count,)
        size = int(np.prod(shape))
        if memory is not None:
            arrays[name] = np.frombuffer(memory, kind, size, place).reshape(shape)
        place += -(-size * np.dtype(kind).itemsize // 64) * 64  # no two arrays in one cache line
    return arrays, place


def rom(game: str) -> Path:
    """The cartridge of a game (by ALE's name)."""
    path = get_rom_path(game)
    if path is None:
        raise FileNotFoundError(f"ale-py has no cartridge for {game!r}")
    return Path(path)


def flavours(game: str) -> list[tuple[int, int]]:
    """Every mode and difficulty that ALE offers for a game, first those in which the console is switched on."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.loadROM(rom(game))
    return [(mode, hard) for mode in ale.getAvailableModes() for hard in ale.getAvailableDifficulties()]


class Console:
    """One game by ALE's name, as `gramian.deep.envs.AtariOptions` says; without a ``flavour`` as it is switched on."""

    def __init__(
        self,
        game: str,
        *,
        frame_skip: int = 4,
        sticky_probability: float = 0.0,
        fire_reset: bool = False,
        noop_after_life_loss: bool = False,
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
        self._look = self._ale.getScreenRGB if colour else self._ale.getScreen
        self._picture = ColourPicture() if colour else GreyPicture()
        self._first_screen = self._look()  # which is no part of a state
        if not colour and not np.array_equal(GREYS[self._first_screen], self._ale.getScreenGrayscale()):
            raise RuntimeError(f"this ale-py shows {game!r} in other greys than ale-py 0.12 does")
        self._actions = self._ale.getLegalActionSet() if full_actions else self._ale.getMinimalActionSet()
        # FIRE is action 1 wherever there is one
        self._opening = self._actions[1:3] if fire_reset and ale_py.Action.FIRE in self._actions else []
        self._noop_after_life_loss = noop_after_life_loss
        self._frame_skip, self._sticky = frame_skip, sticky_probability
        self._chance = random.Random(0)
        self._before, self._lives = ale_py.Action.NOOP, 0

    @property
    def actions(self) -> int:
        """The number of actions."""
        return len(self._actions)

    def start(self, seed: int, noops: int, out: NDArray[np.uint8]) -> None:
        """Begin episode ``seed`` with ``noops`` frames of no-op; the first frame is written into ``out``."""
        self._chance.seed(seed)
        self._begin()
        for _ in range(noops):
            self._press(ale_py.Action.NOOP)
            self._picture.screens[:] = self._look()
            if self._ale.game_over():
                self._begin()
        for press in self._opening:
            if self._hold(press)[1]:
                self._begin()
        self._lives = self._ale.lives()
        self._picture.show(out)

    def act(self, action: int, out: NDArray[np.uint8]) -> tuple[float, bool, bool]:
        """Hold an action for a frame skip: the reward, whether the game is over, whether a life was lost.

        The frame goes into ``out``.
        """
        reward, over = self._hold(self._actions[action])
        lives = self._ale.lives()
        lost = lives < self._lives
        if self._noop_after_life_loss:
            lost = lost and not over and lives > 0
            if lost:
                self._hold(ale_py.Action.NOOP)
                lives = self._ale.lives()
        self._lives = lives
        self._picture.show(out)
        return float(reward), over, lost

    def _hold(self, press: ale_py.Action) -> tuple[int, bool]:
        """Hold a button for a frame skip and keep the last two screens: the reward, and whether the game is over."""
        reward, screens, seen = 0, self._picture.screens, 0
        for left in range(self._frame_skip - 1, -1, -1):
            reward += self._press(press)
            over = self._ale.game_over()
            if left < 2 or over:
                self._look(screens[seen])
                seen += 1
            if over:
                break
        if seen == 1:
            screens[1] = screens[0]
        return reward, over

    def _begin(self) -> None:
        self._ale.restoreSystemState(self._beginning)
        if self._resets:
            self._ale.reset_game()
        self._picture.screens[:] = self._first_screen
        self._before = ale_py.Action.NOOP

    def _press(self, action: ale_py.Action) -> int:
        """Play one frame; return its reward."""
        if not self._sticky or self._chance.random() >= self._sticky:
            self._before = action
        return int(self._ale.act(self._before))


class ColourPicture:
    """Two colour screens ``[2, 210, 160, 3]``, shown as the brighter of both at each pixel."""

    def __init__(self) -> None:
        self.screens = np.zeros((2, *SCREEN, 3), np.uint8)

    def show(self, out: NDArray[np.uint8]) -> None:
        """Write the frame of the two ``screens`` into ``out``."""
        np.maximum(self.screens[0], self.screens[1], out=out)


class GreyPicture:
    """Two screens of colour numbers ``[2, 210, 160]``, shown as the brighter grey of both, averaged to 84×84.

    The averages equal OpenCV's ``INTER_AREA`` bit for bit: float32, one term after the other, within lines first. 40
    pixels of a line become 21, so that a screen has 840 independent pieces; only those that differ from the screens
    before are computed again. Five lines become two, with weights 2, 2, 1 and 1, 2, 2 fifths. In Seaquest OpenCV,
    with the greys of both screens looked up first, takes five times as long.
    """

    _two_greys = (GREYS[:, None] * np.uint16(256) + GREYS).ravel()
    """Greys of two neighbours by their colours: half as many to look up. (Of either byte order.)"""

    def __init__(self) -> None:
        self.screens = np.zeros((2, *SCREEN), np.uint8)
        self._words = self.screens.view(np.uint64).ravel()  # eight pixels at a time to compare
        self._words_before = np.zeros_like(self._words)
        self._pairs = self.screens.view(np.uint16).reshape(2, 840, 20)  # two at a time to find their greys
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
        """Write the frame of the two ``screens`` into ``out``."""
        np.not_equal(self._words, self._words_before, out=self._differ)
        (words,) = self._differ.nonzero()
        if words.size:
            self._changed.fill(False)
            self._changed[self._piece_of_word.take(words)] = True
            (pieces,) = self._changed.nonzero()
            self._shrink(pieces)
            self._words_before[:] = self._words
        out.reshape(42, 2, PIXELS)[:] = self._grey.reshape(2, 42, PIXELS).swapaxes(0, 1)

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


def _areas(size: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """``[k, count]`` each: the pixels, of ``size``, under each of ``count`` equal areas, and their shares in it."""
    scale = size / count
    begin = np.arange(count) * scale
    pixels = np.floor(begin + 1e-9).astype(np.intp) + np.arange(int(np.ceil(scale)) + 1)[:, None]
    overlap = np.minimum(pixels + 1, begin + scale) - np.maximum(pixels, begin)
    shares = np.where(overlap > 1e-9, overlap / scale, 0).astype(np.float32)
    return np.minimum(pixels, size - 1), shares


def read_byte(pipe: int, spin_s: float = 0.0) -> bytes:
    """Next byte of ``pipe``, empty if its other end is closed; spins for ``spin_s`` first, for waking is slow."""
    if spin_s:
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        end = time.perf_counter() + spin_s
        while not ready.poll(0) and time.perf_counter() < end:
            os.sched_yield()
    return os.read(pipe, 1)


def carry_out(order: bytes, consoles: dict[int, Console], arrays: dict[str, NDArray[Any]]) -> None:
    """Let the chosen of these consoles act or start; what comes of it goes into the arrays."""
    for i, console in consoles.items():
        if not arrays["chosen"][i]:
            continue
        frame, outcome = arrays["frames"][i], (0.0, False, False)
        if order == START:
            console.start(int(arrays["seeds"][i]), int(arrays["noops"][i]), frame)
        else:
            outcome = console.act(int(arrays["actions"][i]), frame)
        arrays["rewards"][i], arrays["over"][i], arrays["life_lost"][i] = outcome


def main() -> None:
    """Play consoles ``first``, ``first + step``, … in shared arrays: a byte in for an order, one out when done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that gives the orders
    told = json.loads(sys.argv[1])
    count, colour = told["count"], told["settings"]["colour"]
    arrays, _ = map_arrays(mmap.mmap(told["memory"], map_arrays(None, count, colour)[1]), count, colour)
    consoles = {i: Console(**told["settings"]) for i in range(told["first"], count, told["step"])}
    while order := read_byte(told["orders"], told["spin_s"]):
        carry_out(order, consoles, arrays)
        try:
            os.write(told["answers"], DONE)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
