"""Small studies for the tests of the report."""

from pathlib import Path

import polars as pl

from gramian.study.store import CELL_SCHEMA, EPISODE_SCHEMA, RUN_SCHEMA, Study

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
