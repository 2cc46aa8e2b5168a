"""A game made into a video: played again from its seed and its actions, and drawn."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError, WorkFailed, unknown
from gramian.core.files import replacing
from gramian.core.games import Game
from gramian.deep.envs import EnvironmentOptions, Games, make_games
from gramian.deep.runs.evaluation import PlayedGame
from gramian.deep.runs.load import Run

Picture = NDArray[np.uint8]
"""``[height, width, 3]``; both are even once it is enlarged, as MP4 asks for."""

FRAMES_PER_SECOND = {"atari": 60, "minatar": 10, "cartpole": 50, "gym": 30}
"""At which pace each kind of game is shown; for Atari these are emulator frames."""
ATARI_SCALE, MINATAR_CELL = 3, 32
CHANNEL_COLOURS = np.frombuffer(
    bytes.fromhex("e69f00 56b4e9 009e73 f0e442 0072b2 d55e00 cc79a7 eeeeee 9467bd 8c564b"), np.uint8
).reshape(-1, 3)
"""One for each channel of a MinAtar game: Okabe and Ito's, which are safe for colour-blind people, and some more."""


def check_video(path: Path) -> None:
    """Make sure that a video can be written to ``path``."""
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise unknown("kind of video", path.suffix or path.name, _WRITERS)
    if path.is_dir():
        raise UserError(f"'{path}' is a folder; name a file for the video")
    try:
        if suffix == ".mp4":
            import imageio_ffmpeg  # noqa: F401
        import PIL  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            f"'{suffix}' videos need the package '{error.name}', which is not installed; "
            "it comes with: pip install 'gramian[lab]'"
        ) from error


def record(run: Run, game: PlayedGame, path: Path, options: EnvironmentOptions | None = None) -> int:
    """Write a video of a game that ``run`` played; give its number of pictures.

    The game is played again from its seed and its actions: Atari in colour on its whole screen, MinAtar with a colour
    for each channel, CartPole as a drawing, other environments of Gymnasium as they render themselves. ``.mp4`` is
    written as it is played; a ``.gif`` is held in memory first.
    """
    check_video(path)
    options = options or run.config.settings.environment
    games, draw, scale = _screen(run.spec.game, options)
    speed = FRAMES_PER_SECOND[run.spec.game.kind] / games.frames_per_step
    shown = 0

    def pictures() -> Iterator[Picture]:
        nonlocal shown
        for frame in _frames(games, game):
            shown += 1
            yield draw(frame)

    try:
        with replacing(path) as temporary:
            _WRITERS[path.suffix.lower()](temporary, pictures(), scale, speed)
    finally:
        games.close()
    return shown


def _frames(games: Games, game: PlayedGame) -> Iterator[NDArray[Any]]:
    """The frames of a game, the first one included."""
    yield games.start(np.arange(1), np.array([game.seed]))[0]
    total = 0.0
    for action in game.taken:
        games.send(np.array([action], np.int64))
        outcome = games.recv()
        total += float(outcome.rewards[0])
        yield outcome.frames[0]
    if total != game.raw_return:
        raise WorkFailed(f"the game to record came out at {total}, not at {game.raw_return}: the emulator has changed")


def _screen(game: Game, options: EnvironmentOptions) -> tuple[Games, Callable[[NDArray[Any]], Picture], int]:
    """An emulator of one game, what makes a picture of its frames, and how many times the picture is enlarged."""
    if game.kind == "atari":
        from gramian.deep.envs.atari import AtariGames

        return AtariGames(game.id, 1, options.atari, colour=True), np.asarray, ATARI_SCALE
    if game.kind == "gym":
        from gramian.deep.envs.gym import GymGames

        return GymGames(game.id, 1, render=True), _even, 1
    return make_games(game, 1, options), _minatar_picture if game.kind == "minatar" else _cartpole_picture, 1


def _even(picture: Picture) -> Picture:
    height, width, _ = picture.shape
    return picture[: height // 2 * 2, : width // 2 * 2]


def _minatar_picture(channels: NDArray[np.uint8]) -> Picture:
    """Cells ``[C, height, width]`` of 0 and 1 in the colours of their channels; where several are, the last one."""
    cells = np.zeros((*channels.shape[1:], 3), np.uint8)
    for channel, colour in zip(channels, CHANNEL_COLOURS, strict=False):
        cells[channel != 0] = colour
    picture = _enlarged(cells, MINATAR_CELL)
    picture[::MINATAR_CELL], picture[:, ::MINATAR_CELL] = 32, 32  # lines between the cells
    return picture


def _cartpole_picture(state: NDArray[np.float32]) -> Picture:
    from PIL import Image, ImageDraw

    width, height, ground, reach = 480, 240, 200, 2.4  # the cart may go 2.4 units to either side
    per_unit = width / (2 * reach * 1.1)
    x = width / 2 + float(state[0]) * per_unit
    angle, length = float(state[2]), 1.0 * per_unit
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    pen.line([(0, ground), (width, ground)], fill="black", width=2)
    pen.rectangle([x - 25, ground - 24, x + 25, ground - 2], fill="black")
    tip = (x + length * np.sin(angle), ground - 24 - length * np.cos(angle))
    pen.line([(x, ground - 24), tip], fill=(213, 94, 0), width=8)
    return np.asarray(image)


def _enlarged(picture: NDArray[np.uint8], times: int) -> Picture:
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def _write_gif(path: Path, pictures: Iterator[Picture], scale: int, speed: float) -> None:
    from PIL import Image

    def images() -> Iterator[Image.Image]:
        for picture in pictures:
            image = Image.fromarray(picture).quantize(dither=Image.Dither.NONE)
            yield image.resize((scale * image.width, scale * image.height), Image.Resampling.NEAREST)

    every = images()
    duration_ms = max(20, round(100 / speed) * 10)  # a GIF counts in 10 ms, and viewers slow down what is faster
    next(every).save(path, "GIF", save_all=True, append_images=every, duration=duration_ms, loop=0)


def _write_mp4(path: Path, pictures: Iterator[Picture], scale: int, speed: float) -> None:
    import imageio_ffmpeg

    enlarged = (np.ascontiguousarray(_enlarged(picture, scale)) for picture in pictures)
    first = next(enlarged)
    height, width, _ = first.shape
    writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=speed, macro_block_size=2, quality=8)
    writer.send(None)
    try:
        for picture in chain([first], enlarged):
            writer.send(picture)
    finally:
        writer.close()


_WRITERS: dict[str, Callable[[Path, Iterator[Picture], int, float], None]] = {".gif": _write_gif, ".mp4": _write_mp4}
