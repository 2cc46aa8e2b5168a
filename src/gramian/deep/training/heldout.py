"""What the features of a population look like on states that no run learns from.

A random player visits the states, as for the average Q-value of Mnih et al. (2013). They are a function of the game and
its settings alone: the same for all arms and seeds, and after a resume.
"""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.core.cores import cores
from gramian.core.games import Game
from gramian.deep.agent.learner import Learner
from gramian.deep.agent.networks import body
from gramian.deep.agent.streams import Stream, bits, game_seeds, integers
from gramian.deep.envs import EnvironmentOptions, Players, make_games
from gramian.deep.training.config import Config
from gramian.representation.measures import FeatureStatistics

PLAYERS = 16
SPACING_AGENT_STEPS = 4
"""Steps between two states of one player: the ones between are all too similar."""
PATIENCE = 5
"""How many times longer than usual to look for states that differ."""
BATCH_SIZES = {"cpu": 256, "cuda": 1024}
"""States that go through the network at once: what fits the cache of a CPU, and what keeps a GPU busy."""


def held_out_states(game: Game, options: EnvironmentOptions, count: int) -> Tensor:
    """``count`` different observations ``[count, *shape]`` of a game that is played at random.

    States that were seen before are skipped, unless the game yields too few within `PATIENCE` times the usual steps.
    """
    slots = min(PLAYERS, count)
    games = make_games(game, slots, options, min(slots, cores()))
    everyone, episodes = np.arange(slots), np.full(slots, -1)

    def begin(those: NDArray[np.int64]) -> NDArray[np.int64]:
        episodes[those] += 1
        return game_seeds(bits(0, Stream.HELD_OUT, those, episodes[those], 0))

    players = Players(games, slots, begin)
    kept: list[Tensor] = []
    known: set[bytes] = set()
    step, patience = 0, PATIENCE * SPACING_AGENT_STEPS * -(-count // slots)
    try:
        while len(kept) < count:
            observations, _ = players.observe()
            step += 1
            for state in observations if step % SPACING_AGENT_STEPS == 0 else ():
                content = hashlib.blake2b(state.numpy().tobytes(), digest_size=16).digest()
                if content not in known or step > patience:
                    known.add(content)
                    kept.append(state.clone())
            players.step(integers(bits(0, Stream.HELD_OUT, everyone, episodes, players.lengths + 1), games.actions))
    finally:
        games.close()
    return torch.stack(kept[:count])


class HeldOut:
    """The held-out states of a population, gathered when they are first needed."""

    def __init__(self, config: Config, device: torch.device) -> None:
        self._games = [run.game for run in config.runs]
        self._count = config.settings.representation_states
        self._options = config.settings.environment
        self._device = device
        self._states: dict[Game, Tensor] = {}

    @torch.no_grad()
    def measure(self, learner: Learner) -> list[dict[str, float]]:
        """The measures of each run's features, by name; run by run, so that they do not depend on the population."""
        for game in dict.fromkeys(self._games):
            if game not in self._states:
                self._states[game] = held_out_states(game, self._options, self._count).to(self._device)
        found = []
        for run, game in enumerate(self._games):
            parameters = {
                name: tensor[run : run + 1] for name, tensor in learner.layout.views(learner.state.online).items()
            }
            statistics = FeatureStatistics(learner.spec.body_outputs, device=self._device)
            for states in self._states[game].split(BATCH_SIZES[self._device.type]):
                statistics.update(body(learner.spec, parameters, states[None])[0])
            found.append(statistics.summary())
        return found
