"""What a study will cost before it begins: how many runs fit at once, memory, disk, time."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

from gramian.core.errors import UserError
from gramian.core.progress import duration
from gramian.deep.agent.networks import parameter_shapes
from gramian.deep.replay import bytes_needed
from gramian.deep.training.config import Config
from gramian.deep.training.memory import LEARNER_COPIES
from gramian.deep.training.trainer import make_environments, network_spec
from gramian.study.plan import Plan, Population

USED_SHARE = 0.9
"""Share of the free memory that is given to runs; batches and activations need the rest."""
PROCESS_BYTES = {"cpu": 600_000_000, "cuda": 2_000_000_000}
"""Memory of a process beside its runs: torch and emulators; on a GPU driver, libraries and recorded graphs."""
LARGEST = {"cpu": 16, "cuda": 64}
"""Most runs of a population. Beyond it little is gained, and a failure costs more."""
SAVED_COPIES = 4
"""Online and target weights and Adam's two moments; in float32."""
STATED_BYTES_PER_TRANSITION = {"atari": 700.0, "minatar": 30.0, "cartpole": 30.0, "gym": 30.0}
"""Of a checkpointed replay where nothing is measured. Random play gave 174 to 440 in eight Atari games and 17 in two of
MinAtar; for CartPole it is about what a transition has uncompressed."""


@dataclass(frozen=True)
class Hardware:
    """A machine or a cluster."""

    device: str
    """``cpu`` or ``cuda``."""
    name: str
    """Of the device."""
    places: int
    """GPUs, or cores: populations that it can train at once."""
    units: int
    """What ``free_bytes`` are of: the number of GPUs, or of machines."""
    free_bytes: int
    """Free memory of one unit."""
    cores: int
    """Of all machines together."""


@dataclass(frozen=True)
class Share:
    """How the hardware is divided: populations that are trained ``at_once``, and the runs of the ``largest``."""

    at_once: int
    largest: int


def divide(hardware: Hardware, run_bytes: int, workers: int = 0, largest: int = 0) -> Share:
    """Divide the hardware among populations whose runs take ``run_bytes`` each; refuses what does not fit.

    ``workers`` are the populations at once, ``largest`` the most runs of one; 0 is as many as there is memory for.
    """
    own = PROCESS_BYTES[hardware.device]
    counted = own if hardware.device == "cpu" else 0  # on a GPU the unused share suffices for a few processes
    usable = int(USED_SHARE * hardware.free_bytes)
    at_once = workers or max(1, min(hardware.places, hardware.units * (usable // (run_bytes + counted))))
    sharing = -(-at_once // hardware.units)
    room = usable // sharing - counted
    if sharing > 1:
        room = min(room, hardware.free_bytes // sharing - own)
    fitting = room // run_bytes
    if fitting < max(1, largest):
        raise UserError(
            f"not enough memory on {hardware.name}: {max(1, largest)} run(s) in each of {sharing} population(s) at "
            f"once need {(max(1, largest) * run_bytes + own) * sharing / 1e9:.2f} GB, and {usable / 1e9:.2f} GB of "
            f"{hardware.free_bytes / 1e9:.2f} GB may be used; lower replay_capacity in [settings], --population or "
            "--workers"
        )
    return Share(at_once, largest or min(fitting, LARGEST[hardware.device]))


@dataclass(frozen=True)
class Measured:
    """What a few seconds of the real engine told."""

    agent_steps_per_second: float
    """Of a whole population."""
    bytes_per_transition: float
    """Of a checkpointed replay."""


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
    """Bytes of one run of a population's first game."""
    one = Config(config.preset, config.settings, config.runs[:1])
    environments = make_environments(one, threads=1)
    try:
        observation, actions = environments.observation, int(environments.actions.max())
    finally:
        environments.close()
    parameters = sum(math.prod(shape) for shape in parameter_shapes(network_spec(one, observation, actions)).values())
    return Size(
        learner_bytes=LEARNER_COPIES * 4 * parameters,
        replay_bytes=bytes_needed(
            observation,
            1,
            one.settings.envs_per_run,
            one.settings.replay_capacity,
            prioritized=one.settings.prioritized,
        ),
        saved_bytes=SAVED_COPIES * 4 * parameters,
    )


@dataclass(frozen=True)
class Cost:
    """The cost of a study on some hardware."""

    plan: Plan
    at_once: int
    device_name: str
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
        unit = "GPU" if self.plan.device == "cuda" else "core"
        populations = self.plan.populations
        largest = max(len(population.runs) for population in populations)
        at_once = min(self.at_once, len(populations))
        memory, memory_in_all, peak, final = map(
            _size, (self.memory_bytes, self.memory_bytes * at_once, self.peak_disk_bytes, self.final_disk_bytes)
        )
        return "\n".join(
            [
                f"cells       {self.plan.cells:,} in {len(populations):,} populations of at most {largest} runs, "
                f"{at_once} at once on {self.device_name}",
                f"memory      {memory} for a population, {memory_in_all} in all",
                f"disk        {peak} at most while it runs, {final} at the end, logs not counted",
                f"time        {duration(self.seconds)}: {self.agent_steps:,} agent steps, {self.rate}",
                f"{unit}-days   {' ' * (4 - len(unit))}{self.device_seconds / 86_400:.3g}",
            ]
        )


def cost_of(
    plan: Plan, at_once: int, device_name: str, rate: Callable[[Population], Measured], rate_source: str
) -> Cost:
    """What a plan costs with ``at_once`` populations at a time; ``rate`` is asked once for each kind and size."""
    sizes: dict[str, Size] = {}
    rates: dict[tuple[str, int], Measured] = {}
    seconds: list[float] = []
    checkpoints: list[int] = []
    memory, final, agent_steps = 0, 0, 0
    for population in plan.populations:
        config, runs = plan.config(population), len(population.runs)
        kind = kind_of(population)
        if kind not in sizes:
            sizes[kind] = run_size(config)
        if (kind, runs) not in rates:
            rates[kind, runs] = rate(population)
        size, known = sizes[kind], rates[kind, runs]
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
    shown = [f"{one.agent_steps_per_second:,.0f}/s for {runs} × {kind}" for (kind, runs), one in rates.items()]
    more = f" and {len(shown) - 4} more" if len(shown) > 4 else ""
    return Cost(
        plan=plan,
        at_once=at_once,
        device_name=device_name,
        memory_bytes=memory,
        peak_disk_bytes=sum(sorted(checkpoints)[-at_once:]) + final,
        final_disk_bytes=final,
        seconds=makespan(seconds, at_once),
        device_seconds=sum(seconds),
        agent_steps=agent_steps,
        rate=f"{rate_source} ({', '.join(shown[:4])}{more})",
    )


def kind_of(population: Population) -> str:
    """Populations of the same kind have observations of the same shape, so cost the same."""
    first = population.runs[0].game
    return "atari" if first.kind == "atari" else first.name


def makespan(seconds: list[float], at_once: int) -> float:
    """Time to the end where the next population is begun as soon as one ends."""
    ends = [0.0] * at_once
    for duration_s in seconds:
        heapq.heappush(ends, heapq.heappop(ends) + duration_s)
    return max(ends)


def stated(agent_steps_per_second: float) -> Callable[[Population], Measured]:
    """A rate that was given, with the bytes that are known for the kind of game."""
    return lambda population: Measured(
        agent_steps_per_second, STATED_BYTES_PER_TRANSITION[population.runs[0].game.kind]
    )


def _size(count: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
