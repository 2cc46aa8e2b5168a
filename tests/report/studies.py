"""Small studies for the tests of the report."""

import json
from pathlib import Path

import polars as pl

from gramian.study.manifest import POPULATIONS
from gramian.study.store import CELL_SCHEMA, EPISODE_SCHEMA, RUN_SCHEMA, Study
from tests.study.studies import make_run, planned

HORIZON = 1000


def study(cells: dict[tuple[str, str, int], list[float]], **overrides: dict[tuple[str, str, int], object]) -> Study:
    """A study of runs with the given returns, their episodes evenly spread; overrides are columns of ``runs``."""
    runs, episodes = [], []
    for (game, arm, seed), returns in cells.items():
        name = f"{game}-{arm}-s{seed}"
        own = {
            column: by_cell[game, arm, seed] for column, by_cell in overrides.items() if (game, arm, seed) in by_cell
        }
        row = dict.fromkeys(RUN_SCHEMA) | {
            "run": name, "game": game, "arm": arm, "seed": seed, "kind": arm, "state": "done", "reason": "",
            "frames_target": HORIZON, "preset": "author", "folder": name, "window": 100,
        }  # fmt: skip
        runs.append(row | own)
        for at, value in enumerate(returns):
            frames = HORIZON * (at + 1) // len(returns)
            episodes.append((name, game, arm, seed, frames, float(value)))
    return Study(
        pl.DataFrame(runs, schema=RUN_SCHEMA),
        pl.DataFrame(episodes, schema=EPISODE_SCHEMA, orient="row"),
        pl.DataFrame(schema=CELL_SCHEMA),
    )


def paper_as_csv(folder: Path) -> Path:
    """The paper's own table as a tidy CSV: one run of one point for each game and arm."""
    from gramian.report.reference import PAPER_ARMS, PAPER_FRAMES, paper_table

    lines = ["arm,game,seed,frames,return"]
    for row in paper_table().iter_rows(named=True):
        lines += [f"{arm},{row['game']},0,{PAPER_FRAMES},{row[column]}" for arm, column in PAPER_ARMS.items()]
    path = folder / "paper.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


FOLDS = (("breakout", "freeway"), ("asterix", "seaquest"))
KAPPAS = (0.1, 1.0, 10.0)


def tuning(games, kept, seeds=(100, 101), kinds=("gram", "norm")):
    arms = "".join(f'[[arms]]\nkind = "{kind}"\nkappas = {list(KAPPAS)}\n' for kind in kinds)
    quoted, apart = ([f"minatar/{game}" for game in names] for names in (games, kept))
    return (
        f'title = "Tuning"\npreset = "smoke"\nframes = 1000\ngames = {json.dumps(quoted)}\nseeds = {list(seeds)}\n'
        f'[[arms]]\nkind = "dqn"\n{arms}[settings]\nn_step = 2\n'
        f"[evaluation]\ngames = {json.dumps(apart)}\nseeds = [0, 1]\n"
    )


def invent(folder, text, score=lambda _: 1.0, norm=lambda _: 1.0, diverged=(), plan=planned):
    """A study whose runs end with ``score(run)``, and with features of the norm ``norm(run)``."""
    plan = plan(folder, text, largest=50)
    prefill = plan.settings.prefill_agent_steps
    early = [f"{frames},-3.0" for frames in range(1, 13)]  # random play
    for population in plan.populations:
        for run in population.runs:
            late = [f"{prefill + at + 1},{score(run)!r}" for at in range(100)]
            logged = ["100.0"] * 3 + [repr(norm(run))]  # only the last quarter counts
            make_run(
                folder / POPULATIONS / population.id / run.name,
                game=run.game.name, arm=run.arm, seed=run.seed,
                settings=f"frames = 1000\nprefill_agent_steps = {prefill}",
                episodes="\n".join(["frames,raw_return", *early, *late, ""]),
                metrics="\n".join(["frames,feature_norm", *(f"900,{row}" for row in logged), ""]),
                status={"state": "diverged" if run.name in diverged else "done", "agent_steps": 1000, "reason": ""},
            )  # fmt: skip
    return plan


def peaked(run):
    """Best at κ = 1 for gram and at 10 for norm; the scale of each game is its own."""
    scale = 1.0 + 10.0 * len(run.game.name)
    best = {"gram": 1.0, "norm": 10.0, "dqn": 0.0}[run.arm.kind]
    return scale * (5.0 if run.arm.kappa == best else 1.0 + 0.1 * run.arm.kappa) + 0.01 * run.seed


def norms(run):
    return 8.0 if run.arm.kind == "dqn" else {"gram": 2.0, "norm": 4.0}[run.arm.kind] * run.arm.kappa**-0.25
