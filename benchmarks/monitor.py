"""What `gramian.monitor` costs a DQN on one CPU core, and what importing gramian costs.

    python -m benchmarks.monitor [--blocks 8] [--passes 1000] > docs/tables/monitor-cost.md

Blocks of some forward passes with and without a monitor alternate. The time is the process's CPU time, which other
processes disturb little.
"""

import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import gramian
from benchmarks.command_line import Parser, exit_code, table, whole

COLUMNS = ("what", "without", "with", "difference")
IMPORTS = ("import torch", "import torch, gramian; gramian.monitor")


class Host:
    """A DQN that plays an environment, keeps what it sees and learns from a batch in each ``acts`` steps."""

    def __init__(self, env: gymnasium.Env[Any, Any], body: nn.Module, width: int, acts: int, batch_size: int) -> None:
        self.env, self.body, self.acts, self.batch_size = env, body, acts, batch_size
        self.actions = int(env.action_space.n)  # type: ignore[attr-defined]
        self.head = nn.Linear(width, self.actions)
        self.target = copy.deepcopy(nn.Sequential(body, self.head))
        self.optimiser = torch.optim.Adam([*body.parameters(), *self.head.parameters()])
        self.state = env.reset(seed=0)[0]
        shape = (1000, *self.state.shape)
        self.states, self.following = np.zeros(shape, self.state.dtype), np.zeros(shape, self.state.dtype)
        self.taken, self.rewards, self.ends = np.zeros(1000, np.int64), np.zeros(1000, np.float32), np.zeros(1000, bool)
        self.rng, self.steps = np.random.default_rng(0), 0

    def step(self) -> None:
        """One step, with an update where it is due."""
        with torch.no_grad():
            action = int(self.head(self.body(torch.as_tensor(self.state).float()[None])).argmax())
        following, reward, terminated, truncated, _ = self.env.step(action)
        place = self.steps % 1000
        self.states[place], self.following[place] = self.state, following
        self.taken[place], self.rewards[place], self.ends[place] = action, reward, terminated
        self.state = self.env.reset()[0] if terminated or truncated else following
        self.steps += 1
        if self.steps % self.acts == 0:
            self.learn(self.rng.integers(min(self.steps, 1000), size=self.batch_size))

    def learn(self, chosen: NDArray[np.int64]) -> None:
        """An update on some transitions."""
        taken = torch.as_tensor(self.taken[chosen])[:, None]
        with torch.no_grad():
            value = self.target(torch.as_tensor(self.following[chosen]).float()).amax(1)
            goal = torch.as_tensor(self.rewards[chosen]) + 0.99 * value * ~torch.as_tensor(self.ends[chosen])
        values = self.head(self.body(torch.as_tensor(self.states[chosen]).float())).gather(1, taken)[:, 0]
        self.optimiser.zero_grad()
        nn.functional.smooth_l1_loss(values, goal).backward()
        self.optimiser.step()


def hosts() -> dict[str, Host]:
    """DQNs of the sizes and intervals of CleanRL: of CartPole, and of Atari with frames that cost nothing."""
    small = nn.Sequential(nn.Linear(4, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU())
    large = nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
    )  # fmt: skip
    return {
        "DQN of CartPole, 84 features": Host(gymnasium.make("CartPole-v1"), small, 84, 10, 128),
        "DQN of Atari, 512 features": Host(Frames(), large, 512, 4, 32),
    }


class Frames(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """Frames without an emulator."""

    action_space = gymnasium.spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ARG002
        """The frame of all steps."""
        self.frame = np.random.default_rng(seed).integers(0, 256, (4, 84, 84), np.uint8)
        return self.frame, {}

    def step(self, action: np.int64 | int) -> Any:  # noqa: ARG002
        """The same frame again."""
        return self.frame, 1.0, False, False, {}


def cost(plain: Host, watched: Host, blocks: int, passes: int) -> tuple[float, float, float]:
    """CPU seconds of a block without and with a monitor, and the median over pairs of the relative difference."""
    steps = passes * plain.acts // (plain.acts + 1)
    watch = gramian.monitor(watched.body, every=steps)
    pairs = []
    for _ in range(blocks + 1):
        begun = time.process_time()
        for _ in range(steps):
            plain.step()
        middle = time.process_time()
        for _ in range(steps):
            watched.step()
            watch.latest()
        pairs.append((middle - begun, time.process_time() - middle))
    off, on = zip(*pairs[1:], strict=True)  # the first pair warms up
    shares = [with_it / without - 1 for without, with_it in pairs[1:]]
    return statistics.median(off), statistics.median(on), statistics.median(shares)


def import_seconds(statement: str, repeats: int = 5) -> float:
    """CPU seconds of a fresh interpreter that runs a statement: the least of several."""
    program = f"import time; b = time.process_time(); {statement}; print(time.process_time() - b)"
    runs = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        for _ in range(repeats)
    ]
    return min(float(run.stdout) for run in runs)


def measured(arguments: Sequence[str] | None) -> None:
    """Measure and print a table."""
    parser = Parser("monitor", __doc__)
    parser.add_argument("--blocks", type=whole(1, 1000), default=8, help="pairs of blocks")
    parser.add_argument("--passes", type=whole(20, 10**6), default=1000, help="forward passes of a block")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows: list[tuple[str, ...]] = []
    for (name, plain), watched in zip(hosts().items(), hosts().values(), strict=True):
        off, on, share = cost(plain, watched, options.blocks, options.passes)
        rows.append((f"{name}: seconds for {options.passes:,} passes", f"{off:.3f}", f"{on:.3f}", f"{share:.2%}"))
    alone, both = (import_seconds(statement) for statement in IMPORTS)
    rows.append(
        ("import of torch, and of gramian.monitor: seconds", f"{alone:.3f}", f"{both:.3f}", f"{both - alone:.3f}")
    )
    print(table(COLUMNS, rows), end="")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("monitor", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
