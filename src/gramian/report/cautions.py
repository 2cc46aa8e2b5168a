"""What a reader has to know before the numbers: said on the page and in the tables, never papered over."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from gramian.core import statistics
from gramian.core.statistics import Array
from gramian.report import reference
from gramian.report.scores import Scores
from gramian.report.sweep import Sweep
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.study.store import Study


def find_cautions(
    study: Study,
    tables: Scores,
    arms: list[str],
    common: list[int],
    missing: pl.DataFrame,
    baseline: str,
    sweep: Sweep | None = None,
) -> list[str]:
    """Sentences about a study, the gravest first: few seeds, missing cells, unknown references, mixed settings.

    Parameters
    ----------
    study, tables, arms
        The runs, their scores and the arms in order.
    common
        Games that the aggregates are over.
    missing
        Runs that did not finish.
    baseline
        Arm that the others are compared with.
    sweep
        The choice of κ, where there is one.
    """
    return [
        *_about_seeds(tables, arms),
        *_about_missing(tables, missing),
        *_about_references(tables, common),
        *_about_baseline(tables, arms, baseline),
        *_about_settings(study, tables, arms, baseline),
        *_about_sweep(tables, sweep),
    ]


def about_ranges(final: Mapping[str, Array]) -> str:
    """What stands beside intervals of single games where the seeds are so few that they are ranges; else nothing.

    The 95 % percentiles of a bootstrap from 3 runs or fewer are the least and the greatest run.

    Examples
    --------
    >>> about_ranges({"dqn": np.ones((2, 1)), "gram": np.ones((2, 1))})[:51]
    'Range of 2 seeds: an interval of a game is no more '
    >>> about_ranges({"dqn": np.ones((10, 1))})
    ''
    """
    most = max((int(np.isfinite(scores).sum(0).max(initial=0)) for scores in final.values()), default=0)
    if not statistics.FEWEST_SEEDS <= most <= MOST_OF_A_RANGE:
        return ""
    return (
        f"Range of {most} seeds: an interval of a game is no more than what its seeds span, and far narrower than a "
        "95 % interval would be. That one leaves out 0 is no sign of a difference. Differences in final score have "
        "Student's intervals, which are as wide as they must be."
    )


def about_presets(study: Study) -> str:
    """That runs were made by different rules, where they were; else nothing.

    Examples
    --------
    >>> empty = pl.DataFrame()
    >>> about_presets(Study(pl.DataFrame({"preset": ["minatar", "author", "minatar"]}), empty, empty))
    'Runs of different presets are mixed: author, minatar.'
    >>> about_presets(Study(pl.DataFrame({"preset": ["author"]}), empty, empty))
    ''
    """
    presets = sorted(study.runs["preset"].unique().to_list())
    return f"Runs of different presets are mixed: {_listed(presets)}." if len(presets) > 1 else ""


def _about_seeds(tables: Scores, arms: list[str]) -> list[str]:
    said: list[str] = []
    counts = np.stack([np.isfinite(tables.final[arm]).sum(0) for arm in arms])  # [A, G]
    scored = counts[counts > 0]
    if not scored.size:
        said.append("No run has finished yet: there are learning curves so far, and no scores.")
    else:
        if scored.min() < statistics.FEWEST_SEEDS:
            alone = int((counts == 1).sum())
            said.append(
                f"{_plural(alone, 'cell')} (game and arm) with one finished seed: its spread is unknown, so that no "
                "interval is given there, nor for an aggregate or a share of pairs won that it is part of."
            )
        if statistics.FEWEST_SEEDS <= scored.max() < statistics.FEW_SEEDS:
            said.append(
                f"At most {_plural(int(scored.max()), 'seed')} a cell: percentile intervals from so few runs are "
                f"narrower than they should be (from about {statistics.FEW_SEEDS} on they can be trusted). "
                f"With {MOST_OF_A_RANGE} seeds or fewer the interval of one game is the range of its seeds."
            )
        if scored.min() != scored.max():
            said.append(
                f"Cells have between {scored.min()} and {scored.max()} finished seeds: in the IQM and the profile a "
                "game with more runs counts more."
            )
    return said


def _about_missing(tables: Scores, missing: pl.DataFrame) -> list[str]:
    said: list[str] = []
    ended = missing.filter(state="diverged")["run"].to_list()
    diverged = len(set(ended) - set(tables.unscored))
    unfinished = missing.height - len(ended)
    if unfinished:
        said.append(
            f"{_plural(unfinished, 'cell')} did not finish and {_have(unfinished)} no score; the page lists them under "
            "'What was run'."
        )
    if diverged:
        said.append(
            f"{_plural(diverged, 'run')} diverged and {_count(diverged)} as random play from there on, in the final "
            "score and in the area under the curve."
        )
    if tables.not_numbers:
        said.append(f"{_plural(tables.not_numbers, 'episode')} with a return that is no number: left out.")
    if tables.unscored:
        said.append(
            f"{_plural(len(tables.unscored), 'finished run')} cannot be scored (no episode ended, or it diverged and "
            f"random play is unknown): {_listed(tables.unscored)}."
        )
    if tables.short:
        said.append(
            f"{_plural(len(tables.short), 'run')} ended fewer than 100 episodes; the final score is the mean of those "
            "there are."
        )
    return said


def _about_references(tables: Scores, common: list[int]) -> list[str]:
    said: list[str] = []
    unknown_human = [
        reference.title(game) for game, value in zip(tables.games, tables.human, strict=True) if np.isnan(value)
    ]
    if unknown_human:
        said.append(
            f"No human score is known for {_listed(unknown_human)}: medians, means, IQM, optimality gap and profiles "
            "leave these games out."
        )
    left_out = [
        reference.title(game)
        for at, game in enumerate(tables.games)
        if np.isfinite(tables.human[at]) and at not in common
    ]
    if left_out and any(np.isfinite(scores).any() for scores in tables.final.values()):
        said.append(f"Aggregates leave out {_listed(left_out)}: not every arm has a finished run there.")
    if 0 < len(common) < statistics.FEW_GAMES:
        said.append(
            f"Aggregates are over {_plural(len(common), 'game')}: fewer than {statistics.FEW_GAMES} say more about the "
            "choice of games than about the arms."
        )
    if tables.random_from_prefill:
        names = [reference.title(tables.games[at]) for at in tables.random_from_prefill]
        said.append(f"The random score of {_listed(names)} is measured from the runs' own random prefill.")
    unknown_random = [
        reference.title(game) for game, value in zip(tables.games, tables.random, strict=True) if np.isnan(value)
    ]
    if unknown_random:
        said.append(f"No score of random play is known for {_listed(unknown_random)}: no AUC gain is given there.")
    return said


def _about_baseline(tables: Scores, arms: list[str], baseline: str) -> list[str]:
    """Where the baseline has not learned, a gain is a multiple of next to nothing."""
    if baseline not in arms or len(arms) < 2:
        return []
    areas = statistics.mean_over_runs(tables.auc[baseline])
    names = [reference.title(tables.games[at]) for at in np.flatnonzero(areas <= tables.random)]
    if not names:
        return []
    return [
        f"The area under the curve of {baseline} is no larger than random play's in {_listed(names)}: AUC gains there "
        "are measured against a baseline that has not learned."
    ]


def _about_settings(study: Study, tables: Scores, arms: list[str], baseline: str) -> list[str]:
    said: list[str] = []
    if baseline not in arms:
        said.append(f"There is no arm '{baseline}' to compare with; name another baseline.")
    targets = study.runs.group_by("game").agg(pl.col("frames_target").drop_nulls().n_unique())
    if targets["frames_target"].max() not in (None, 0, 1):
        said.append("Runs of the same game are of different lengths: their scores are not at the same frame.")
    if mixed := about_presets(study):
        said.append(mixed)
    on_atari = [at for at, game in enumerate(tables.games) if reference.atari(game) is not None]
    lengths = {int(tables.horizon[at]) for at in on_atari}
    other = sorted(frames for frames in lengths if abs(frames / reference.PAPER_FRAMES - 1) > 0.01)
    if other:
        frames = " and ".join(f"{frames:,}" for frames in other[:3])
        said.append(
            f"Atari runs are {frames} frames long; the paper's columns and Dopamine's are at "
            f"{reference.PAPER_FRAMES:,} frames."
        )
    return said


def _about_sweep(tables: Scores, sweep: Sweep | None) -> list[str]:
    if sweep is None:
        return []
    said: list[str] = []
    left_out = [reference.title(game) for at, game in enumerate(tables.games) if at not in sweep.games]
    if left_out:
        said.append(f"The choice of κ leaves out {_listed(left_out)}: not every κ has a finished run there.")
    if not sweep.grids_agree:
        said.append(
            "The penalties were not tried at the same κ with as many runs: the choice of κ is not at equal effort."
        )
    edge = [penalty.name for penalty in sweep.penalties if penalty.at_edge]
    if edge:
        said.append(f"The best κ of {_listed(edge)} is at an end of the grid: a better one may lie outside.")
    return said


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _count(count: int) -> str:
    return "counts" if count == 1 else "count"


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
