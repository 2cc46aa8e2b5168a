"""A trained run plays, and its features are measured on the states that it comes by."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gramian.core.errors import require
from gramian.core.progress import Progress
from gramian.deep.agent.streams import Stream, bits, game_seeds, integers, uniform
from gramian.deep.envs import Players
from gramian.deep.runs.evaluation import make_player
from gramian.deep.runs.load import Run
from gramian.representation.measures import FeatureStatistics

AT_ONCE = 64
"""Games that are played side by side."""
BUFFER_STATES = 4096
"""States between two updates of the statistics: large products are faster."""


def gather(run: Run, states: int, *, epsilon: float = 0.01, seed: int = 0, at_once: int = AT_ONCE) -> FeatureStatistics:
    """Statistics of a run's features on ``states`` states of games that it plays, ``at_once`` side by side, ε-greedy.

    All states of a run whose weights are not finite are counted as not finite.
    """
    check(states, epsilon, seed, at_once)
    statistics = FeatureStatistics(run.features_dim, device=run.device)
    if not run.finite:
        statistics.nonfinite_states = states
        return statistics
    slots = min(at_once, states)
    with Progress(states, run.spec.name, unit="state") as progress:
        _play(run, slots, states, epsilon, seed, statistics, progress)
    return statistics


def check(states: int, epsilon: float, seed: int, at_once: int) -> None:
    """Raise ``UserError`` where `gather` would."""
    for name, value in (("states", states), ("at_once", at_once)):
        require(value >= 1, name, value, "at least 1")
    require(0 <= epsilon <= 1, "epsilon", epsilon, "between 0 and 1")
    require(0 <= seed < 2**63, "seed", seed, "a whole number from 0 to 2^63 - 1")


def _play(
    run: Run, slots: int, states: int, epsilon: float, seed: int, statistics: FeatureStatistics, progress: Progress
) -> None:
    engine = make_player(run, None, slots)
    everyone, episodes = np.arange(slots), np.full(slots, -1)
    here: list[Tensor] = []  # features of the states
    pairs: list[tuple[Tensor, Tensor]] = []  # features of states that have a successor, and the successor's
    before: Tensor | None = None
    buffered, seen = 0, 0

    def begin(those: NDArray[np.int64]) -> NDArray[np.int64]:
        episodes[those] += 1
        return game_seeds(bits(run.spec.seed, Stream.ANALYZE, seed, those, episodes[those]))

    players = Players(engine, slots, begin)
    try:
        while seen < states:
            observations, begun = players.observe()
            output = run.forward(observations)
            taken = min(slots, states - seen)
            features = output.features[0]
            if before is not None:
                follows = torch.from_numpy(~begun).to(features.device)
                pairs.append((before[follows], features[follows]))
            before = features
            here.append(features[:taken])
            seen += taken
            buffered += taken
            if buffered >= BUFFER_STATES or seen == states:
                _flush(here, pairs, statistics)
                progress.advance(buffered)
                buffered = 0
            draws = bits(run.spec.seed, Stream.ANALYZE, seed, everyone, episodes, players.lengths)
            greedy = output.values[0, :, : run.actions].argmax(1).cpu().numpy()
            players.step(np.where(uniform(draws) < epsilon, integers(draws, run.actions), greedy))
    finally:
        engine.close()


def _flush(here: list[Tensor], pairs: list[tuple[Tensor, Tensor]], statistics: FeatureStatistics) -> None:
    statistics.update(torch.cat(here))
    former, latter = (torch.cat([pair[side] for pair in pairs]) if pairs else here[0][:0] for side in (0, 1))
    if len(former):
        statistics.update_pairs(former, latter)
    here.clear()
    pairs.clear()
