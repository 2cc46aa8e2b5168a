"""Trained runs compared: tables, figures and a summary of what their features look like."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.core.arms import arm_label, order_arms
from gramian.core.errors import UserError
from gramian.core.files import files_below, find_export, output_folder, replace_text
from gramian.deep.runs.load import CONFIG, Run, load_run
from gramian.representation.dynamics import GROWTH, growth, read_columns
from gramian.representation.figures import draw
from gramian.representation.gather import AT_ONCE, check, gather
from gramian.representation.measures import MEASURES, FeatureStatistics
from gramian.representation.series import first_measured, measure_texts, unmeasured
from gramian.representation.tables import (
    CORRELATION,
    FILES,
    Measure,
    Moment,
    Point,
    append,
    check_curves,
    has_correlation,
    has_table,
    not_whole,
    read_correlation,
    read_curves,
    read_dynamics,
    read_measures,
    save_correlation,
    write,
)

SUMMARY = "summary.md"
DIVERGED = "diverged"
"""State of a run that is not measured."""


def analyze(
    folders: Sequence[Path | str],
    out: Path | str,
    *,
    states: int = 1_000_000,
    epsilon: float = 0.01,
    seed: int = 0,
    at_once: int = AT_ONCE,
    device: str = "cpu",
    figures: bool = True,
) -> Path:
    """Let trained runs play, measure their features and write tables, figures and a summary to ``out``.

    Every run is loaded before the first one plays, and the tables grow after each run: an interruption costs one run. A
    run that diverged is not measured.

    Parameters
    ----------
    folders
        Folders ``OUT/<run>``, or folders that hold such (`run_folders`). One that this function has written stands for
        the runs that were measured then, so that runs whose weights are elsewhere are compared too.
    states, epsilon, seed, at_once
        See `gather`.
    figures
        Without them neither matplotlib nor scipy is needed; `gramian.representation.figures.draw` draws them later.
    """
    check(states, epsilon, seed, at_once)
    own = protocol(states, epsilon, seed, at_once)
    known = [_read(Path(folder), states, own) for folder in folders if is_analysis(folder)]
    runs = [load_run(path, device) for folder in folders if not is_analysis(folder) for path in run_folders(folder)]
    if not runs and not known:
        raise UserError("no run to analyze; name at least one folder OUT/<run>")
    names = [name for one in known for name in one.names] + [run.spec.name for run in runs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"run '{twice[0]}' is given twice; name each game, arm and seed once")
    moments = [row for one in known for row in one.dynamics] + [row for run in runs for row in _logs(run)]
    folder = output_folder(out)
    output_folder(folder / CORRELATION)
    (folder / SUMMARY).unlink(missing_ok=True)  # where it is, the tables are whole and measured as it says
    measures = [row for one in known for row in one.measures]
    for name, matrix in (item for one in known for item in one.correlations.items()):
        save_correlation(folder / CORRELATION, name, matrix)
    write(folder / "dynamics.csv", moments)
    write(folder / "curves.csv", [row for one in known for row in one.curves])
    write(folder / "measures.csv", measures)
    for run in runs:
        if why := _why_not(run):
            print(f"'{run.spec.name}' is not measured: {why}; its measures are NaN, no mean has it", file=sys.stderr)
        if _state(run.folder) == DIVERGED:
            statistics = FeatureStatistics(run.features_dim, device=run.device)
        else:
            statistics = gather(run, states, epsilon=epsilon, seed=seed, at_once=at_once)
        correlation = statistics.correlation().cpu().numpy().astype(np.float32)
        save_correlation(folder / CORRELATION, run.spec.name, correlation)
        found = _measures(run, statistics)
        # tables that were written anew after each run would cost their square
        append(folder / "curves.csv", _curves(run, statistics))
        append(folder / "measures.csv", found)
        measures += found
    replace_text(folder / SUMMARY, summary(measures, own))
    if figures:
        draw(folder)
    return folder


def is_analysis(folder: Path | str) -> bool:
    """Whether a folder holds measures, as one does that `analyze` has written, and is no run."""
    return (Path(folder) / "measures.csv").exists() and not (Path(folder) / CONFIG).exists()


@dataclass(frozen=True)
class _Known:
    """What was measured before."""

    measures: list[Measure]
    curves: list[Point]
    dynamics: list[Moment]
    correlations: dict[str, NDArray[np.float32]]
    """By run; an export has only those that a report shows."""

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(row.run for row in self.measures))


def _read(folder: Path, states: int, own: str) -> _Known:
    """What an analysis has written; it must be whole and have the `protocol` of this one."""
    if missing := [name for name in (*FILES, SUMMARY) if not has_table(folder / name)]:
        raise UserError(
            f"'{folder}' holds measures.csv but no {', '.join(missing)}: it is no analysis that 'gramian analyze' has "
            "brought to its end; name one, or folders of runs"
        )
    try:
        lines = (folder / SUMMARY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{folder / SUMMARY}': {error}; analyze these runs again") from error
    if own not in lines:
        theirs = next((line for line in lines if " states of each run" in line), "an unknown number of states")
        raise UserError(
            f"the analysis '{folder}' has {theirs.split(';')[0]}, this one {own.split(';')[0]}; "
            "numbers of the two cannot be compared: give the same --states, --epsilon, --seed and --at-once"
        )
    measures = read_measures(folder / "measures.csv")
    curves, dynamics = read_curves(folder / "curves.csv"), read_dynamics(folder / "dynamics.csv")
    _check_whole(folder, measures, curves, dynamics)
    _check_states(folder, measures, states)
    correlations = {
        run: read_correlation(folder / CORRELATION, run)
        for run in dict.fromkeys(row.run for row in measures)
        if has_correlation(folder / CORRELATION, run)
    }
    return _Known(measures, curves, dynamics, correlations)


def _check_whole(folder: Path, measures: list[Measure], curves: list[Point], dynamics: list[Moment]) -> None:
    """Raise `UserError` unless every run of an analysis has all that the figures need."""
    if not measures:
        raise UserError(f"the analysis '{folder}' has no run; analyze its runs again")
    names = list(dict.fromkeys(row.measure for row in measures))
    by_run: dict[str, set[str]] = {}
    for row in measures:
        by_run.setdefault(row.run, set()).add(row.measure)
    if elsewhere := [run for run in by_run if "/" in run]:
        raise UserError(
            f"'{folder / 'measures.csv'}' has the run {elsewhere[0]!r}, which is no name; analyze its runs again"
        )
    for run, found in by_run.items():
        if lacks := [name for name in names if name not in found]:
            raise not_whole(folder, run, f"measure '{lacks[0]}'")
    for other in dict.fromkeys([*(row.run for row in curves), *(row.run for row in dynamics)]):
        if other not in by_run:
            raise not_whole(folder, other, "measures")
    check_curves(folder, measures, curves)
    # one that diverged may have done so before there was anything to log
    logged = {row.run for row in dynamics} | set(unmeasured(measures))
    if silent := [run for run in by_run if run not in logged]:
        raise not_whole(folder, silent[0], "dynamics")
    for game in dict.fromkeys(row.game for row in measures):
        own = [row for row in measures if row.game == game]
        for arm in dict.fromkeys(row.arm for row in own):
            first = first_measured(own, arm).run
            if not has_correlation(folder / CORRELATION, first):
                raise not_whole(folder, first, f"matrix in '{CORRELATION}/', which a figure needs")


def _check_states(folder: Path, measures: list[Measure], states: int) -> None:
    """Raise `UserError` unless the runs were measured on as many states as the summary says; diverged ones on none."""
    broken = {row.run: row.value for row in measures if row.measure == "nonfinite_share"}
    for row in measures:
        if row.measure != "states" or not row.value > 0:
            continue
        share = broken.get(row.run, 0.0)
        seen = row.value / (1 - share) if share < 1 else row.value
        if abs(seen - states) > 0.5:
            raise UserError(
                f"run '{row.run}' of the analysis '{folder}' has {seen:,.0f} states, "
                f"and its {SUMMARY} says {states:,}; analyze its runs again"
            )


def run_folders(folder: Path | str) -> list[Path]:
    """The runs in a folder: itself where it is one, else those below it that have ended.

    Runs that have not ended are named on standard error and left out; raises `UserError` where there is none.
    """
    root = Path(folder)
    if (root / CONFIG).exists() or not root.is_dir():
        return [root]
    found = [path.parent for path in files_below(root, CONFIG)]
    ended = [path for path in found if _state(path) in ("done", DIVERGED)]
    export = find_export(root)
    if not found and export is not None:
        raise UserError(f"'{export}' is an export of a study, without weights; name the folder that it was trained in")
    if export is not None:
        print(f"'{export}' is an export, without weights: its runs are left out", file=sys.stderr)
    if not ended:
        why = "none of its runs has come to its end" if found else "it holds no run"
        raise UserError(f"nothing to analyze in '{root}': {why}; name folders OUT/<run>, or a study's")
    if left := [path.name for path in found if path not in ended]:
        print(f"{len(left)} runs have not come to their end and are left out: {', '.join(left)}", file=sys.stderr)
    return ended


def _state(run: Path) -> str:
    try:
        return str(json.loads((run / "status.json").read_text(encoding="utf-8"))["state"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"


def protocol(states: int, epsilon: float, seed: int = 0, at_once: int = AT_ONCE) -> str:
    """How runs were measured, in the words of the summary; defaults are not said."""
    games = f", seed {seed}" if seed else ""
    games += f", {at_once} games side by side" if at_once != AT_ONCE else ""
    return f"{states:,} states of each run, ε = {epsilon:g}{games}; mean ± standard error over seeds."


def summary(measures: Sequence[Measure], measured: str) -> str:
    """Markdown tables, one for each game: measures by arm, as ``measured`` says (`protocol`)."""
    lines = ["# Representation", "", measured]
    left_out = unmeasured(measures)
    if left_out:
        lines += ["", f"Diverged, and in no mean: {', '.join(left_out)}."]
    for game in dict.fromkeys(row.game for row in measures):
        own = [row for row in measures if row.game == game]
        arms = order_arms(row.arm for row in own)
        counts = [len({row.seed for row in own if row.arm == arm and row.run not in left_out}) for arm in arms]
        seeds = [f"{arm} ({count} seeds)" for arm, count in zip(arms, counts, strict=True)]
        lines += ["", f"## {game}", "", f"| measure | {' | '.join(seeds)} |", "| --- |" + " --- |" * len(arms)]
        lines += [f"| `{name}` | {' | '.join(cells)} |" for name, cells in measure_texts(own, arms).items()]
    return "\n".join(lines) + "\n"


def _logs(run: Run) -> list[Moment]:
    """The numbers of the run's ``metrics.csv`` and, if there is one, its ``representation.csv``."""
    key = _key(run)
    rows = []
    for name, prefix in (("metrics.csv", ""), ("representation.csv", "held_out.")):
        path = run.folder / name
        if prefix and not path.exists():
            continue
        columns = read_columns(path)
        frames = columns.pop("frames")
        rows += [
            Moment(*key, int(frame), prefix + metric, value)
            for metric, values in columns.items()
            if metric not in ("agent_steps", "updates")
            for frame, value in zip(frames, values.tolist(), strict=True)
        ]
    return rows


def _why_not(run: Run) -> str:
    """Why a run is not measured; nothing where it is."""
    if _state(run.folder) == DIVERGED:
        return "it diverged"
    return "" if run.finite else "its weights are not finite"


def _measures(run: Run, statistics: FeatureStatistics) -> list[Measure]:
    numbers = statistics.summary()
    if statistics.states:
        numbers |= growth(read_columns(run.folder / "metrics.csv"))
    names = (*MEASURES, *GROWTH)
    return [Measure(*_key(run), run.agent_steps, name, float(numbers.get(name, math.nan))) for name in names]


def _curves(run: Run, statistics: FeatureStatistics) -> list[Point]:
    curves = {
        "sparsity": (statistics.thresholds, statistics.sparsity()),
        "active_per_state": (range(run.features_dim + 1), statistics.active_per_state()),
        "active_per_feature": (range(run.features_dim), statistics.active_per_feature()),
        "spectrum": (range(1, run.features_dim + 1), statistics.spectrum()),
    }
    return [
        Point(*_key(run), name, x, y if statistics.states else math.nan)
        for name, (places, values) in curves.items()
        for x, y in zip(places, values.tolist(), strict=True)
    ]


def _key(run: Run) -> tuple[str, str, str, int]:
    """Run, game, arm and seed: the first columns of every table."""
    spec = run.spec
    return spec.name, spec.game.name, arm_label(spec.to_mapping()), spec.seed
