"""The paper's artefacts and the protocol's statistics of the study ``atari49``.

    python -m benchmarks.atari49 --out FOLDER

``results/atari49/README.md`` is the protocol. The study may be unfinished: what is missing is named, and nothing is
tested before all 49 games have the first seed.

| file | content |
| --- | --- |
| ``summary.md`` | what is missing; shares of games, sizes of the difference, tests, correlations |
| ``table.md``, ``table.tex`` | final scores of the games beside the paper's columns |
| ``games.csv`` | learned areas of the arms in each game, of the first seed and over both |
| ``auc-gain-dqn``, ``auc-gain-norm`` | gain and loss by area of each game, as PNG and SVG |
| ``median`` | median human-normalised curves, with bootstrap intervals over games |
| ``learning-curves`` | every game in one grid |
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.stats

from benchmarks.command_line import Parser, exit_code, new_folder, table
from benchmarks.power49 import Games
from gramian.core.files import replace_text
from gramian.core.progress import counted
from gramian.core.statistics import (
    Array,
    Interval,
    clopper_pearson,
    count_games,
    holm,
    human_normalised,
    interquartile_mean,
    mean_interval,
    mean_over_runs,
    ratios,
    sign_test,
    student_by_game,
    wilcoxon,
)
from gramian.report.analysis import Analysis, Options, analyse
from gramian.report.features import feature_table
from gramian.report.figures import auc_gains, draw, learning_curves, line_figure
from gramian.report.panels import Panel, without_runs
from gramian.report.reference import title
from gramian.report.tables import latex, markdown, score_table
from gramian.study.manifest import read_planned
from gramian.study.store import Study, read_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STUDY = Path(__file__).parents[1] / "results" / "atari49" / "study"
DQN, GRAM, NORM = "dqn", "gram (0.082)", "norm (0.24)"
ARMS = (DQN, GRAM, NORM)
FIRST_SEED = 200
REPLICATES = 10_000
SEED = 20261118
FEATURES = ("training_norm", "training_active", "held_out_sparsity", "held_out_effective_rank", "held_out_srank")
"""Columns of ``features.csv`` of ``dqn`` that may predict where a penalty helps."""


@dataclass(frozen=True)
class Outcome:
    """Learned areas of the arms ``[S, G]`` over the paper's games, NaN where a run is missing."""

    names: list[str]
    areas: Mapping[str, Array]

    def complete(self) -> int:
        """Games in which every arm has the first seed."""
        return int(np.logical_and.reduce([np.isfinite(areas[0]) for areas in self.areas.values()]).sum())

    def means(self, *, both_seeds: bool) -> dict[str, Array]:
        """Learned areas ``[G]`` of the first seed, or means over the seeds that there are."""
        return {arm: mean_over_runs(areas if both_seeds else areas[:1]) for arm, areas in self.areas.items()}


def outcome(analysis: Analysis) -> Outcome:
    """The learned areas of a study, in the order of `Games`."""
    names = Games().names
    seeds = [FIRST_SEED, *(seed for seed in analysis.seeds if seed != FIRST_SEED)]
    areas = {arm: np.full((len(seeds), len(names)), np.nan) for arm in ARMS}
    for at, game in enumerate(analysis.games):
        for arm in set(ARMS) & set(analysis.arms):
            own = analysis.auc[arm][:, at] - analysis.random[at]
            for seed, area in zip(analysis.seeds, own, strict=True):
                areas[arm][seeds.index(seed), names.index(title(game))] = area
    return Outcome(names, areas)


def size_rows(gram: Array, dqn: Array, generator: np.random.Generator) -> list[list[str]]:
    """How large the difference is: percent of what DQN learns, its log ratio, signed ranks; ``[G]`` each."""
    percent = 100.0 * (gram - dqn) / dqn
    positive = (gram > 0) & (dqn > 0)
    drawn = percent[generator.integers(len(percent), size=(REPLICATES, len(percent)))]
    rows = []
    for name, statistic in (("IQM", lambda values: interquartile_mean(values[..., None, :])), ("mean", _mean)):
        low, high = np.percentile(statistic(drawn), [2.5, 97.5])
        rows.append(
            [f"{name} over games, % of what DQN learns", f"{float(statistic(percent)):+.1f} [{low:+.1f}, {high:+.1f}]"]
        )
    ends = np.exp(mean_interval(np.log(gram[positive] / dqn[positive])))
    rows.append([f"geometric mean of the ratio, {positive.sum()} games", "×{:.2f} [{:.2f}, {:.2f}]".format(*ends)])
    ranks = wilcoxon((gram - dqn) / (np.abs(gram) + np.abs(dqn)))
    return [*rows, ["Wilcoxon's signed ranks of (g − d)/(|g| + |d|)", f"p = {ranks:.3g}"]]


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(-1))


def has_learned(study: Study, random: Mapping[str, float]) -> set[str]:
    """Games in which our ``dqn`` has learned by the last 100 episodes of its first seed; the sensitivity analysis."""
    found = set()
    runs = study.runs.filter(arm=DQN, seed=FIRST_SEED)
    for run, game in runs.select("run", "game").iter_rows():
        own = study.episodes.filter(run=run)
        prefill = 4 * int(study.settings.get(run, {}).get("prefill_agent_steps", 0))
        last = own["return"].tail(100).to_numpy()
        first = own.filter(pl.col("frames") <= prefill)["return"].to_numpy()
        if len(last) < 2 or len(first) < 2:
            continue
        above = last.mean() - random[game]
        if above > 3 * last.std(ddof=1) / np.sqrt(len(last)) and above > first.std(ddof=1) / 2:
            found.add(title(game))
    return found


def correlations(study: Study, found: Outcome) -> list[list[str]]:
    """Spearman's correlations over games of DQN's features with the relative difference, with Holm's correction."""
    features = feature_table(study)
    if features is None:
        return []
    of_dqn = features.filter(arm=DQN, seed=FIRST_SEED)
    at = [found.names.index(title(game)) for game in of_dqn["game"]]
    means = found.means(both_seeds=False)
    difference = ((means[GRAM] - means[DQN]) / (np.abs(means[GRAM]) + np.abs(means[DQN])))[at]
    rows, p_values = [], []
    for column in [name for name in FEATURES if name in of_dqn.columns]:
        values = of_dqn[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        both = np.isfinite(values) & np.isfinite(difference)
        if both.sum() > 2:
            rho, p = scipy.stats.spearmanr(values[both], difference[both])
            rows.append([column, str(both.sum()), f"{rho:+.2f}"])
            p_values.append(p)
    return [[*row, f"{p:.3g}"] for row, p in zip(rows, holm(p_values), strict=True)]


def missing_words(missing: pl.DataFrame) -> list[str]:
    """A line for each seed with the games that lack an arm; a diverged run is not missing, it counts as random play."""
    left = missing.filter(pl.col("state") != "diverged")
    lines = []
    for (seed,), rows in left.group_by("seed", maintain_order=True):
        games = sorted({title(game) for game in rows["game"]})
        lines.append(
            f"- seed {seed}: {counted(rows.height, 'run')} of {counted(len(games), 'game')}: {', '.join(games)}"
        )
    return sorted(lines)


def summary(study: Study, analysis: Analysis) -> str:
    """The statistics of the protocol as Markdown; no test before every game has the first seed."""
    found = outcome(analysis)
    total, complete = len(found.names), found.complete()
    lines = ["# Atari: 49 games at 4M frames", "", f"Seed {FIRST_SEED}: {complete} of {total} games.", ""]
    if missing := missing_words(analysis.missing):
        lines += ["Missing:", "", *missing, ""]
    if complete < total:
        return "\n".join([*lines, f"Nothing is tested before all {total} games have seed {FIRST_SEED}.", ""])
    begun = Games().begun
    learned = has_learned(study, dict(zip(analysis.games, analysis.random.tolist(), strict=True)))
    for both_seeds in (False, True) if len(found.areas[DQN]) > 1 else (False,):
        means = found.means(both_seeds=both_seeds)
        heading = "Means over both seeds" if both_seeds else f"Seed {FIRST_SEED}"
        lines += [f"## {heading}", "", *_shares(means, found.names)]
        for words, games in (
            ("games that DQN has begun to learn (fixed beforehand)", begun),
            ("games that our DQN has learned (sensitivity)", np.isin(found.names, list(learned))),
        ):
            if games.any():
                rows = size_rows(means[GRAM][games], means[DQN][games], np.random.default_rng(SEED))
                lines += [f"{GRAM} against {DQN}, {games.sum()} {words}:", "", table(["", "value"], rows, 2)]
    if rows := correlations(study, found):
        said = "Spearman's correlation over games of a feature of `dqn` with (g − d)/(|g| + |d|)."
        lines += ["## Where does gram help?", "", said, "", table(["feature", "games", "ρ", "p (Holm)"], rows)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _shares(means: Mapping[str, Array], names: Sequence[str]) -> Iterator[str]:
    counts = {other: count_games(means[GRAM], means[other]) for other in (DQN, NORM)}
    adjusted = holm([sign_test(count) for count in counts.values()])
    rows = []
    for (other, count), p in zip(counts.items(), adjusted, strict=True):
        low, high = clopper_pearson(count.wins, count.wins + count.losses)
        share = count.wins / (count.wins + count.losses)
        rows.append(
            [f"{GRAM} against {other}", "-".join(map(str, count)), f"{share:.2f} [{low:.2f}, {high:.2f}]", f"{p:.3g}"]
        )
    yield table(
        ["larger learned area", "won-tied-lost", "share of games (Clopper–Pearson)", "sign test, p (Holm)"], rows
    )
    equal = [name for name, same in zip(names, means[GRAM] == means[DQN], strict=True) if same]
    if equal:
        yield f"Equal areas, left out: {', '.join(equal)}.\n"


def median_curves(analysis: Analysis) -> Panel:
    """Median over games of the human-normalised curves, with bootstrap intervals over games."""
    lines = {}
    share = 100.0 * np.arange(1, len(analysis.grid(0)) + 1) / len(analysis.grid(0))
    curves = {
        arm: mean_over_runs(
            np.moveaxis(human_normalised(own, analysis.random[:, None], analysis.human[:, None]), -1, 0)
        )
        for arm, own in analysis.curves.items()
    }  # [K, G]
    together = np.logical_and.reduce([np.isfinite(own).all(0) for own in curves.values()])
    games = np.flatnonzero(together)
    drawn = games[np.random.default_rng(SEED).integers(len(games), size=(2_000, len(games)))] if len(games) else games
    for arm, own in curves.items() if len(games) else ():
        low, high = np.percentile(np.median(own[:, drawn], axis=-1), [2.5, 97.5], axis=1)
        lines[arm] = without_runs(share, Interval(np.median(own[:, games], axis=1), low, high))
    return Panel(f"median of {len(games)} games", lines, "% of the frames of a run", 100.0)


def games_table(found: Outcome) -> pl.DataFrame:
    """Learned areas of each game, of the first seed and over both, with gram's percent of what DQN learns."""
    begun = Games().begun
    columns: dict[str, Any] = {"game": found.names, "begun": begun}
    for both_seeds, suffix in ((False, ""), (True, "_both")):
        columns |= {f"{arm.split()[0]}{suffix}": area for arm, area in found.means(both_seeds=both_seeds).items()}
    for other, name in ((DQN, "dqn"), (NORM, "norm")):
        percent = student_by_game(100.0 * ratios(found.areas[GRAM] - found.areas[other], found.areas[other]))
        columns |= dict(zip((f"gain_{name}", f"gain_{name}_low", f"gain_{name}_high"), percent, strict=True))
    return pl.DataFrame(columns).fill_nan(None)


def with_arms(study: Study, *arms: str) -> Study:
    """The runs of some arms alone."""
    own = pl.col("arm").is_in(arms)
    logs = {name: getattr(study, name).filter(own) for name in ("runs", "episodes", "metrics", "held_out")}
    return replace(study, **logs)


def write(folder: Path, out: Path) -> str:
    """Write every file; gives the summary."""
    study = read_study(folder)
    analysis = analyse(study, Options(), read_planned(folder))
    text = summary(study, analysis)
    scores = score_table(analysis)
    replace_text(out / "summary.md", text)
    replace_text(out / "table.md", markdown(scores, analysis.cautions))
    replace_text(out / "table.tex", latex(scores, analysis.cautions))
    replace_text(out / "games.csv", games_table(outcome(analysis)).write_csv())
    against_norm = analyse(with_arms(study, GRAM, NORM), Options(baseline=NORM))
    label = f"human-normalised ({analysis.options.human})"
    jobs: dict[str, Callable[[], Figure]] = {
        "auc-gain-dqn": lambda: auc_gains(analysis),
        "auc-gain-norm": lambda: auc_gains(against_norm),
        "median": lambda: line_figure(analysis, [median_curves(analysis)], label),
        "learning-curves": lambda: learning_curves(analysis),
    }
    draw(jobs, out)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""

    def work() -> None:
        parser = Parser("atari49", __doc__)
        parser.add_argument("--study", type=Path, default=STUDY, metavar="FOLDER", help="the study, or its parts")
        parser.add_argument("--out", type=new_folder, required=True, metavar="FOLDER", help="write the files into it")
        options = parser.parse_args(arguments)
        print(write(options.study, options.out), end="")

    return exit_code("atari49", work)


if __name__ == "__main__":
    sys.exit(main())
