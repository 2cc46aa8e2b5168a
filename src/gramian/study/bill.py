"""What a study will cost, before it begins: memory, disk, time."""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gramian.core.progress import duration
from gramian.deep.agent.networks import parameter_shapes
from gramian.deep.replay.device import bytes_needed
from gramian.deep.training.config import Config
from gramian.deep.training.memory import LEARNER_COPIES
from gramian.deep.training.trainer import make_environments, network_spec
from gramian.study.plan import Plan, Population

SAVED_COPIES = 4
"""Online and target weights and Adam's two moments; in float32."""
STATED_BYTES_PER_TRANSITION = {"atari": 700.0, "minatar": 30.0, "cartpole": 30.0}
"""Of a checkpointed replay where nothing is measured. Random play gave 174 to 440 in eight Atari games and 17 in two of
MinAtar; for CartPole it is about what a transition has uncompressed."""


@dataclass(frozen=True)
class Measured:
    """What a few seconds of the real engine told.

    Attributes
    ----------
    agent_steps_per_second
        Of a whole population.
    bytes_per_transition
        Of a checkpointed replay.
    """

    agent_steps_per_second: float
    bytes_per_transition: float


@dataclass(frozen=True)
class Size:
    """Bytes of one run of some game."""

    learner_bytes: int
    replay_bytes: int
    saved_bytes: int
    """Its weights and moments in a checkpoint."""

    @property
    def memory_bytes(self) -> int:
        """Of the device, replay included."""
        return self.learner_bytes + self.replay_bytes


def run_size(config: Config) -> Size:
    """Bytes of one run of a population's first game.

    Examples
    --------
    >>> from gramian.core.arms import Arm
    >>> from gramian.deep.training.config import load_preset, population
    >>> size = run_size(Config("minatar", load_preset("minatar"), population(["minatar/breakout"], [Arm("dqn")], [0])))
    >>> round(size.replay_bytes / 1e6)
    41
    """
    one = Config(config.preset, config.settings, config.runs[:1])
    environments = make_environments(one, threads=1)
    try:
        observation, actions = environments.observation, int(environments.actions.max())
    finally:
        environments.close()
    parameters = sum(math.prod(shape) for shape in parameter_shapes(network_spec(one, observation, actions)).values())
    return Size(
        learner_bytes=LEARNER_COPIES * 4 * parameters,
        replay_bytes=bytes_needed(observation, 1, one.settings.envs_per_run, one.settings.replay_capacity),
        saved_bytes=SAVED_COPIES * 4 * parameters,
    )


@dataclass(frozen=True)
class Bill:
    """The cost of a study on some hardware."""

    device: str
    device_name: str
    at_once: int
    cells: int
    populations: int
    largest: int
    memory_bytes: int
    """Of the largest population."""
    peak_disk_bytes: int
    final_disk_bytes: int
    seconds: float
    device_seconds: float
    """Summed over the devices: GPUs, or cores."""
    agent_steps: int
    rate: str
    """Where the time comes from."""

    def __str__(self) -> str:
        unit = "GPU" if self.device == "cuda" else "core"
        return "\n".join(
            [
                f"cells       {self.cells:,} in {self.populations:,} populations of at most {self.largest} runs, "
                f"{self.at_once} at once on {self.device_name}",
                f"memory      {_size(self.memory_bytes)} for a population, {_size(self.memory_bytes * self.at_once)} "
                "in all",
                f"disk        {_size(self.peak_disk_bytes)} at most while it runs, {_size(self.final_disk_bytes)} at "
                "the end, logs not counted",
                f"time        {duration(self.seconds)}: {self.agent_steps:,} agent steps, {self.rate}",
                f"{unit}-days   {' ' * (4 - len(unit))}{self.device_seconds / 86_400:.3g}",
            ]
        )


def make_bill(
    plan: Plan,
    at_once: int,
    device_name: str,
    rate: Callable[[Population], Measured],
    rate_source: str,
) -> Bill:
    """Add up what a plan costs.

    Parameters
    ----------
    plan
        The study.
    at_once
        Populations that are trained at the same time.
    device_name
        What they are trained on.
    rate
        Gives what is known of a population; asked once for each kind of population (observation and size).
    rate_source
        How it is known, for the reader.
    """
    sizes: dict[str, Size] = {}
    rates: dict[tuple[str, int], Measured] = {}
    seconds: list[float] = []
    memory, checkpoints, final, agent_steps = 0, [0], 0, 0
    for population in plan.populations:
        config, runs = plan.config(population), len(population.runs)
        key = kind_of(population)
        size = sizes.setdefault(key, sizes.get(key) or run_size(config))
        if (key, runs) not in rates:
            rates[key, runs] = rate(population)
        known = rates[key, runs]
        seconds.append(config.agent_steps * runs / known.agent_steps_per_second)
        memory = max(memory, runs * size.memory_bytes)
        stored = 0.0
        if plan.checkpoint_replay:
            # two checkpoints are kept, and segments are dropped whole
            period = plan.settings.checkpoint_period_agent_steps
            transitions = min(config.agent_steps, plan.settings.replay_capacity + 2 * period)
            stored = transitions * known.bytes_per_transition
        checkpoints.append(runs * (int(stored) + 2 * size.saved_bytes))
        final += runs * size.saved_bytes
        agent_steps += config.agent_steps * runs
    return Bill(
        device=plan.device,
        device_name=device_name,
        at_once=min(at_once, len(plan.populations)),
        cells=plan.cells,
        populations=len(plan.populations),
        largest=max(len(population.runs) for population in plan.populations),
        memory_bytes=memory,
        peak_disk_bytes=sum(sorted(checkpoints)[-at_once:]) + final,
        final_disk_bytes=final,
        seconds=makespan(seconds, at_once),
        device_seconds=sum(seconds),
        agent_steps=agent_steps,
        rate=rate_source + _rates(rates),
    )


def kind_of(population: Population) -> str:
    """Populations of the same kind have observations of the same shape, so cost the same."""
    first = population.runs[0].game
    return "atari" if first.kind == "atari" else first.name


def makespan(seconds: list[float], at_once: int) -> float:
    """Time to the end where the next population is begun as soon as one ends.

    Examples
    --------
    >>> makespan([3.0, 1.0, 1.0, 2.0], at_once=2)
    4.0
    """
    ends = [0.0] * at_once
    for duration_s in seconds:
        heapq.heappush(ends, heapq.heappop(ends) + duration_s)
    return max(ends)


def stated(
    agent_steps_per_second: float, kinds: Mapping[str, float] = STATED_BYTES_PER_TRANSITION
) -> Callable[[Population], Measured]:
    """A rate that somebody gave, with the bytes that are known for the kind of game."""
    return lambda population: Measured(agent_steps_per_second, kinds[population.runs[0].game.kind])


def _rates(rates: Mapping[tuple[str, int], Measured]) -> str:
    shown = [
        f"{known.agent_steps_per_second:,.0f}/s for {runs} × {kind}" for (kind, runs), known in list(rates.items())[:4]
    ]
    more = f" and {len(rates) - 4} more" if len(rates) > 4 else ""
    return " (" + ", ".join(shown) + more + ")"


def _size(count: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
