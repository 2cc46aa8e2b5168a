"""What a reader has to know before the numbers: few seeds, missing cells, unknown references, mixed settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from gramian.core import statistics
from gramian.core.progress import counted
from gramian.core.statistics import Array
from gramian.report import reference
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.study.store import Study

if TYPE_CHECKING:
    from gramian.report.analysis import Analysis


def find_cautions(study: Study, found: "Analysis") -> list[str]:
    """Sentences about a study and the numbers that were found in it, the gravest first."""
    frames = found.options.frames
    return [
        *([f"Of every run the first {frames:,} frames are looked at, and no others."] if frames else []),
        *_about_seeds(found),
        *_about_missing(found),
        *_about_references(found),
        *_about_baseline(found),
        *_about_settings(study, found),
        *_about_sweep(found),
    ]


def about_ranges(final: Mapping[str, Array]) -> str:
    """What stands beside intervals of single games where the seeds are so few that they are ranges; else nothing.

    The 95 % percentiles of a bootstrap from 3 runs or fewer are the least and the greatest run.
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
    """That runs were made by different rules, where they were; else nothing."""
    presets = sorted(study.runs["preset"].unique().to_list())
    return f"Runs of different presets are mixed: {_listed(presets)}." if len(presets) > 1 else ""


def _about_seeds(found: "Analysis") -> Iterator[str]:
    counts = np.stack([np.isfinite(scores).sum(0) for scores in found.final.values()])  # [A, G]
    scored = counts[counts > 0]
    if not scored.size:
        yield "No run has finished yet: there are learning curves so far, and no scores."
        return
    if scored.min() < statistics.FEWEST_SEEDS:
        yield (
            f"{counted(int((counts == 1).sum()), 'cell')} (game and arm) with one finished seed: its spread is "
            "unknown, so that no interval is given there, nor for an aggregate or a share of pairs won that it is "
            "part of."
        )
    if statistics.FEWEST_SEEDS <= scored.max() < statistics.FEW_SEEDS:
        yield (
            f"At most {counted(int(scored.max()), 'seed')} a cell: percentile intervals from so few runs are narrower "
            f"than they should be (from about {statistics.FEW_SEEDS} on they can be trusted). "
            f"With {MOST_OF_A_RANGE} seeds or fewer the interval of one game is the range of its seeds."
        )
    if scored.min() != scored.max():
        yield (
            f"Cells have between {scored.min()} and {scored.max()} finished seeds: in the IQM and the profile a game "
            "with more runs counts more."
        )


def _about_missing(found: "Analysis") -> Iterator[str]:
    ended = found.missing.filter(state="diverged")["run"].to_list()
    diverged = len(set(ended) - set(found.unscored))
    unfinished = found.missing.height - len(ended)
    if unfinished:
        yield (
            f"{counted(unfinished, 'cell')} did not finish and {'has' if unfinished == 1 else 'have'} no score; the "
            "page lists them under 'What was run'."
        )
    if diverged:
        yield (
            f"{counted(diverged, 'run')} diverged and {'counts' if diverged == 1 else 'count'} as random play from "
            "there on, in the final score and in the area under the curve."
        )
    if found.not_numbers:
        yield f"{counted(found.not_numbers, 'episode')} with a return that is not a number: left out."
    if found.unscored:
        yield (
            f"{counted(len(found.unscored), 'finished run')} cannot be scored (no episode ended, or it diverged and "
            f"random play is unknown): {_listed(found.unscored)}."
        )
    if found.short:
        yield (
            f"{counted(len(found.short), 'run')} ended fewer than 100 episodes; the final score is the mean of those "
            "there are."
        )


def _about_references(found: "Analysis") -> Iterator[str]:
    if names := _titles(found, np.flatnonzero(np.isnan(found.human))):
        yield (
            f"No human score is known for {names}: medians, means, IQM, optimality gap and profiles leave these games "
            "out."
        )
    left_out = [at for at in np.flatnonzero(np.isfinite(found.human)) if at not in found.common]
    if left_out and any(np.isfinite(scores).any() for scores in found.final.values()):
        yield f"Aggregates leave out {_titles(found, left_out)}: not every arm has a finished run there."
    if 0 < len(found.common) < statistics.FEW_GAMES:
        yield (
            f"Aggregates are over {counted(len(found.common), 'game')}: fewer than {statistics.FEW_GAMES} say more "
            "about the choice of games than about the arms."
        )
    if names := _titles(found, found.random_from_prefill):
        yield f"The random score of {names} is measured from the runs' own random prefill."
    if names := _titles(found, np.flatnonzero(np.isnan(found.random))):
        yield f"No score of random play is known for {names}: no AUC gain is given there."


def _about_baseline(found: "Analysis") -> Iterator[str]:
    """Where the baseline has not learned, a gain is a multiple of next to nothing."""
    baseline = found.options.baseline
    if not found.has_baseline() or len(found.arms) < 2:
        return
    areas = statistics.mean_over_runs(found.auc[baseline])
    if names := _titles(found, np.flatnonzero(areas <= found.random)):
        yield (
            f"The area under the curve of {baseline} is no larger than random play's in {names}: AUC gains there are "
            "measured against a baseline that has not learned."
        )


def _about_settings(study: Study, found: "Analysis") -> Iterator[str]:
    if not found.has_baseline():
        yield f"There is no arm '{found.options.baseline}' to compare with; name another baseline."
    targets = study.runs.group_by("game").agg(pl.col("frames_target").drop_nulls().n_unique())
    if targets["frames_target"].max() not in (None, 0, 1):
        yield "Runs of the same game are of different lengths: their scores are not at the same frame."
    if mixed := about_presets(study):
        yield mixed
    lengths = {int(found.horizon[at]) for at, game in enumerate(found.games) if reference.atari(game) is not None}
    other = sorted(frames for frames in lengths if abs(frames / reference.PAPER_FRAMES - 1) > 0.01)
    if other:
        frames = " and ".join(f"{frames:,}" for frames in other[:3])
        yield (
            f"Atari runs are {frames} frames long; the paper's columns and Dopamine's are at "
            f"{reference.PAPER_FRAMES:,} frames."
        )


def _about_sweep(found: "Analysis") -> Iterator[str]:
    if (sweep := found.sweep) is None:
        return
    if names := _titles(found, [at for at in range(len(found.games)) if at not in sweep.games]):
        yield f"The choice of κ leaves out {names}: not every κ has a finished run there."
    if not sweep.grids_agree:
        yield "The penalties were not tried at the same κ with as many runs: the choice of κ is not at equal effort."
    if edge := [penalty.name for penalty in sweep.penalties if penalty.at_edge]:
        yield f"The best κ of {_listed(edge)} is at an end of the grid: a better one may lie outside."


def _titles(found: "Analysis", games: ArrayLike) -> str:
    return _listed([reference.title(found.games[at]) for at in np.asarray(games, int)])


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
