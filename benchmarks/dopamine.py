"""Our DQN beside Dopamine's, game by game and million frames by million frames.

Dopamine's numbers are its public training curves (github.com/google/dopamine, DQN with Adam and the mean squared error,
5 runs), which the package ships as ``gramian/data/dopamine_dqn_adam_20M.csv``: a point is the mean raw return of the
training episodes of a million frames. Ours are the same mean of the episodes that ended within that million. Intervals
are 95 %, of the mean over runs; the difference is ours less theirs, with Welch's interval, and the last column says how
often a run of ours beats one of theirs (ties are halves).

Run ``gramian study run dopamine --out runs/dopamine``, then
``python -m benchmarks.dopamine runs/dopamine --out FOLDER``, which writes ``dopamine.csv``, ``dopamine.md`` and
``dopamine.png``.
"""

import argparse
import csv
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl
import scipy.stats
from matplotlib.figure import Figure

from gramian.files import output_folder, replace_text, replacing
from gramian.report import reference
from gramian.report.statistics import Array
from gramian.study.store import Study, read_study

MILLION = 1_000_000
ARM = "dqn"


@dataclass(frozen=True)
class Row:
    """One million frames of one game."""

    game: str
    million_frames: int
    """Its end."""
    runs: int
    mean: float
    low: float
    high: float
    dopamine_runs: int
    dopamine_mean: float
    dopamine_low: float
    dopamine_high: float
    difference: float
    difference_low: float
    difference_high: float
    improvement: float
    """Share of pairs of one of our runs and one of theirs that ours wins."""


def by_million(frames: Array, returns: Array, millions: int) -> Array:
    """Mean return of the episodes that ended within each million frames ``[millions]``; NaN where none did."""
    place = np.minimum(np.ceil(frames / MILLION).astype(int) - 1, millions)
    return np.array([returns[place == at].mean() if (place == at).any() else np.nan for at in range(millions)])


def our_curves(study: Study, game: str, millions: int) -> Array:
    """Means by million of every finished run of DQN ``[runs, millions]``."""
    runs = study.runs.filter(pl.col("game") == game, pl.col("kind") == ARM, pl.col("state") == "done")["run"].to_list()
    curves = []
    for run in runs:
        rows = study.episodes.filter(pl.col("run") == run)
        curves.append(by_million(rows["frames"].to_numpy(), rows["return"].to_numpy(), millions))
    return np.array(curves).reshape(len(runs), millions)


def interval(values: Array) -> tuple[float, float, float]:
    """Mean with Student's 95 % interval; endless with fewer than two values."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, -math.inf, math.inf
    half = float(scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def welch(ours: Array, theirs: Array) -> tuple[float, float, float]:
    """Difference of the means with Welch's 95 % interval."""
    value = float(ours.mean() - theirs.mean())
    if min(len(ours), len(theirs)) < 2:
        return value, -math.inf, math.inf
    if np.ptp(ours) == np.ptp(theirs) == 0:
        return value, value, value
    ends = scipy.stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    return value, float(ends.low), float(ends.high)


def compare(study: Study) -> list[Row]:
    """Every game of a study that Dopamine has a curve of, as far as our runs go."""
    rows = []
    for game in sorted(study.runs["game"].unique().to_list()):
        published = reference.dopamine_curve(game)
        target = study.runs.filter(pl.col("game") == game)["frames_target"].max()
        millions = int(str(target or 0)) // MILLION
        if published is None or not millions:
            continue
        curves = our_curves(study, game, min(millions, published.returns.shape[1]))
        for at in range(curves.shape[1]):
            ours = curves[np.isfinite(curves[:, at]), at]
            theirs = published.returns[np.isfinite(published.returns[:, at]), at]
            if not len(ours) or not len(theirs):
                continue
            won = 0.5 * (np.sign(ours[:, None] - theirs[None]) + 1.0)
            rows.append(
                Row(
                    game,
                    at + 1,
                    len(ours),
                    *interval(ours),
                    len(theirs),
                    *interval(theirs),
                    *welch(ours, theirs),
                    float(won.mean()),
                )
            )
    return rows


def number(value: float) -> str:
    """Three significant digits, a true minus."""
    if not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 2)}f}".replace("-", "−")


def shown(value: float, low: float, high: float) -> str:
    """An estimate with its interval."""
    return f"{number(value)} [{number(low)}, {number(high)}]"


def markdown(rows: list[Row]) -> str:
    """The table: a line for each million frames of each game."""
    lines = [
        "| game | million frames | ours (runs) | Dopamine's (runs) | difference | ours better |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        ours = f"{shown(row.mean, row.low, row.high)} ({row.runs})"
        theirs = f"{shown(row.dopamine_mean, row.dopamine_low, row.dopamine_high)} ({row.dopamine_runs})"
        apart = shown(row.difference, row.difference_low, row.difference_high)
        game, won = reference.title(row.game), f"{row.improvement:.0%}"
        lines.append(f"| {game} | {row.million_frames} | {ours} | {theirs} | {apart} | {won} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[Row]) -> Figure:
    """Both curves of every game, with intervals."""
    games = list(dict.fromkeys(row.game for row in rows))
    columns = min(3, len(games))
    figure = Figure(figsize=(3.2 * columns, 2.4 * -(-len(games) // columns)), layout="constrained")
    panels = figure.subplots(-(-len(games) // columns), columns, squeeze=False).ravel()
    for panel, game in zip(panels, games, strict=False):
        own = [row for row in rows if row.game == game]
        at = [row.million_frames for row in own]
        for label, style, color, values in (
            ("ours", "-", "#0072b2", [(row.mean, row.low, row.high) for row in own]),
            ("Dopamine's", "--", "#5f6670", [(row.dopamine_mean, row.dopamine_low, row.dopamine_high) for row in own]),
        ):
            mean, low, high = (np.array(part) for part in zip(*values, strict=True))
            known = np.isfinite(low)
            panel.plot(at, mean, style, color=color, label=label, marker="o", markersize=3)
            panel.fill_between(np.array(at)[known], low[known], high[known], color=color, alpha=0.2, linewidth=0)
        panel.set_title(reference.title(game), fontsize=9)
        panel.set_xlabel("million frames", fontsize=8)
        panel.tick_params(labelsize=7)
    for panel in panels[len(games) :]:
        panel.set_visible(False)
    panels[0].set_ylabel("mean training return", fontsize=8)
    panels[0].legend(fontsize=7)
    return figure


def write(rows: list[Row], out: Path) -> None:
    """Write the table as CSV and Markdown, and the figure."""
    folder = output_folder(out)
    with replacing(folder / "dopamine.csv") as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    replace_text(folder / "dopamine.md", markdown(rows))
    with replacing(folder / "dopamine.png") as temporary:
        draw(rows).savefig(temporary, dpi=130, format="png")


def main() -> None:
    """Print the table, and write it where a folder is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder of the study dopamine")
    parser.add_argument("--out", type=Path, help="folder for dopamine.csv, dopamine.md and dopamine.png")
    options = parser.parse_args()
    rows = compare(read_study(options.study))
    if not rows:
        parser.error(
            f"'{options.study}' has no finished run of {ARM} of a million frames of a game with a public curve"
        )
    print(markdown(rows))
    if options.out is not None:
        write(rows, options.out)


if __name__ == "__main__":
    main()
