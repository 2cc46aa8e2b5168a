"""``gramian study match`` and ``choose``: the κ of equal feature norm, and the κ of the best score.

`choose` goes from studies that tune κ to the study that judges what they chose, by the report's rule
(`gramian.study.rule`).
"""

import csv
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from gramian.core.arms import Arm, parse_arm
from gramian.core.errors import UserError, unknown
from gramian.core.files import plan_paths
from gramian.core.games import find_game, game_name
from gramian.core.statistics import mean_over_runs
from gramian.deep.training.config import RunSpec
from gramian.study import rule
from gramian.study.manifest import SETTLED, STUDY, cells_text, check_exports, in_no_part, read_toml
from gramian.study.plan import Plan, read_plan
from gramian.study.rule import MATCHED, Array, matched_kappa, penalty_of
from gramian.study.store import read_study


@dataclass(frozen=True)
class LoggedRun:
    """A planned run, and what it has logged."""

    spec: RunSpec
    folder: Path
    """Of the study, or of its part that the run is in."""
    state: str = "waiting"
    episodes: Array = field(default_factory=lambda: np.zeros((0, 2)))
    """Frames and return ``[n, 2]``."""
    feature_norms: tuple[float, ...] = ()


class WholeStudy:
    """A planned study, the parts of one, or an export, with what its runs have logged.

    Of a run in several parts the one that came to its end counts. Different studies in one folder are refused, and a
    run that came to its end in two parts. ``plan`` and ``text`` are those of the first part; ``runs`` are all, by name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_exports(folder)
        parts = [path.parent for path in plan_paths(folder)] or [folder]
        self.runs: dict[str, LoggedRun] = {}
        for part in parts:
            plan, text = read_plan(part), read_toml(part / STUDY)
            if part == parts[0]:
                self.plan, self.text = plan, text
            if plan.settings != self.plan.settings or _alike(text) != _alike(self.text):
                raise UserError(f"'{parts[0]}' and '{part}' hold different studies; name one of them")
            for run in _logged(part, plan):
                before = self.runs.setdefault(run.spec.name, run)
                if before is not run and run.state in SETTLED:
                    if before.state in SETTLED:
                        where = f"'{before.folder}' and in '{run.folder}'"
                        raise UserError(f"run '{run.spec.name}' is in {where}; name one of them")
                    self.runs[run.spec.name] = run

    @property
    def games(self) -> list[str]:
        """The games that are played, each once, in the order of the study."""
        return list(dict.fromkeys(run.spec.game.name for run in self.runs.values()))

    @property
    def arms(self) -> dict[str, Arm]:
        """The arms by their names, in the order of the study."""
        return {str(run.spec.arm): run.spec.arm for run in self.runs.values()}

    def feature_norms(self, games: Collection[str] | None = None) -> dict[Arm, float]:
        """Mean feature norm at the end of training of each arm whose runs are all done, in all games or in some."""
        norms: dict[Arm, list[float]] = {}
        for run in self.runs.values():
            if games is not None and run.spec.game.name not in games:
                continue
            if run.state == "done" and not run.feature_norms:
                raise UserError(
                    f"run '{run.spec.name}' in '{run.folder}' has logged no feature norms: its metrics.csv is damaged, "
                    "or it is shorter than metrics_period_agent_steps; train it again"
                )
            norm = rule.last_mean(run.feature_norms) if run.state == "done" else math.nan
            norms.setdefault(run.spec.arm, []).append(norm)
        means = {arm: rule.mean_norm(values) for arm, values in norms.items()}
        return {arm: norm for arm, norm in means.items() if math.isfinite(norm)}


def _alike(text: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a study have in common, also where each was written as a study of its own games and seeds."""
    return {key: value for key, value in text.items() if key not in {"title", "games", "seeds"}}


def _logged(folder: Path, plan: Plan) -> list[LoggedRun]:
    study = read_study(folder)
    states = dict(study.runs.select("run", "state").iter_rows())
    episodes = {run: own for (run,), own in study.episodes.drop_nulls().group_by("run", maintain_order=True)}
    norms: dict[str, tuple[float, ...]] = {}
    if "feature_norm" in study.metrics.columns:
        logged = study.metrics.select("run", "feature_norm").drop_nulls().group_by("run", maintain_order=True).all()
        norms = {run: tuple(own) for run, own in logged.iter_rows()}
    return [
        LoggedRun(
            spec,
            folder,
            states.get(spec.name, "waiting"),
            episodes[spec.name].select("frames", "return").to_numpy() if spec.name in episodes else np.zeros((0, 2)),
            norms.get(spec.name, ()),
        )
        for population in plan.populations
        for spec in population.runs
    ]


@dataclass(frozen=True)
class Match:
    """A penalty, and the κ at which it leaves features of the norm that was asked for."""

    penalty: str
    """``gram``, ``gram:uncentered``, ``l2``, …"""
    kappa: float | None
    """None where the grid does not reach that norm."""
    nearest_kappa: float
    """The κ of the grid whose norm is nearest, by ratio."""
    nearest_norm: float
    smallest_norm: float
    largest_norm: float


def games_of(study: WholeStudy, arm: str) -> list[str]:
    """The games that an arm of a study plays, by name; none where the study has no such arm."""
    wanted = parse_arm(arm, study.plan.settings.kappa)
    return sorted({run.spec.game.name for run in study.runs.values() if run.spec.arm == wanted})


def match(study: WholeStudy, arm: str, games: Collection[str] | None = None) -> tuple[float, list[Match]]:
    """The norm of an arm, ``gram:10`` say, in some games or all, and a `Match` for each other penalty."""
    wanted = parse_arm(arm, study.plan.settings.kappa)
    if wanted not in study.arms.values():
        raise unknown("arm of this study", str(wanted), study.arms, _nearest(wanted, study.arms.values()))
    norms = study.feature_norms(games)
    if wanted not in norms:
        raise UserError(f"arm '{wanted}' has runs in '{study.folder}' that are not done; finish them first")
    target, found = norms[wanted], []
    for penalty in dict.fromkeys(penalty_of(str(arm)) for arm in norms if arm.kappa > 0):
        grid = {arm.kappa: norm for arm, norm in norms.items() if arm.kappa > 0 and penalty_of(str(arm)) == penalty}
        if penalty != penalty_of(str(wanted)):
            nearest = min(grid, key=lambda kappa: abs(math.log(grid[kappa] / target)))
            low, high = min(grid.values()), max(grid.values())
            found.append(Match(penalty, matched_kappa(grid, target), nearest, grid[nearest], low, high))
    return target, found


def _nearest(wanted: Arm, arms: Collection[Arm]) -> str:
    """The arm of the same penalty whose κ is nearest, by ratio; empty where there is none."""
    alike = [arm for arm in arms if penalty_of(str(arm)) == penalty_of(str(wanted)) and arm.kappa > 0]
    if not alike or wanted.kappa <= 0:
        return ""
    return str(min(alike, key=lambda arm: (abs(math.log(arm.kappa / wanted.kappa)), arm.kappa)))


@dataclass(frozen=True)
class Choice:
    """A penalty with the κ that was chosen for it."""

    penalty: str
    arm: Arm
    scores: tuple[tuple[float, float], ...]
    """κ and score, by rising κ."""

    @property
    def at_edge(self) -> bool:
        """Whether it is the first or the last κ of the grid: a better one may lie outside."""
        return self.arm.kappa in (self.scores[0][0], self.scores[-1][0])

    def __str__(self) -> str:
        scores = ", ".join(f"{kappa:g}: {score:.3f}" for kappa, score in self.scores)
        return f"{self.penalty} {self.arm.kappa:g}{' (an end of the grid)' if self.at_edge else ''} of {scores}"


class Tuning:
    """A study that tunes κ, with games and seeds that are kept for evaluation; all its runs are done."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.study = folder, WholeStudy(folder)
        self.plan, self.text, self.games = self.study.plan, self.study.text, self.study.games
        if "evaluation" not in self.text:
            raise UserError(
                f"the {STUDY} of '{folder}' keeps no games for evaluation; add [evaluation] with games and seeds"
            )
        if left := in_no_part(folder):
            raise UserError(f"in no part of the study in '{folder}': {cells_text(left)}; finish the study first")
        self.evaluation_games = [find_game(game).name for game in self.text["evaluation"]["games"]]
        self.evaluation_seeds = [int(seed) for seed in self.text["evaluation"]["seeds"]]

    @cached_property
    def choices(self) -> list[Choice]:
        """The κ of each penalty, in the order of the study's arms."""
        arms = self.study.arms
        grids = rule.grids({name: arm.kappa for name, arm in arms.items()})
        if not grids:
            raise UserError(f"no penalty in '{self.folder}' has {rule.FEWEST_KAPPAS} κ or more; nothing to choose from")
        members = [name for name in arms if name == "dqn" or any(name in own for own in grids.values())]
        finals = self._finals(members)
        means = {name: mean_over_runs(own) for name, own in finals.items()}
        games = rule.counting_games(means, members)
        if not games:
            raise UserError(f"the arms in '{self.folder}' all score the same, or not at all; train them for longer")
        shares = rule.within_range(finals, means, members, games)
        score = {name: float(mean_over_runs(own).mean()) for name, own in shares.items()}
        found = []
        for penalty, own in grids.items():
            pairs = tuple((arms[name].kappa, score[name]) for name in own)
            best = rule.best_kappa(pairs)
            found.append(Choice(penalty, next(arms[name] for name in own if arms[name].kappa == best), pairs))
        return found

    def _finals(self, arms: Sequence[str]) -> dict[str, Array]:
        """Return at the end of training of each run ``[S, G]``, by arm; a diverged run counts as random play."""
        runs = self.study.runs.values()
        seeds = sorted({run.spec.seed for run in runs})
        finals = {name: np.full((len(seeds), len(self.games)), np.nan) for name in arms}
        diverged: list[tuple[str, int, int]] = []
        random: dict[str, list[float]] = {}
        prefill = self.plan.settings.prefill_agent_steps
        for run in runs:
            name, game = str(run.spec.arm), run.spec.game.name
            if run.state not in SETTLED:
                raise UserError(f"run '{run.spec.name}' in '{run.folder}' is {run.state}; finish the study first")
            frames, returns = run.episodes[np.isfinite(run.episodes[:, 1])].T
            random.setdefault(game, []).extend(returns[frames <= prefill].tolist())
            if name not in finals:
                continue
            at = seeds.index(run.spec.seed), self.games.index(game)
            if run.state == "diverged":
                diverged.append((name, *at))
            elif not len(returns):
                raise UserError(f"run '{run.spec.name}' in '{run.folder}' is done and has no episodes to be scored by")
            else:
                finals[name][at] = returns[-rule.WINDOW_EPISODES :].mean()
        for name, seed, place in diverged:
            finals[name][seed, place] = _random_score(self.games[place], random[self.games[place]])
        return finals


def _random_score(game: str, played: Sequence[float]) -> float:
    """Of random play: published for Atari, else from the runs' own prefill; NaN where neither is known."""
    table = (files("gramian") / "data" / "atari49.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(table.splitlines()):
        if game_name(row["game"]) == game:
            return float(row["random"])
    return float(np.mean(played)) if len(played) >= rule.FEWEST_RANDOM_EPISODES else math.nan


@dataclass(frozen=True)
class Evaluation:
    """The study that judges what was chosen."""

    text: str
    """TOML."""
    remarks: tuple[str, ...]
    """What was chosen, line by line, and what could not be."""


def evaluation_study(
    folders: Sequence[Path],
    *,
    title: str = "",
    frames: int = 0,
    matched: str = MATCHED,
    decor: bool = True,
    also: Sequence[str] = (),
) -> Evaluation:
    """The study of the evaluation games and seeds with every penalty at its chosen κ.

    Every tuning study judges its choices on its own evaluation games, so that two studies that swap their games are two
    folds. ``decor`` is the same number as ``gram`` and takes its κ. The penalty ``matched`` is there a second time, at
    the κ of ``gram``'s mean feature norm: in each evaluation game by itself where a study trained on that game (norms
    are no returns), else over the study's own games. ``also`` are further arms for all games; ``frames`` 0 is the
    studies'.
    """
    tunings = [Tuning(folder) for folder in folders]
    first = tunings[0]
    _check_alike(tunings)
    games = [game for tuning in tunings for game in tuning.evaluation_games]
    remarks: list[str] = []
    entries: dict[tuple[str, Arm], list[str]] = {("dqn", Arm("dqn")): games}
    for tuning in tunings:
        remarks.append(f"chosen on {', '.join(tuning.games)} for {', '.join(tuning.evaluation_games)}:")
        for choice in tuning.choices:
            remarks.append(f"  {choice}")
            entries.setdefault((choice.penalty.replace(":", " "), choice.arm), []).extend(tuning.evaluation_games)
        gram = next((choice.arm for choice in tuning.choices if choice.penalty == "gram"), None)
        if gram is None:
            continue
        if decor and all(choice.penalty != "decor" for choice in tuning.choices):
            remarks.append(f"  decor {gram.kappa:g}: that of gram, which is the same number")
            entries.setdefault(("decor", Arm("decor", gram.kappa)), []).extend(tuning.evaluation_games)
        for game in tuning.evaluation_games if matched else ():
            arm, where = _matched(tunings, tuning, game, gram, matched)
            taken = any(arm == other and game in own for (_, other), own in entries.items())
            if arm is None or taken:
                why = "is the chosen one" if taken else "is not reached by its grid"
                remarks.append(f"  {matched} at the norm of gram {gram.kappa:g} in {where} {why}: left out for {game}")
                continue
            remarks.append(f"  {matched} {arm.kappa:g}: has the norm of gram {gram.kappa:g} in {where}, for {game}")
            entries.setdefault((f"{matched.replace(':', ' ')} (matched)", arm), []).append(game)
    for arm in (parse_arm(text, first.plan.settings.kappa) for text in also):
        free = [game for game in games if all(arm != other or game not in own for (_, other), own in entries.items())]
        if free:
            entries[f"{penalty_of(str(arm)).replace(':', ' ')} ({arm.kappa:g})", arm] = free
            remarks.append(f"asked for: {arm} for {', '.join(free)}")
    return Evaluation(_toml(first, entries, games, remarks, title, frames), tuple(remarks))


def _check_alike(tunings: Sequence[Tuning]) -> None:
    """Refuse tuning studies that one evaluation cannot judge together."""
    first = tunings[0]
    for other in tunings[1:]:
        for what, same in (
            ("preset", other.plan.preset == first.plan.preset),
            ("settings", other.plan.settings == first.plan.settings),
            ("seeds for evaluation", other.evaluation_seeds == first.evaluation_seeds),
        ):
            if not same:
                raise UserError(f"'{first.folder}' and '{other.folder}' have different {what}; choose from each apart")
    games = [game for tuning in tunings for game in tuning.evaluation_games]
    if twice := sorted(game for game in set(games) if games.count(game) > 1):
        raise UserError(f"game {twice[0]!r} is kept for evaluation by two studies; each game is judged by one")


def _matched(tunings: Sequence[Tuning], tuning: Tuning, game: str, gram: Arm, matched: str) -> tuple[Arm | None, str]:
    """The arm of equal norm, and the games that it was matched in."""
    inside = next((other.study for other in tunings if game in other.games), None)
    norms = tuning.study.feature_norms() if inside is None else inside.feature_norms([game])
    where = ", ".join(tuning.games) if inside is None else game
    grid = {arm.kappa: norm for arm, norm in norms.items() if penalty_of(str(arm)) == matched and arm.kappa > 0}
    kappa = matched_kappa(grid, norms[gram]) if gram in norms else None
    return None if kappa is None else parse_arm(f"{matched}:{kappa:.4g}", 0.0), where


def _toml(
    tuning: Tuning,
    entries: dict[tuple[str, Arm], list[str]],
    games: Sequence[str],
    remarks: Sequence[str],
    title: str,
    frames: int,
) -> str:
    arms = []
    for (label, arm), own in entries.items():
        entry: dict[str, Any] = {"kind": str(arm) if arm.terms else arm.kind}
        if arm.terms:
            entry |= {"label": label}
        elif arm.kind != "dqn":
            entry |= {"kappa": arm.kappa, "label": label}
            entry |= {"centered": False} if "uncentered" in str(arm) else {}
            entry |= {"games": own} if set(own) != set(games) else {}
        arms.append(entry)
    settings = {key: value for key, value in tuning.text.get("settings", {}).items() if key != "frames"}
    study = {
        "title": title or "Evaluation of the chosen kappa",
        "preset": tuning.plan.preset,
        "frames": frames or tuning.plan.settings.frames,
        "games": list(games),
        "seeds": tuning.evaluation_seeds,
        "arms": arms,
    } | ({"settings": settings} if settings else {})
    said = "".join(f"# {line}\n" for line in ("Written by `gramian study choose`.", *remarks))
    lists = re.compile(r"(?<== )\[\n.*?\n\]", flags=re.DOTALL)  # of names and seeds: on one line each
    return said + lists.sub(lambda found: f"[{' '.join(found[0][1:-1].split()).rstrip(',')}]", tomli_w.dumps(study))
