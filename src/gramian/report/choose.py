"""``gramian study match`` and ``choose``: the κ of equal feature norm, and the κ of the best score.

`evaluation_study` goes from studies that tune κ to the study that judges what they chose, by the rule of `sweep`.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import tomli_w

from gramian.core.arms import Arm, parse_arm
from gramian.core.errors import UserError, unknown
from gramian.core.files import plan_paths
from gramian.core.games import find_game
from gramian.report.scores import Scores
from gramian.report.sweep import (
    FEWEST_KAPPAS,
    Matched,
    Penalty,
    feature_norms,
    find_sweep,
    matched_kappa,
    penalty_of,
    run_norms,
)
from gramian.study.manifest import (
    PLAN,
    SETTLED,
    STUDY,
    cells_text,
    check_exports,
    in_no_part,
    planned_cells,
    read_json,
    read_toml,
)
from gramian.study.store import RUN_SCHEMA, Study, joined, kept_once, read_study


class PlannedStudy:
    """A planned study, the parts of one, or an export, with what its runs have logged.

    ``arms`` are its arms by name, in the order of the study, whatever their labels. ``study`` has every planned run
    under its arm's name; one that has not begun has the state ``waiting``. A run in several parts counts once, see
    `kept_once`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_exports(folder)
        parts = [path.parent for path in plan_paths(folder)]
        if not parts:
            raise UserError(f"'{folder}' holds no study; name the folder that was given as --out")
        self.plan, self.text = read_json(parts[0] / PLAN), read_toml(parts[0] / STUDY)
        names: dict[tuple[str, str, int], str] = {}
        for part in parts:
            plan = read_json(part / PLAN)
            if plan["settings"] != self.plan["settings"] or _shared(read_toml(part / STUDY)) != _shared(self.text):
                raise UserError(f"'{parts[0]}' and '{part}' hold different studies; name one of them")
            planned = chain.from_iterable(planned_cells(plan, part / PLAN).values())
            runs = chain.from_iterable(population["runs"] for population in plan["populations"])
            names |= {cell: str(run["arm"]) for cell, run in zip(planned, runs, strict=True)}
        self.arms = {name: parse_arm(name, 0.0) for name in dict.fromkeys(names.values())}
        self.games = list(dict.fromkeys(game for game, *_ in names))
        cells = pl.DataFrame(
            [(*cell, name) for cell, name in names.items()],
            schema={"game": pl.String, "arm": pl.String, "seed": pl.Int64, "name": pl.String},
            orient="row",
        )
        found = joined(kept_once([read_study(part) for part in parts]))
        own = cells.join(found.runs, on=["game", "arm", "seed"], how="left", maintain_order="left")
        own = own.with_columns(pl.col("run").fill_null(""), pl.col("state").fill_null("waiting"), arm="name")
        self.study = Study(
            own.select(list(RUN_SCHEMA)), found.episodes, found.metrics, found.settings, held_out=found.held_out
        )

    def norms(self, games: Collection[str] | None = None) -> dict[str, float]:
        """Mean feature norm at the end of training of each arm whose runs are all done, in all games or in some."""
        known = run_norms(self.study)
        for run, state in self.study.runs.select("run", "state").iter_rows():
            if state == "done" and run not in known:
                raise UserError(
                    f"run '{run}' in '{self.folder}' has logged no feature norms: its metrics.csv is damaged, or it is "
                    "shorter than metrics_period_agent_steps; train it again"
                )
        found = feature_norms(self.study, games)
        return {arm: found[arm] for arm in self.arms if math.isfinite(found.get(arm, math.nan))}

    def grid(self, penalty: str, norms: Mapping[str, float]) -> dict[float, float]:
        """The norms of a penalty by κ."""
        kappas = {name: arm.kappa for name, arm in self.arms.items() if penalty_of(name) == penalty and arm.kappa > 0}
        return {kappas[name]: norm for name, norm in norms.items() if name in kappas}


def _shared(text: Mapping[str, Any]) -> dict[str, Any]:
    """What the parts of a study have in common, also where each was written as a study of its own games and seeds."""
    return {key: value for key, value in text.items() if key not in {"title", "games", "seeds"}}


def games_of(study: PlannedStudy, arm: str) -> list[str]:
    """The games that an arm of a study plays, by name; none where the study has no such arm."""
    wanted = str(parse_arm(arm, study.plan["settings"]["kappa"]))
    return sorted(study.study.runs.filter(arm=wanted)["game"].unique().to_list())


def match(study: PlannedStudy, arm: str, games: Collection[str] | None = None) -> tuple[float, list[Matched]]:
    """The norm of an arm, ``gram:10`` say, in some games or all, and a `Matched` for each other penalty."""
    wanted = parse_arm(arm, study.plan["settings"]["kappa"])
    if str(wanted) not in study.arms:
        raise unknown("arm of this study", str(wanted), study.arms, _nearest(wanted, study.arms.values()))
    norms = study.norms(games)
    if str(wanted) not in norms:
        raise UserError(f"arm '{wanted}' has runs in '{study.folder}' that are not done; finish them first")
    target, own = norms[str(wanted)], penalty_of(str(wanted))
    others = dict.fromkeys(penalty_of(name) for name in norms if study.arms[name].kappa > 0)
    return target, [Matched(other, study.grid(other, norms), target) for other in others if other != own]


def _nearest(wanted: Arm, arms: Collection[Arm]) -> str:
    """The arm of the same penalty whose κ is nearest, by ratio; empty where there is none."""
    alike = [arm for arm in arms if penalty_of(str(arm)) == penalty_of(str(wanted)) and arm.kappa > 0]
    if not alike or wanted.kappa <= 0:
        return ""
    return str(min(alike, key=lambda arm: (abs(math.log(arm.kappa / wanted.kappa)), arm.kappa)))


class Tuning(PlannedStudy):
    """A study that tunes κ, with games and seeds that are kept for evaluation; all its runs are done.

    ``choices`` are its penalties with a grid of κ, in the order of the study's arms.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if "evaluation" not in self.text:
            raise UserError(
                f"the {STUDY} of '{folder}' keeps no games for evaluation; add [evaluation] with games and seeds"
            )
        if left := in_no_part(folder):
            raise UserError(f"in no part of the study in '{folder}': {cells_text(left)}; finish the study first")
        self.evaluation_games = [find_game(game).name for game in self.text["evaluation"]["games"]]
        self.evaluation_seeds = [int(seed) for seed in self.text["evaluation"]["seeds"]]
        runs = self.study.runs
        for game, arm, seed, state in runs.select("game", "arm", "seed", "state").iter_rows():
            if state not in SETTLED:
                raise UserError(f"{game} with {arm}, seed {seed} in '{folder}' is {state}; finish the study first")
        tables = Scores(self.study, "atari-57", [*self.arms], self.games, sorted(runs["seed"].unique().to_list()))
        done = runs.filter(state="done")["run"].to_list()
        if silent := [run for run in tables.unscored if run in done]:
            raise UserError(f"run '{silent[0]}' in '{folder}' is done and has no episodes to be scored by")
        # One replicate: a choice needs no interval.
        sweep = find_sweep(self.study, tables, "dqn", 1, np.random.default_rng(0))
        if sweep is None:
            raise UserError(
                f"no penalty in '{folder}' has {FEWEST_KAPPAS} κ or more whose scores differ; nothing to choose from"
            )
        self.choices = sweep.penalties

    def chosen(self, penalty: Penalty) -> Arm:
        """The arm of the chosen κ."""
        return self.arms[penalty.chosen.arm]

    def gram(self) -> Arm | None:
        """``gram`` at its chosen κ."""
        return next((self.chosen(penalty) for penalty in self.choices if penalty.name == "gram"), None)


def _choice_words(penalty: Penalty) -> str:
    scores = ", ".join(f"{setting.kappa:g}: {float(setting.score.estimate):.3f}" for setting in penalty.settings)
    return f"{penalty.name} {penalty.chosen.kappa:g}{' (an end of the grid)' if penalty.at_edge else ''} of {scores}"


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
    matched: str = "norm",
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
        for penalty in tuning.choices:
            remarks.append(f"  {_choice_words(penalty)}")
            label = penalty.name.replace(":", " ")
            entries.setdefault((label, tuning.chosen(penalty)), []).extend(tuning.evaluation_games)
        if (gram := tuning.gram()) is None:
            continue
        if decor and all(penalty.name != "decor" for penalty in tuning.choices):
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
    for arm in (parse_arm(text, first.plan["settings"]["kappa"]) for text in also):
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
            ("preset", other.plan["preset"] == first.plan["preset"]),
            ("settings", other.plan["settings"] == first.plan["settings"]),
            ("seeds for evaluation", other.evaluation_seeds == first.evaluation_seeds),
        ):
            if not same:
                raise UserError(f"'{first.folder}' and '{other.folder}' have different {what}; choose from each apart")
    games = [game for tuning in tunings for game in tuning.evaluation_games]
    if twice := sorted(game for game in set(games) if games.count(game) > 1):
        raise UserError(f"game {twice[0]!r} is kept for evaluation by two studies; each game is judged by one")


def _matched(tunings: Sequence[Tuning], tuning: Tuning, game: str, gram: Arm, matched: str) -> tuple[Arm | None, str]:
    """The arm of equal norm, and the games that it was matched in."""
    inside = next((other for other in tunings if game in other.games), None)
    study, where = (tuning, ", ".join(tuning.games)) if inside is None else (inside, game)
    norms = study.norms(None if inside is None else [game])
    target = norms.get(str(gram))
    kappa = None if target is None else matched_kappa(study.grid(matched, norms), target)
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
        "preset": tuning.plan["preset"],
        "frames": frames or tuning.plan["settings"]["frames"],
        "games": list(games),
        "seeds": tuning.evaluation_seeds,
        "arms": arms,
    } | ({"settings": settings} if settings else {})
    said = "".join(f"# {line}\n" for line in ("Written by `gramian study choose`.", *remarks))
    lists = re.compile(r"(?<== )\[\n.*?\n\]", flags=re.DOTALL)  # of names and seeds: on one line each
    return said + lists.sub(lambda found: f"[{' '.join(found[0][1:-1].split()).rstrip(',')}]", tomli_w.dumps(study))
