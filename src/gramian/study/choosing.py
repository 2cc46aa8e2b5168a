"""``gramian study choose``: from studies that tune κ to the study that judges what they chose.

Reads plans and run folders, and needs neither polars nor scipy: it works where a study was trained. Exports are read
too, by polars. The rule is that of the report, `gramian.study.rule`.
"""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from gramian.core.arms import Arm, parse_arm
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.study import rule
from gramian.study.matching import feature_norms
from gramian.study.norms import matched_kappa, penalty_of
from gramian.study.parts import cells_text
from gramian.study.plan import STUDY
from gramian.study.rule import Array
from gramian.study.states import SETTLED
from gramian.study.whole import WholeStudy

MATCHED = "norm"
"""The penalty that is also judged at the κ of ``gram``'s feature norm: it shrinks features and does nothing else."""


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
    """A study that tunes κ, all its runs done.

    Parameters
    ----------
    folder
        The one that was given as ``--out``, or the one that the parts of the study are in.

    Raises
    ------
    UserError
        If a run is not done or in no part, if no penalty has a grid of κ, or if nothing is kept for evaluation.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.study = folder, WholeStudy(folder)
        self.plan, self.text, self.games = self.study.plan, self.study.text, self.study.games
        if "evaluation" not in self.text:
            raise UserError(
                f"the {STUDY} of '{folder}' keeps no games for evaluation; add [evaluation] with games and seeds"
            )
        if left := self.study.left:
            raise UserError(f"in no part of the study in '{folder}': {cells_text(left)}; finish the study first")
        self.evaluation_games = [find_game(game).name for game in self.text["evaluation"]["games"]]
        self.evaluation_seeds = [int(seed) for seed in self.text["evaluation"]["seeds"]]

    @cached_property
    def choices(self) -> list[Choice]:
        """The κ of each penalty, in the order of the study's arms."""
        arms = {str(run.spec.arm): run.spec.arm for run in self.study.runs}
        grids = rule.grids({name: arm.kappa for name, arm in arms.items()})
        if not grids:
            raise UserError(f"no penalty in '{self.folder}' has {rule.FEWEST_KAPPAS} κ or more; nothing to choose from")
        members = [name for name in arms if name == "dqn" or any(name in own for own in grids.values())]
        finals = self._finals(members)
        means = {name: _mean_over_runs(own) for name, own in finals.items()}
        games = rule.counting_games(means, members)
        if not games:
            raise UserError(f"the arms in '{self.folder}' all score the same, or not at all; train them for longer")
        shares = rule.within_range(finals, means, members, games)
        score = {name: float(_mean_over_runs(own).mean()) for name, own in shares.items()}
        found = []
        for penalty, own in grids.items():
            pairs = tuple((arms[name].kappa, score[name]) for name in own)
            best = rule.best_kappa(pairs)
            found.append(Choice(penalty, next(arms[name] for name in own if arms[name].kappa == best), pairs))
        return found

    def norms(self, game: str) -> dict[Arm, float]:
        """Mean feature norm of each arm in one game."""
        return feature_norms(self.study, [game])

    def _finals(self, arms: Sequence[str]) -> dict[str, Array]:
        """Return at the end of training of each run ``[S, G]``, by arm; a diverged run counts as random play."""
        seeds = sorted({run.spec.seed for run in self.study.runs})
        finals = {name: np.full((len(seeds), len(self.games)), np.nan) for name in arms}
        diverged: list[tuple[str, int, int]] = []
        random: dict[str, list[float]] = {}
        prefill = self.plan.settings.prefill_agent_steps
        for logged in self.study.runs:
            run, (state, *_) = logged.spec, logged.state
            if state not in SETTLED:
                raise UserError(f"run '{run.name}' in '{logged.folder}' is {state}; finish the study first")
            table = np.array(logged.episodes(), dtype=np.float64).reshape(-1, 2)
            frames, returns = table[np.isfinite(table[:, 1])].T
            random.setdefault(run.game.name, []).extend(returns[frames <= prefill].tolist())
            if str(run.arm) not in finals:
                continue
            at = seeds.index(run.seed), self.games.index(run.game.name)
            if state == "diverged":
                diverged.append((str(run.arm), *at))
            elif not len(returns):
                raise UserError(f"run '{run.name}' in '{logged.folder}' is done and has no episodes to be scored by")
            else:
                finals[str(run.arm)][at] = returns[-rule.WINDOW_EPISODES :].mean()
        for name, seed, game in diverged:
            finals[name][seed, game] = _random_score(self.games[game], random[self.games[game]])
        return finals


def _mean_over_runs(scores: Array) -> Array:
    """``[S, G]`` → ``[G]``, of the runs that are there; NaN where there is none."""
    present = np.isfinite(scores)
    counts = present.sum(0)
    return np.asarray(np.where(counts, np.where(present, scores, 0.0).sum(0) / np.maximum(counts, 1), np.nan))


def _random_score(game: str, played: Sequence[float]) -> float:
    """Of random play: published for Atari, else from the runs' own prefill; NaN where neither is known."""
    table = (files("gramian") / "data" / "atari49.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(table.splitlines()):
        if re.sub(r"(?<!^)(?=[A-Z])", "_", row["game"]).lower() == game:
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
    """Write the study of the evaluation games and seeds with every penalty at its chosen κ.

    Every tuning study judges its choices on its own evaluation games, so that two studies that swap their games are two
    folds. ``decor`` is the same number as ``gram`` and takes its κ. One penalty is there a second time, at the κ of
    ``gram``'s mean feature norm: in each evaluation game by itself where one of the studies trained on that game
    (norms are no returns, so nothing is judged by what it was chosen by), else over the study's own games.

    Parameters
    ----------
    folders
        Of the tuning studies.
    title, frames
        Of the study; the tuning studies' frames where 0.
    matched
        The penalty that is matched; none where empty.
    decor
        Add ``decor``.
    also
        Further arms for all games, as ``gram:10.24``.

    Raises
    ------
    UserError
        If a study is not done, if two keep the same game for evaluation, or if their settings differ.
    """
    tunings = [Tuning(folder) for folder in folders]
    first = tunings[0]
    for other in tunings[1:]:
        for what, same in (
            ("preset", other.plan.preset == first.plan.preset),
            ("settings", other.plan.settings == first.plan.settings),
            ("seeds for evaluation", other.evaluation_seeds == first.evaluation_seeds),
        ):
            if not same:
                raise UserError(f"'{first.folder}' and '{other.folder}' have different {what}; choose from each apart")
        if both := {game for one in tunings if one is not other for game in one.evaluation_games} & set(
            other.evaluation_games
        ):
            raise UserError(f"game {min(both)!r} is kept for evaluation by two studies; each game is judged by one")
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


def _matched(tunings: Sequence[Tuning], tuning: Tuning, game: str, gram: Arm, matched: str) -> tuple[Arm | None, str]:
    """The arm of equal norm, and the games that it was matched in."""
    inside = next((other for other in tunings if game in other.games), None)
    norms = feature_norms(tuning.study) if inside is None else inside.norms(game)
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
    plan = tuning.plan
    arms = []
    for (label, arm), own in entries.items():
        entry: dict[str, Any] = {"kind": arm.kind}
        if arm.kind != "dqn":
            entry |= {"kappa": arm.kappa, "label": label}
            if "uncentered" in str(arm):
                entry["centered"] = False
            if set(own) != set(games):
                entry["games"] = own
        arms.append(entry)
    settings = {key: value for key, value in tuning.text.get("settings", {}).items() if key != "frames"}
    study = {
        "title": title or "Evaluation of the chosen kappa",
        "preset": plan.preset,
        "frames": frames or plan.settings.frames,
        "games": list(games),
        "seeds": tuning.evaluation_seeds,
        "arms": arms,
    } | ({"settings": settings} if settings else {})
    said = "".join(f"# {line}\n" for line in ("Written by `gramian study choose`.", *remarks))
    return said + _LISTS.sub(_on_one_line, tomli_w.dumps(study))


_LISTS = re.compile(r"(?<== )\[\n.*?\n\]", flags=re.DOTALL)


def _on_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found[0][1:-1].split()).rstrip(',')}]"
