"""What `gramian.attach` does on other people's agents, and what it costs.

    python -m benchmarks.attach [--steps 1000] [--hosts sb3_dqn_mlp ...] [--page docs/drop-in.md]

The agents are the recipes in ``docs/recipes``. Each trains twice with the same seed: with its penalty, and with κ = 0,
where the penalty is only measured. With ``--page`` the tables are put into a page, between the comments
that name them.
"""

import contextlib
import importlib.util
import io
import re
import runpy
import sys
import time
import warnings
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

import gramian
from benchmarks.command_line import Parser, exit_code, table, whole
from gramian.core.errors import UserError
from gramian.core.files import replace_text

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPES = Path(__file__).parents[1] / "docs" / "recipes"
NEW = "# +"
"""Marks the lines of a recipe that attaching adds or changes."""
HOSTS = {
    "sb3_dqn_mlp": ("SB3 DQN", "stable_baselines3"),
    "sb3_ppo_mlp": ("SB3 PPO", "stable_baselines3"),
    "sb3_sac": ("SB3 SAC, its critics", "stable_baselines3"),
    "sb3_contrib_qrdqn": ("sb3-contrib QR-DQN", "sb3_contrib"),
    "sb3_contrib_recurrent_ppo": ("sb3-contrib RecurrentPPO", "sb3_contrib"),
    "torchrl_dqn": ("TorchRL DQN", "torchrl"),
    "torchrl_sac": ("TorchRL SAC, its critics", "torchrl"),
    "tianshou_dqn": ("Tianshou DQN", "tianshou"),
    "cleanrl_dqn": ("script with `F.relu`, DQN", "gymnasium"),
    "cleanrl_c51": ("script, C51 with `reg.loss()`", "gymnasium"),
}
"""Recipe: what the table calls it, and the package that it needs."""
BATCHES = 20
"""Last batches that the features are measured on."""


@dataclass(frozen=True)
class Trained:
    """A recipe after its training."""

    reg: gramian.Attachment
    features: Tensor
    """``[n, d]`` of the last batches that the penalty was active on, without padding."""

    @property
    def penalty(self) -> float:
        """Σ_{i≠j} C_ij²."""
        return float(gramian.decorrelation_penalty(self.features))

    @property
    def norm(self) -> float:
        """Mean ‖φ‖."""
        return float(self.features.norm(dim=1).mean())

    @property
    def correlation(self) -> float:
        """Mean absolute correlation of the pairs of features that vary."""
        alive = self.features[:, self.features.std(0) > 1e-6]
        matrix = torch.corrcoef(alive.T).abs()
        return float((matrix.sum() - matrix.diagonal().sum()) / (matrix.numel() - len(matrix)))


def train(recipe: str, steps: int, penalised: bool = True) -> Trained:
    """Run a recipe as it stands, or with κ = 0, and keep the features of its last active batches."""
    seen: dict[int, deque[Tensor]] = {}
    attach = gramian.attach

    def recording(module: nn.Module, **options: Any) -> gramian.Attachment:
        last: deque[Tensor] = deque(maxlen=BATCHES)
        condition: Callable[[Tensor], bool] = options.pop("when", None) or (lambda _: True)

        def when(features: Tensor) -> bool:
            if not condition(features):
                return False
            counts = reg.mask if isinstance(reg.mask, Tensor) else torch.ones(len(features))
            if len(features) > 1:
                last.append(features.detach()[counts.reshape(-1) > 0].clone())
            return True

        if not penalised:
            options = {**options, "ratio": None, "kappa": 0.0}
        reg = attach(module, when=when, **options)
        seen[id(reg)] = last
        return reg

    arguments = [str(RECIPES / f"{recipe}.py"), str(steps)]
    with (
        torch.random.fork_rng(),
        patch.object(gramian, "attach", recording),
        patch.object(sys, "argv", arguments),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        reg = runpy.run_path(arguments[0])["reg"]
    return Trained(reg, torch.cat(list(seen[id(reg)])).float())


def lines_changed(recipe: str) -> int:
    """Lines that attaching adds to a recipe or changes in it."""
    return sum(NEW in line for line in (RECIPES / f"{recipe}.py").read_text(encoding="utf-8").splitlines())


def hosts_table(recipes: list[str], steps: int) -> str:
    """A row for each host; in each cell of a measure the value without the penalty, then with it."""
    rows = []
    for recipe in recipes:
        title, package = HOSTS[recipe]
        if importlib.util.find_spec(package) is None:
            raise UserError(f"recipe {recipe} needs the package {package}, which is not installed")
        plain, penalised = train(recipe, steps, penalised=False), train(recipe, steps)
        penalised.reg.check()
        last = penalised.reg.last
        rows.append(
            [
                title,
                str(lines_changed(recipe)),
                "yes",
                "" if last is None or last.ratio is None else f"{float(last.ratio):.2g}",
                f"{float(penalised.reg.kappa):.2g}",
                f"{plain.penalty:.2g} → {penalised.penalty:.2g}",
                f"{plain.correlation:.2f} → {penalised.correlation:.2f}",
                f"{plain.norm:.2g} → {penalised.norm:.2g}",
            ]
        )
        print(" | ".join(rows[-1]), file=sys.stderr)
    header = ["host", "lines changed", "active", "last ratio", "last κ", "Σ C_ij²", "mean abs. correlation", "‖φ‖"]
    return table(header, rows, words=3)


def cost_table(n: int, d: int, repeats: int = 3) -> str:
    """Seconds of a forward and backward pass through features ``[n, d]``, with and without the penalty."""
    torch.manual_seed(0)
    x = torch.randn(n, d)

    def seconds(attached: dict[str, Any] | None) -> float:
        layer = nn.Sequential(nn.Linear(d, d), nn.Tanh())
        if attached is not None:
            gramian.attach(layer, inject=True, **attached)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            layer(x).square().mean().backward()
            times.append(time.perf_counter() - start)
        return min(times)

    features = x.requires_grad_()
    start = time.perf_counter()
    gramian.decorrelation_penalty(features).backward()
    alone = time.perf_counter() - start
    x = x.detach()
    rows = [
        ["the layer alone", f"{seconds(None):.3f}"],
        ["the penalty alone", f"{alone:.3f}"],
        ['with `penalty="decorrelation"`, `kappa=0.1`', f"{seconds({'kappa': 0.1, 'penalty': 'decorrelation'}):.3f}"],
        ['with `penalty="decorrelation"`, `ratio=0.1`', f"{seconds({'ratio': 0.1, 'penalty': 'decorrelation'}):.3f}"],
        ['with `penalty="gram"`, `kappa=0.1`', f"{seconds({'kappa': 0.1}):.3f}"],
    ]
    return table([f"forward and backward, n = {n:,}, d = {d}", "seconds"], rows, words=1)


def main(arguments: list[str] | None = None) -> int:
    """Run it; exit code 0, or 2 for bad input."""
    parser = Parser("attach", __doc__)
    parser.add_argument("--steps", type=whole(10, 1_000_000), default=1000, help="agent steps of each training")
    parser.add_argument("--hosts", nargs="+", choices=list(HOSTS), default=list(HOSTS))
    parser.add_argument("--samples", type=whole(2, 1_000_000), default=16_384, help="n of the cost")
    parser.add_argument("--page", type=Path, help="page that the tables are put into")
    options = parser.parse_args(arguments)

    def work() -> None:
        tables = {
            "attach-hosts": hosts_table(options.hosts, options.steps),
            "attach-cost": cost_table(options.samples, 64),
        }
        print("\n".join(tables.values()), end="")
        if options.page is not None:
            page = options.page.read_text(encoding="utf-8")
            for name, text in tables.items():
                place = f"<!-- {name} -->.*?<!-- /{name} -->"
                page = re.sub(place, f"<!-- {name} -->\n\n{text}\n<!-- /{name} -->", page, flags=re.DOTALL)
            replace_text(options.page, page)

    return exit_code("attach", work)


if __name__ == "__main__":
    sys.exit(main())
