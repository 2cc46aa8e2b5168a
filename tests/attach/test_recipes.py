"""The recipes of the documentation run as they are shown."""

import math
import runpy
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = {
    "cleanrl_dqn.py": (120, ["gymnasium"]),
    "grad_scaler.py": (3, []),
    "sb3_dqn_atari.py": (24, ["stable_baselines3", "ale_py", "cv2"]),
    "sb3_dqn_mlp.py": (120, ["stable_baselines3"]),
    "sb3_ppo_atari.py": (8, ["stable_baselines3", "ale_py", "cv2"]),
    "torchrl_dqn.py": (100, ["torchrl", "gymnasium"]),
}
"""Steps enough to learn once, and what each needs."""


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.filterwarnings("ignore")
def test_the_recipe_runs_and_penalises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, needs = RECIPES[name]
    for package in needs:
        pytest.importorskip(package)
    path = DOCS / "recipes" / name
    monkeypatch.setattr("sys.argv", [str(path), str(steps)])
    with torch.random.fork_rng():
        reg = runpy.run_path(str(path))["reg"]
    assert reg.kappa > 0
    assert math.isfinite(reg.last.value)


def test_the_page_shows_every_recipe() -> None:
    page = (DOCS / "drop-in.md").read_text(encoding="utf-8")
    shown = {name for name in RECIPES if f'--8<-- "docs/recipes/{name}"' in page}
    assert shown == set(RECIPES) == {path.name for path in (DOCS / "recipes").glob("*.py")}
