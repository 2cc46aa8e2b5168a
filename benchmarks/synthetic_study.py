"""A study of made-up runs, as large as one likes: what the report is tested and timed on.

Nothing of it is a result: each curve rises towards the paper's final score of its game and arm, with noise.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gramian.report.reference import PAPER_ARMS, paper_table
from gramian.representation.measures import MEASURES
from gramian.representation.tables import CORRELATION, Measure, Point, write

METRICS = (
    "feature_norm", "feature_cross", "feature_std", "active_features", "penalty", "penalty_loss", "td_loss", "td_error",
    "q", "grad_norm_body", "grad_norm_body_td", "grad_norm_body_penalty", "grad_norm_head",
)  # fmt: skip


def write_study(
    folder: Path,
    *,
    games: int | Sequence[str] = 49,
    arms: Sequence[str] = ("dqn", "decor:10.24", "gram:10.24"),
    seeds: int = 3,
    frames: int = 20_000_000,
    episodes: int = 400,
    metric_rows: int = 100,
    generator: np.random.Generator,
) -> Path:
    """Write the run folders of a finished study.

    Parameters
    ----------
    folder
        Where to; the runs lie in ``populations/0``.
    games
        Names as in the paper's table, or how many of them.
    arms, seeds, frames
        What each run is.
    episodes, metric_rows
        Rows of a run's ``episodes.csv`` and ``metrics.csv``; no metrics where 0.
    """
    table = {row["game"]: row for row in paper_table().iter_rows(named=True)}
    names = list(table)[:games] if isinstance(games, int) else list(games)
    for game in names:
        row = table[game]
        for arm in arms:
            goal = float(row[PAPER_ARMS.get(arm.partition(":")[0], "paper_dqn")])
            for seed in range(seeds):
                run = folder / "populations" / "0" / f"{game.lower()}-{arm.replace(':', '-k')}-s{seed}"
                run.mkdir(parents=True)
                _write_run(run, game, arm, seed, frames, float(row["random"]), goal, episodes, metric_rows, generator)
    return folder


def write_analysis(
    folder: Path,
    *,
    games: int,
    arms: Sequence[str] = ("dqn", "decor:10.24", "gram:10.24"),
    seeds: int = 3,
    features_dim: int = 128,
    generator: np.random.Generator,
) -> Path:
    """Write what ``gramian analyze`` would of the study of `write_study`: measures, curves and correlations."""
    measures: list[Measure] = []
    curves: list[Point] = []
    (folder / CORRELATION).mkdir(parents=True)
    for game in [row["game"] for row in paper_table().iter_rows(named=True)][:games]:
        for arm in arms:
            for seed in range(seeds):
                run = f"{game.lower()}-{arm.replace(':', '-k')}-s{seed}"
                measures += [Measure(run, game, arm, seed, 1, name, generator.random()) for name in MEASURES]
                for curve, points in (
                    ("sparsity", 9),
                    ("active_per_state", features_dim + 1),
                    ("active_per_feature", features_dim),
                    ("spectrum", features_dim),
                ):
                    values = np.sort(generator.random(points))[::-1].tolist()
                    curves += [Point(run, game, arm, seed, curve, x, y) for x, y in enumerate(values, start=1)]
                correlation = np.corrcoef(generator.normal(size=(features_dim, 2 * features_dim)))
                np.save(folder / CORRELATION / f"{run}.npy", correlation.astype(np.float32))
    write(folder / "measures.csv", measures)
    write(folder / "curves.csv", curves)
    return folder


def _write_run(
    run: Path,
    game: str,
    arm: str,
    seed: int,
    frames: int,
    low: float,
    goal: float,
    episodes: int,
    metric_rows: int,
    generator: np.random.Generator,
) -> None:
    config = f'game = "{game}"\narm = "{arm}"\nseed = {seed}\npreset = "author"\n\n[settings]\nframes = {frames}\n'
    settings = "prefill_agent_steps = 50000\nlearning_rate = 1e-4\nadam_epsilon = 1.5e-4\nbatch_size = 32\n"
    environment = "\n[settings.environment.atari]\nframe_skip = 4\nsticky_probability = 0.0\nnoop_max = 0\n"
    (run / "config.toml").write_text(config + settings + environment, encoding="utf-8")
    status = {"state": "done", "agent_steps": frames // 4, "reason": ""}
    (run / "status.json").write_text(json.dumps(status), encoding="utf-8")
    record = {"started": "2026-01-01T00:00:00+00:00", "command": ["gramian", "train"], "git": None,
              "versions": {"python": "3.11", "torch": "2.11"}, "hardware": {"device": "none: made up"}}  # fmt: skip
    (run / "provenance.json").write_text(json.dumps([record]), encoding="utf-8")
    ends = np.sort(generator.integers(1, frames + 1, episodes))
    level = goal + 0.1 * abs(goal - low) * generator.normal()
    rise = 1 - np.exp(-4 * ends / frames * generator.uniform(0.6, 1.4))
    returns = low + (level - low) * rise + 0.15 * abs(level - low) * generator.normal(size=episodes)
    lines = [
        f"{end},0,{at},{value!r},0.0,100,0" for at, (end, value) in enumerate(zip(ends, returns.tolist(), strict=True))
    ]
    header = "frames,environment,episode,raw_return,clipped_return,length_agent_steps,truncated"
    (run / "episodes.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    if metric_rows:
        at = np.linspace(frames / metric_rows, frames, metric_rows)
        shrink = 0.3 if arm.startswith("gram") else 1.0
        values = np.exp(generator.normal(0, 0.1, (metric_rows, len(METRICS)))) * (1 + shrink * at[:, None] / frames)
        values[:, METRICS.index("active_features")] = 0.3 * shrink + 0.1 * generator.random(metric_rows)
        rows = [",".join([str(int(frame)), *map(repr, row)]) for frame, row in zip(at, values.tolist(), strict=True)]
        (run / "metrics.csv").write_text("\n".join([",".join(["frames", *METRICS]), *rows]) + "\n", encoding="utf-8")
