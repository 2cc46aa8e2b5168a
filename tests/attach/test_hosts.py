"""Agents that other people wrote, from the recipes of the documentation: the penalty is active and has an effect."""

import math

import pytest

from benchmarks.attach import HOSTS, RECIPES, lines_changed, train

pytestmark = pytest.mark.slow

OTHERS = {
    "grad_scaler": (3, []),
    "sb3_dqn_atari": (24, ["stable_baselines3", "ale_py", "cv2"]),
    "sb3_ppo_atari": (8, ["stable_baselines3", "ale_py", "cv2"]),
}
"""Recipes that are only run: steps enough to learn once, and what each needs."""


def test_every_recipe_is_run() -> None:
    assert {path.stem for path in RECIPES.glob("*.py")} == {*HOSTS, *OTHERS}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recipe", HOSTS)
def test_the_penalty_is_active_and_lowers_what_it_penalises(recipe: str) -> None:
    pytest.importorskip(HOSTS[recipe][1])
    steps = {"sb3_ppo_mlp": 512, "sb3_contrib_recurrent_ppo": 192}.get(recipe, 200)
    plain, penalised = train(recipe, steps, penalised=False), train(recipe, steps)
    penalised.reg.check()
    assert 0 < penalised.penalty < plain.penalty
    assert 2 <= lines_changed(recipe) <= 8


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recipe", OTHERS)
def test_the_recipe_runs_and_penalises(recipe: str) -> None:
    steps, needs = OTHERS[recipe]
    for package in needs:
        pytest.importorskip(package)
    assert math.isfinite(train(recipe, steps).reg.last.value)
