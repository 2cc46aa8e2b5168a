"""Our console beside an older emulator: pictures, rewards, lives and ends of the same games.

When Dopamine's first curves were made its emulator was atari-py. Here a library of that plays what our console plays,
frame by frame with the same buttons pressed, those that stuck among them, and shows it as Dopamine does: the brighter
of the last two of four grey screens, shrunk by OpenCV. The table counts the agent steps at which something differs, the
pictures that nobody sees, at the ends of games, left aside. An older emulator does not begin every game alike, and ours
does (`benchmarks.starts`); the games that begin with the same 128 bytes of memory are compared. Both have our
cartridge. Where that of the older one is another, a second row lays it beside ours, both in the older one.

    pip install --no-deps --target older/0.2.6 atari-py==0.2.6
    python -m benchmarks.emulators older/0.2.6 --games breakout pong --steps 30000 --out FOLDER

pip builds the library, with a C++ compiler and CMake. In Breakout a player follows the ball, apart from one step in
ten, so that games are long; elsewhere it plays at random.
"""

import ctypes
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ale_py
import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import Parser, check_file, complain, new_folder, whole
from benchmarks.dopamine import present
from benchmarks.starts import FRAME_SKIP, STICKY_PROBABILITY, memory
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.envs.emulator import PIXELS, SCREEN, Console, rom
from gramian.report import reference

LIBRARY = "libale_c.so"
FILES = ("emulators.csv", "emulators.md")
BREAKOUT, NOOP, FIRE, RIGHT, LEFT = "breakout", 0, 1, 2, 3
BALL_X, BALL_Y, PADDLE_X = 99, 101, 72
"""Where Breakout's memory has them; a ball that is not in play has y = 0."""
RANDOM_SHARE, NEAR = 0.1, 3


@dataclass(frozen=True)
class Row:
    """One game, played by both."""

    older: str
    game: str
    games: int
    """Begun."""
    alike: int
    """Of these, with the same memory. What follows is of these."""
    agent_steps: int
    mean_return: float
    """Of those that ended; not a number where none did."""
    pictures: int
    """Agent steps at which they differ; so are the next four."""
    rewards: int
    lives: int
    ends: int
    memories: int


class Recorded(Console):
    """Our console, which writes down what was pressed, frame by frame, whatever was asked for."""

    def __init__(self, game: str) -> None:
        super().__init__(game, frame_skip=FRAME_SKIP, sticky_probability=STICKY_PROBABILITY)
        self.pressed: list[int] = []

    def _press(self, action: ale_py.Action) -> int:
        reward = super()._press(action)
        self.pressed.append(int(self._before.value))
        return reward

    def begin(self, seed: int, out: NDArray[np.uint8]) -> None:
        """Begin a game."""
        self.start(seed, 0, out)

    def play(self, action: int, out: NDArray[np.uint8]) -> tuple[float, bool]:
        """Hold an action for a frame skip."""
        self.pressed.clear()
        return self.act(action, out)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Its 128 bytes."""
        return memory(self)


class Older:
    """An emulator in a library with ALE's C interface, and Dopamine's way to look at it."""

    def __init__(self, library: Path, cartridge: Path) -> None:
        try:
            self._ale = ctypes.CDLL(str(library.resolve()))
        except OSError as error:
            raise UserError(f"cannot load '{library}': {error}") from error
        handle, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
        for name, arguments, result in (
            ("ALE_new", [], handle),
            ("setLoggerMode", [number], None),
            ("setInt", [handle, text, number], None),
            ("setFloat", [handle, text, ctypes.c_float], None),
            ("loadROM", [handle, text], None),
            ("reset_game", [handle], None),
            ("act", [handle, number], number),
            ("game_over", [handle], ctypes.c_bool),
            ("lives", [handle], number),
            ("getMinimalActionSize", [handle], number),
            ("getMinimalActionSet", [handle, handle], None),
            ("getRAM", [handle, handle], None),
            ("getScreenGrayscale", [handle, handle], None),
        ):
            try:
                function = getattr(self._ale, name)
            except AttributeError as error:
                raise UserError(f"'{library}' is no library of an emulator: it has no {name}") from error
            function.argtypes, function.restype = arguments, result
        self._ale.setLoggerMode(2)  # errors alone
        self._console = self._ale.ALE_new()
        self._ale.setInt(self._console, b"random_seed", 1)  # 0 would be the time of day
        self._ale.setFloat(self._console, b"repeat_action_probability", 0.0)
        self._ale.loadROM(self._console, str(cartridge).encode())
        self._screens = np.zeros((2, *SCREEN), np.uint8)
        self._memory = np.zeros(128, np.uint8)

    def start(self) -> NDArray[np.uint8]:
        """Begin a game; gives the first picture."""
        self._ale.reset_game(self._console)
        self._screens[1] = 0
        self._look(0)
        return self._picture()

    def act(self, pressed: Sequence[int]) -> tuple[float, bool, NDArray[np.uint8]]:
        """Press so many buttons, one at each frame: reward, whether the game is over, and the picture."""
        reward = 0
        for frame, button in enumerate(pressed):
            reward += self._ale.act(self._console, button)
            if self._ale.game_over(self._console):
                return float(reward), True, self._picture()
            if frame >= FRAME_SKIP - 2:
                self._look(frame - (FRAME_SKIP - 2))
        return float(reward), False, self._picture()

    @property
    def buttons(self) -> list[int]:
        """What the game responds to."""
        buttons = np.zeros(self._ale.getMinimalActionSize(self._console), np.intc)
        self._ale.getMinimalActionSet(self._console, buttons.ctypes.data)
        return [int(button) for button in buttons]

    @property
    def lives(self) -> int:
        """Lives left."""
        return int(self._ale.lives(self._console))

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Its 128 bytes."""
        self._ale.getRAM(self._console, self._memory.ctypes.data)
        return self._memory.copy()

    def _look(self, place: int) -> None:
        self._ale.getScreenGrayscale(self._console, self._screens[place].ctypes.data)

    def _picture(self) -> NDArray[np.uint8]:
        brighter = self._screens.max(0)
        return np.asarray(cv2.resize(brighter, (PIXELS, PIXELS), interpolation=cv2.INTER_AREA))


class Played(Older):
    """An older emulator that is played as a console is, with actions that stick."""

    def __init__(self, library: Path, cartridge: Path) -> None:
        super().__init__(library, cartridge)
        self._buttons = self.buttons
        self.actions = len(self._buttons)
        self.pressed: list[int] = []

    def begin(self, seed: int, out: NDArray[np.uint8]) -> None:
        """Begin a game."""
        self._chance, self._before = random.Random(seed), NOOP
        out[:] = self.start()

    def play(self, action: int, out: NDArray[np.uint8]) -> tuple[float, bool]:
        """Hold an action for a frame skip."""
        self.pressed = []
        for _ in range(FRAME_SKIP):
            if self._chance.random() >= STICKY_PROBABILITY:
                self._before = self._buttons[action]
            self.pressed.append(self._before)
        reward, over, out[:] = self.act(self.pressed)
        return reward, over


def choose(game: str, memory: NDArray[np.uint8], actions: int, generator: np.random.Generator) -> int:
    """The player's next action."""
    if game != BREAKOUT or generator.random() < RANDOM_SHARE:
        return int(generator.integers(actions))
    if not memory[BALL_Y]:
        return FIRE
    ahead = int(memory[BALL_X]) - int(memory[PADDLE_X]) - 6
    return NOOP if abs(ahead) <= NEAR else RIGHT if ahead > 0 else LEFT


def compare(name: str, game: str, first: Recorded | Played, older: Older, agent_steps: int) -> Row:
    """Play so many agent steps of games that begin alike, or as many games as would take them if they lasted 100."""
    generator, frame = np.random.default_rng(0), np.zeros((PIXELS, PIXELS), np.uint8)
    begun = alike = steps = 0
    differ = dict.fromkeys(("pictures", "rewards", "lives", "ends", "memories"), 0)
    returns = []
    while steps < agent_steps and begun < 1 + agent_steps // 100:
        first.begin(begun, frame)
        picture, total, over = older.start(), 0.0, False
        begun += 1
        if not np.array_equal(first.memory, older.memory):
            continue
        alike += 1
        differ["pictures"] += not np.array_equal(picture, frame)
        while not over and steps < agent_steps:
            reward, over = first.play(choose(game, first.memory, first.actions, generator), frame)
            other_reward, other_over, picture = older.act(first.pressed)
            differ["pictures"] += not over and not np.array_equal(picture, frame)
            differ["rewards"] += reward != other_reward
            differ["lives"] += first.lives != older.lives
            differ["ends"] += over != other_over
            differ["memories"] += not np.array_equal(first.memory, older.memory)
            total, steps = total + reward, steps + 1
        if over:
            returns.append(total)
    return Row(name, game, begun, alike, steps, float(np.mean(returns)) if returns else math.nan, **differ)


def compare_all(name: str, folder: Path, library: Path, game: str, agent_steps: int) -> list[Row]:
    """Our console beside the library and, where its package has another cartridge, that beside ours."""
    ours = rom(game)
    rows = [compare(name, game, Recorded(game), Older(library, ours), agent_steps)]
    for own in sorted(folder.rglob(ours.name)):
        if own.read_bytes() != ours.read_bytes():
            both = f"{name}, with either cartridge"
            rows.append(compare(both, game, Played(library, ours), Older(library, own), agent_steps))
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| older emulator | game | games | begun alike | their agent steps | mean return | differ: pictures, rewards, "
        "lives, ends, memories |",
        "| --- | --- |" + " ---: |" * 5,
    ]
    for row in rows:
        counts = (row.pictures, row.rewards, row.lives, row.ends, row.memories)
        cells = [
            row.older,
            reference.title(row.game),
            *(f"{number:,}" for number in (row.games, row.alike, row.agent_steps)),
            "–" if math.isnan(row.mean_return) else f"{row.mean_return:.1f}".replace("-", "−"),
            ", ".join(f"{number}" for number in counts) if row.alike else "–",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write it where a folder is named; the exit code."""
    parser = Parser("emulators", __doc__)
    parser.add_argument("older", nargs="+", type=Path, metavar="FOLDER", help=f"with an atari-py, so a {LIBRARY}")
    parser.add_argument("--games", nargs="+", default=[BREAKOUT], metavar="GAME", help="of Atari")
    parser.add_argument("--steps", type=whole(1, 10**8), default=30_000, help="agent steps of each game")
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the table into it")
    options = parser.parse_args(arguments)
    try:
        for name in FILES if options.out else ():
            check_file(options.out / name)
        libraries: dict[str, tuple[Path, Path]] = {}
        for folder in options.older:
            name, found = folder.absolute().name, sorted(folder.rglob(LIBRARY))
            if not found:
                raise UserError(f"no {LIBRARY} in '{folder}'; let pip install an atari-py into it, see --help")
            if name in libraries:
                raise UserError(f"two folders are called '{name}', by which the table tells them apart; rename one")
            libraries[name] = folder, found[0]
        games = [find_game(name) for name in options.games]
        for game in games:
            if game.kind != "atari":
                raise UserError(f"{game.name} is no Atari game; an older emulator has none like it")
        rows = []
        for name, (folder, library) in libraries.items():
            for game in games:
                rows += compare_all(name, folder, library, game.id, options.steps)
                print(f"{name}: {game.name}", file=sys.stderr)
        present(markdown(rows), rows, FILES, options.out)
    except UserError as error:
        complain("emulators", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
