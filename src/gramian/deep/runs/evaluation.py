"""A trained run plays games that it has not been trained on."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.core.cores import cores
from gramian.core.errors import UserError
from gramian.core.progress import Progress
from gramian.deep.agent.streams import Stream, bits, game_seeds, integers, uniform
from gramian.deep.envs import EnvironmentOptions, Flavour, Games, Players, make_games
from gramian.deep.runs.load import Run, check_epsilon

AT_ONCE = 16
"""Games that are played at once where nothing else is asked for."""


@dataclass(frozen=True)
class PlayedGame:
    """One game from its beginning to its end."""

    episode: int
    """Its number in the evaluation."""
    raw_return: float
    """Sum of the game's own rewards over the whole game."""
    truncated: bool
    """The time limit ended it."""
    seed: int
    """Of the emulator."""
    taken: NDArray[np.uint8]
    """The actions, with which `seed` makes the game again."""

    @property
    def length_agent_steps(self) -> int:
        """Number of its actions."""
        return self.taken.size


def evaluate(
    run: Run,
    episodes: int = 30,
    *,
    epsilon: float = 0.01,
    seed: int = 0,
    options: EnvironmentOptions | None = None,
    at_once: int = AT_ONCE,
    flavour: Flavour | None = None,
) -> list[PlayedGame]:
    """Let a run play ``episodes`` whole games.

    The seed and the random actions of game i are functions of the run's seed, ``seed`` and i. Every game is played to
    its end and counts once, so that short games do not count for more than long ones, however many are played at once.
    The seeds come from a random stream of their own: they are not those of the training.

    Parameters
    ----------
    run
        As `load_run` gives it.
    episodes
        How many games.
    epsilon
        Share of random actions.
    seed
        Another seed gives other games.
    options
        Settings of the emulators; by default those that the run was trained with.
    at_once
        How many games are played side by side.
    flavour
        A mode and a difficulty of an Atari game; by default those of the training.

    Raises
    ------
    UserError
        If a number is out of range, if the weights are not finite, or if ``options`` change what the run sees.

    Examples
    --------
    >>> import tempfile
    >>> from gramian.deep import Arm, Config, load_preset, load_run, population, train
    >>> config = Config("tiny", load_preset("tiny"), population(["cartpole"], [Arm("dqn")], [0]))
    >>> run = load_run(train(config, tempfile.mkdtemp()) / "cartpole-dqn-s0")
    >>> games = evaluate(run, episodes=3)
    >>> [game.episode for game in games], all(game.raw_return == game.length_agent_steps for game in games)
    ([0, 1, 2], True)
    """
    for name, value in (("episodes", episodes), ("at_once", at_once)):
        if value < 1:
            raise UserError(f"{name} is {value}; it must be at least 1")
    check_epsilon(epsilon)
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}; it must be a whole number from 0 to 2^63 - 1")
    if not run.finite:
        raise UserError(f"the weights of run '{run.spec.name}' are not finite: it diverged, so that it cannot play")
    emulator = make_player(run, options, min(episodes, at_once), flavour)
    where = "" if flavour is None else f" in mode {flavour}"
    try:
        with Progress(episodes, f"evaluating{where}", unit="game") as progress:
            return _play(run, emulator, min(episodes, at_once), episodes, epsilon, seed, progress)
    finally:
        emulator.close()


def summary(returns: Sequence[float]) -> str:
    """Mean ± standard error (which one number does not have), median, least and most, in one line."""
    error = f" ± {statistics.stdev(returns) / math.sqrt(len(returns)):.2f}" if len(returns) > 1 else ""
    return (
        f"mean {statistics.fmean(returns):.2f}{error}, median {statistics.median(returns):.2f}, "
        f"min {min(returns):.2f}, max {max(returns):.2f}"
    )


def make_player(run: Run, options: EnvironmentOptions | None, count: int, flavour: Flavour | None = None) -> Games:
    """``count`` copies of a run's game, in another flavour where one is named."""
    game = run.spec.game
    games = make_games(game, count, options or run.config.settings.environment, min(count, cores()), flavour=flavour)
    for what, given, own in (
        ("observations", games.observation.shape, run.observation.shape),
        ("actions", games.actions, run.actions),
    ):
        if given != own:
            games.close()
            raise UserError(
                f"{what} of '{game.name}' are {given} with these settings and {own} in the run '{run.spec.name}'; "
                "leave the stack and the set of actions as they were in the training"
            )
    return games


def _play(
    run: Run, emulator: Games, slots: int, episodes: int, epsilon: float, seed: int, progress: Progress
) -> list[PlayedGame]:
    numbers = np.full(slots, -1)  # of the game that each slot plays; -1 where there is none left for it
    returns = np.zeros(slots)
    taken: list[bytearray] = [bytearray() for _ in range(slots)]
    games: list[PlayedGame] = []
    begun = 0

    def begin(those: NDArray[np.int64]) -> NDArray[np.int64]:
        # The emulators step all slots together, so that those without a game play one that does not count.
        nonlocal begun
        following = begun + np.arange(those.size)
        numbers[those] = np.where(following < episodes, following, -1)
        begun += those.size
        returns[those] = 0.0
        for slot in those.tolist():
            taken[slot] = bytearray()
        return seeds()[those]

    def seeds() -> NDArray[np.int64]:
        return game_seeds(bits(run.spec.seed, Stream.EVALUATE, seed, numbers))

    players = Players(emulator, slots, begin)
    while len(games) < episodes:
        observations, _ = players.observe()
        actions = run.q_values(observations).argmax(1).cpu().numpy()
        draws = bits(run.spec.seed, Stream.EVALUATE, seed, numbers, players.lengths)
        actions = np.where(uniform(draws) < epsilon, integers(draws, emulator.actions), actions)
        outcome, ended = players.step(actions)
        returns += outcome.rewards
        for slot, action in enumerate(actions.tolist()):
            taken[slot].append(action)
        for slot in ended[numbers[ended] >= 0].tolist():
            games.append(
                PlayedGame(
                    episode=int(numbers[slot]),
                    raw_return=float(returns[slot]),
                    truncated=not outcome.terminated[slot],
                    seed=int(seeds()[slot]),
                    taken=np.frombuffer(bytes(taken[slot]), np.uint8),
                )
            )
            progress.advance(note=f"mean so far {statistics.fmean(game.raw_return for game in games):.1f}")
    return sorted(games, key=lambda game: game.episode)
