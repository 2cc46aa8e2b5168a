"""Does a CPU learn as well where it rounds products to bfloat16? Both on the same transitions, seed by seed.

    python -m benchmarks.rounding breakout --seeds 5 --updates 2500 --out FOLDER

Every run plays at random to its end and learns from that as preset ``author`` does, but for a target network that is
renewed more often. So the games, and the transitions of every update, are the same with and without rounding, and what
differs is what was learned from them. It is looked at in float32, whatever it was learned in:

- the TD loss of the last weights on transitions of the run's own replay, and the difference, seed by seed;
- Q-values on states that no run has learned from: how far those of the same seed are apart with and without rounding,
  and, as a yardstick, those of two seeds in float32, which differ in their first weights and their games.

Intervals are Student's, 95 %, over seeds; the distance of two seeds has none, since it belongs to both. Random play is
where a run begins, and asks no actor: this says nothing of what comes after that.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from benchmarks.command_line import Parser, check_file, complain, new_folder, whole
from benchmarks.dopamine import present
from gramian.core.arms import parse_arm
from gramian.core.errors import UserError
from gramian.core.games import Game, find_game
from gramian.core.progress import counted
from gramian.core.statistics import mean_interval
from gramian.deep.agent.networks import forward
from gramian.deep.agent.streams import Stream
from gramian.deep.training.config import Config, Settings, load_preset, population
from gramian.deep.training.heldout import held_out_states
from gramian.deep.training.trainer import Trainer, make_environments

PRESET, KAPPA = "author", 0.1
TARGET_PERIOD_UPDATES = 500
LOSS_BATCHES, STATES = 64, 1_024
FILES = ("rounding.csv", "rounding.md")


@dataclass(frozen=True)
class Learned:
    """What the runs of a population have learned."""

    losses: list[float]
    """TD loss of each run."""
    values: Tensor
    """Q-values ``[P, S, A]`` of each run in the states."""


@dataclass(frozen=True)
class Row:
    """One seed, learned in both ways."""

    game: str
    arm: str
    seed: int
    updates: int
    loss_float32: float
    loss_bf16: float
    spread: float
    """Standard deviation of the Q-values in float32, over states and actions: 0 where nothing was learned of them."""
    rms_apart: float
    """Root mean square of their difference from those with bfloat16."""
    rms_apart_seeds: float
    """Of their difference from those of the other seeds in float32, the mean over these."""


def settings_for(updates: int, replay: int, *, bf16: bool) -> Settings:
    """Random play from the first step to the last, of which ``replay`` transitions come before the first update."""
    preset = load_preset(PRESET)
    period = preset.update_period_agent_steps
    steps = replay + period * updates
    return replace(
        preset,
        bf16=bf16,
        frames=steps * preset.environment.atari.frame_skip,
        epsilon_initial=1.0,
        epsilon_final=1.0,
        replay_capacity=steps,
        prefill_agent_steps=replay,
        target_period_agent_steps=TARGET_PERIOD_UPDATES * period,
    )


def learn(game: Game, arm: str, seeds: Sequence[int], settings: Settings, states: Tensor) -> Learned:
    """Train one run for each seed to its end."""
    config = Config(PRESET, settings, population([game.name], [parse_arm(arm, KAPPA)], list(seeds)))
    trainer = Trainer(config, make_environments(config))
    try:
        while not trainer.done:
            trainer.step()
        return look(trainer, states)
    finally:
        trainer.close()


@torch.no_grad()
def look(trainer: Trainer, states: Tensor) -> Learned:
    """What the runs have learned, in float32."""
    learner, replay = trainer.learner, trainer.replay
    online, target = (learner.layout.views(rows) for rows in (learner.state.online, learner.state.target))
    losses = []
    for number in range(LOSS_BATCHES):
        batch = replay.sample(trainer.pipeline.seeds, number, trainer.config.settings.batch_size, Stream.DIAGNOSE)
        found = learner.objective.evaluate(online, learner.objective.targets(online, target, batch), batch)
        losses.append(found.losses.components["td"])
    seen = states.expand(len(trainer.config.runs), *states.shape)
    return Learned(torch.stack(losses).mean(0).tolist(), forward(learner.spec, online, seen).values)


def compare(game: str, arm: str, seeds: Sequence[int], updates: int, exact: Learned, rounded: Learned) -> list[Row]:
    """The two populations side by side."""
    apart = {pair: rms(exact.values[pair[0]] - exact.values[pair[1]]) for pair in combinations(range(len(seeds)), 2)}
    return [
        Row(
            game,
            arm,
            seed,
            updates,
            exact.losses[run],
            rounded.losses[run],
            rms(exact.values[run] - exact.values[run].mean()),
            rms(exact.values[run] - rounded.values[run]),
            float(np.mean([value for pair, value in apart.items() if run in pair])),
        )
        for run, seed in enumerate(seeds)
    ]


def rms(values: Tensor) -> float:
    """Root mean square.

    Examples
    --------
    >>> rms(torch.tensor([2.0, -2.0]))
    2.0
    """
    return float(values.double().square().mean().sqrt())


def markdown(rows: Sequence[Row]) -> str:
    """The table: means over seeds with their intervals."""
    loss, rounded, spread, apart, seeds = (
        np.array([getattr(row, name) for row in rows])
        for name in ("loss_float32", "loss_bf16", "spread", "rms_apart", "rms_apart_seeds")
    )
    lines = ["| | mean over seeds |", "| --- | ---: |"]
    for what, values, unit in (
        ("TD loss, learned in float32", loss, ""),
        ("with bfloat16 it is higher by, seed by seed", 100 * (rounded / loss - 1), " %"),
        ("Q-values, standard deviation over states and actions", spread, ""),
        ("with bfloat16 they are apart from these by, of the deviation", 100 * apart / spread, " %"),
    ):
        mean, low, high = (f"{value:.3g}".replace("-", "−") for value in mean_interval(values))
        lines.append(f"| {what} | {mean} [{low}, {high}]{unit} |")
    lines.append(f"| with another seed, in float32, by | {np.mean(100 * seeds / spread):.3g} % |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write it where a folder is named; the exit code."""
    parser = Parser("rounding", __doc__)
    parser.add_argument("game", help="of Atari")
    parser.add_argument("--arm", default="dqn", help=f"as for 'gramian train', with κ = {KAPPA}")
    parser.add_argument("--seeds", type=whole(2, 100), default=5)
    parser.add_argument("--updates", type=whole(1, 1_000_000), default=2_500, help="of each run")
    parser.add_argument("--replay", type=whole(64, 1_000_000), default=5_000, help="transitions before the first one")
    parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="write the table into it")
    options = parser.parse_args(arguments)
    try:
        for name in FILES if options.out else ():
            check_file(options.out / name)
        game, seeds = find_game(options.game), range(options.seeds)
        if game.kind != "atari":
            raise UserError(f"{game.name} is no Atari game; only their networks are rounded")
        parse_arm(options.arm, KAPPA)
        states = held_out_states(game, load_preset(PRESET).environment, STATES)
        learned = []
        for bf16 in (False, True):
            learned.append(
                learn(game, options.arm, seeds, settings_for(options.updates, options.replay, bf16=bf16), states)
            )
            name = "bfloat16" if bf16 else "float32"
            print(f"{name}: {counted(len(seeds), 'run')} of {options.updates:,} updates", file=sys.stderr)
        rows = compare(game.name, options.arm, seeds, options.updates, *learned)
        present(markdown(rows), rows, FILES, options.out)
    except UserError as error:
        complain("rounding", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
