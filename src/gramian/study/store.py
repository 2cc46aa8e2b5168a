"""Run folders, exports of them and other people's tables, as tidy tables. Reads files and knows no learner."""

import csv
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from gramian.core.arms import arm_label
from gramian.core.csv_tables import read_numbers
from gramian.core.errors import UserError
from gramian.core.files import EXPORT, files_below, output_folder, plan_paths, replace_text, replacing
from gramian.core.games import game_name
from gramian.study.heads import check_exports
from gramian.study.packed import Packed
from gramian.study.parts import Cell, in_no_part, planned_cells, read_json
from gramian.study.rule import WINDOW_EPISODES
from gramian.study.states import SETTLED

RUN_SCHEMA: dict[str, Any] = {
    "run": pl.String, "game": pl.String, "arm": pl.String, "kind": pl.String, "kappa": pl.Float64,
    "centered": pl.Boolean, "seed": pl.Int64, "state": pl.String, "reason": pl.String, "agent_steps": pl.Int64,
    "frames_target": pl.Int64, "preset": pl.String, "folder": pl.String, "window": pl.Int64,
}  # fmt: skip
"""``window``: rows of ``episodes`` that a score is the mean of: 100 where a row is an episode, 1 where it is a mean."""
CELL_SCHEMA: dict[str, Any] = {"run": pl.String, "game": pl.String, "arm": pl.String, "seed": pl.Int64}
EPISODE_SCHEMA: dict[str, Any] = CELL_SCHEMA | {"frames": pl.Int64, "return": pl.Float64}

IMPORT_COLUMNS = ("arm", "game", "seed", "frames", "return")
IMPORT_FORMAT = 1
IN_NO_PART = "in no part of the study"
"""Why a cell is missing that nobody has planned."""
SHORT = 0.9
"""An imported run that ends before this share of the longest one of its game did not finish."""
_KINDS = ("dqn", "decor", "gram", "gram-unbiased", "norm", "cross", "l2", "dr3")
NEVER_CENTERED = ("dqn", "l2", "dr3")

Rows = Literal["episodes", "points"]


@dataclass(frozen=True)
class Study:
    """What was run, in tidy tables.

    Attributes
    ----------
    runs
        One row for each run: the columns of `RUN_SCHEMA`. ``state`` is the state of its ``status.json``; ``planned``
        where it has none yet.
    episodes
        One row for each episode: the columns of `EPISODE_SCHEMA`, by run and then by frames.
    metrics
        Run, game, arm and seed, and the columns of ``metrics.csv``; empty where there is none.
    settings
        Settings of each run that has them, by the name of the run.
    provenance
        Processes that worked on a run, by the name of the run.
    held_out
        Run, game, arm and seed, and the columns of ``representation.csv``; empty where there is none.
    """

    runs: pl.DataFrame
    episodes: pl.DataFrame
    metrics: pl.DataFrame
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    provenance: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    held_out: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CELL_SCHEMA))


def read_study(folder: str | Path) -> Study:
    r"""Read every run folder below ``folder``, however deep, every export and every table imported there.

    Folders below it whose names begin with a dot are not looked into.

    Parameters
    ----------
    folder
        Of a study, a population, a single run, or anything that holds some.

    Raises
    ------
    UserError
        If there is no run, if a file of one cannot be read, or if an export lacks one that it was written with.

    See Also
    --------
    gramian.study.export.write_export : Writes what is read here as a small folder, to be read here again.

    Examples
    --------
    >>> import tempfile
    >>> run = Path(tempfile.mkdtemp()) / "pong-gram-k10.24-s1"
    >>> run.mkdir()
    >>> _ = (run / "config.toml").write_text('game = "pong"\narm = "gram:10.24"\nseed = 1\npreset = "author"')
    >>> _ = (run / "episodes.csv").write_text("frames,raw_return\n3000,-21.0\n")
    >>> study = read_study(run.parent)
    >>> study.runs.row(0, named=True)["kappa"], study.episodes["return"].to_list()
    (10.24, [-21.0])
    """
    root = Path(folder)
    if not root.is_dir():
        raise UserError(f"there is no folder '{root}'; name the folder of a study, a population or a run")
    check_exports(root)
    readers: dict[str, Callable[[Path], Study]] = {
        "config.toml": lambda path: _read_run(path.parent, root),
        "imported.json": _read_import,
        EXPORT: _read_export,
    }
    # By their paths, whatever they are: a part that is exported keeps its place among the others.
    parts = [readers[path.name](path) for path in sorted(path for name in readers for path in files_below(root, name))]
    if not parts:
        raise UserError(f"there is no run below '{root}'; a run is a folder with a config.toml")
    return _joined(parts)


def import_csv(path: str | Path, *, rows: Rows = "episodes") -> Study:
    r"""Read a tidy table of somebody else: the columns arm, game, seed, frames, return, in any order.

    Parameters
    ----------
    path
        A CSV file with a header. Other columns are left aside. A game that the package knows gets the package's name,
        however it is spelled: see `gramian.core.games.game_name`.
    rows
        What a row is. ``episodes``: a training episode that ended at ``frames``; the score of a run is the mean of the
        last 100. ``points``: a point of a learning curve, a mean already; the score is the last one.

    Raises
    ------
    UserError
        Naming the line and the value that is wrong.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "theirs.csv"
    >>> _ = path.write_text("arm,game,seed,frames,return\nours,Pong,0,4000,-20\nours,Pong,0,8000,-19\n")
    >>> import_csv(path).runs.select("arm", "game", "frames_target").row(0)
    ('ours', 'pong', 8000)
    """
    table = _checked(_read_csv(Path(path), dict.fromkeys(IMPORT_COLUMNS, pl.String)), Path(path))
    spelled = table["game"].unique().to_list()
    names = {game: game_name(game) for game in spelled}
    table = table.with_columns(pl.col("game").replace(names), spelled="game")
    _one_spelling_of_a_run(table, Path(path))
    if rows == "points":
        _one_point_at_a_frame(table, Path(path))
    table = table.with_columns(run=pl.format("{}-{}-s{}", "game", "arm", "seed"))
    ends = table.group_by("run", "game", "arm", "seed", maintain_order=True).agg(end=pl.col("frames").max())
    target = pl.col("end").max().over("game")
    finished = pl.col("end") >= SHORT * target
    reason = pl.when(finished).then(pl.lit("")).otherwise(pl.format("ends at {} of {} frames", "end", target))
    runs = ends.with_columns(
        frames_target=target,
        state=pl.when(finished).then(pl.lit("done")).otherwise(pl.lit("interrupted")),
        reason=reason,
        agent_steps=pl.lit(None, pl.Int64),
        preset=pl.lit("imported"),
        folder=pl.lit(str(path)),
        window=pl.lit(WINDOW_EPISODES if rows == "episodes" else 1),
    )
    arms = {arm: _arm(arm) for arm in runs["arm"].unique().to_list()}
    runs = runs.with_columns(
        pl.Series(name, [arms[arm][at] for arm in runs["arm"].to_list()], dtype=RUN_SCHEMA[name])
        for at, name in enumerate(("kind", "kappa", "centered"))
    )
    metrics = pl.DataFrame(schema=CELL_SCHEMA)
    return Study(runs.select(_cast(RUN_SCHEMA)), table.select(_cast(EPISODE_SCHEMA)).sort("run", "frames"), metrics)


def write_import(path: str | Path, out: str | Path, *, rows: Rows = "episodes") -> Study:
    r"""Copy a tidy table into a folder that `read_study` reads; this is ``gramian study import``.

    Parameters
    ----------
    path, rows
        As in `import_csv`.
    out
        Folder to write ``imported.csv`` and ``imported.json`` to. It must hold no other import.

    Returns
    -------
    Study
        What was imported.

    Raises
    ------
    UserError
        If the table is wrong, in which case nothing is written, or if ``out`` holds an import already.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "theirs.csv").write_text("arm,game,seed,frames,return\nours,Pong,0,4000,-20\n")
    >>> _ = write_import(folder / "theirs.csv", folder / "study")
    >>> read_study(folder / "study").episodes["return"].to_list()
    [-20.0]
    """
    study = import_csv(path, rows=rows)
    if (Path(out) / "imported.json").exists():
        raise UserError(f"folder '{out}' holds an imported table already; name another one")
    folder = output_folder(out)
    source = Path(path)
    with replacing(folder / "imported.csv") as temporary:
        study.episodes.select(IMPORT_COLUMNS).write_csv(temporary)
    record = {
        "format": IMPORT_FORMAT,
        "rows": rows,
        "source": source.name,
        "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
    }
    replace_text(folder / "imported.json", json.dumps(record, indent=1) + "\n")
    return study


MOST_TITLES = 3
"""Of studies beside each other that are named one by one."""


@dataclass(frozen=True)
class Planned:
    """What a study was meant to be.

    Attributes
    ----------
    title
        Of its file.
    cells
        Game, arm and seed, with why it failed, where it did.
    evaluation_games, evaluation_seeds
        Kept for judging what is chosen in the study.
    """

    title: str = ""
    cells: dict[Cell, str] = field(default_factory=dict)
    evaluation_games: tuple[str, ...] = ()
    evaluation_seeds: tuple[int, ...] = ()


def read_planned(folder: str | Path) -> Planned:
    r"""The plan in a study's folder, or those of its parts in the folders below; an empty one where there is none.

    A population that failed says why in the last line of ``populations/<id>.attempts.jsonl``. All of the study that a
    part was taken from is planned, so that cells are missed which are in no part.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> cell = {"game": "pong", "arm": "dqn", "seed": 0}
    >>> plan = {"title": "mine", "populations": [{"id": "p000", "runs": [cell]}]}
    >>> _ = (folder / "plan.json").write_text(json.dumps(plan))
    >>> read_planned(folder).cells
    {('pong', 'dqn', 0): ''}
    """
    parts = [_read_plan(path) for path in plan_paths(Path(folder))]
    games, seeds = ({getattr(part, name) for part in parts} for name in ("evaluation_games", "evaluation_seeds"))
    return Planned(
        joined_title(part.title for part in parts),
        dict.fromkeys(in_no_part(folder), IN_NO_PART)
        | {cell: reason for part in parts for cell, reason in part.cells.items()},
        games.pop() if len(games) == 1 else (),
        seeds.pop() if len(seeds) == 1 else (),
    )


def joined_title(titles: Iterable[str]) -> str:
    """What studies that lie beside each other are called together: what all titles begin with, if one is that.

    Else all of them, where they are few, and nothing where they are many.

    Examples
    --------
    >>> joined_title(["Four games", "Four games", "Four games: one arm more"])
    'Four games'
    >>> joined_title(["Four games", "The fifth"])
    'Four games; The fifth'
    >>> joined_title(["Pong 1", "Pong 10"])
    'Pong 1; Pong 10'
    """
    found = list(dict.fromkeys(title for title in titles if title))
    shortest = min(found, key=len, default="")
    if all(title == shortest or re.match(rf"{re.escape(shortest)}\W", title) for title in found):
        return shortest
    return "; ".join(found) if len(found) <= MOST_TITLES else ""


def _read_plan(path: Path) -> Planned:
    plan = read_json(path)
    cells: dict[Cell, str] = {}
    for population, own in planned_cells(plan, path).items():
        cells |= dict.fromkeys(own, _failure(path.parent / "populations" / f"{population}.attempts.jsonl"))
    kept = _read_toml(path.parent / "study.toml").get("evaluation", {}) if (path.parent / "study.toml").exists() else {}
    games, seeds = (tuple(kept.get(name, ())) for name in ("games", "seeds"))
    return Planned(str(plan.get("title", "")), cells, games, seeds)


def _failure(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    try:
        last = json.loads(lines[-1]) if lines else {}
    except ValueError:  # a line that is still being written
        return ""
    if not isinstance(last, dict):
        return ""
    return str(last.get("reason") or "failed") if last.get("event") == "failed" else ""


def _read_import(path: Path) -> Study:
    record = read_json(path)
    if (
        not isinstance(record, dict)
        or record.get("format") != IMPORT_FORMAT
        or record.get("rows")
        not in (
            "episodes",
            "points",
        )
    ):
        raise UserError(f"'{path}' is not of format {IMPORT_FORMAT}; import the table again")
    study = import_csv(path.with_suffix(".csv"), rows=record["rows"])
    source = {
        name: [{"imported_from": record.get("source"), "sha256": record.get("sha256")}] for name in study.runs["run"]
    }
    return Study(study.runs, study.episodes, study.metrics, {}, source)


def _read_export(path: Path) -> Study:
    packed = Packed(path)
    episodes, metrics, held_out = (packed.log(name) for name in ("episodes", "metrics", "held_out"))
    numbers = pl.all().exclude(CELL_SCHEMA).cast(pl.Float64)
    try:
        runs = packed.runs().select(_cast(RUN_SCHEMA))
        return Study(
            runs.with_columns(folder=pl.Series([str(path.parent / own) for own in runs["folder"]], dtype=pl.String)),
            episodes.select(_cast(EPISODE_SCHEMA)),
            metrics.select(*_cast(CELL_SCHEMA), numbers),
            packed.notes("settings"),
            packed.notes("provenance"),
            held_out.select(*_cast(CELL_SCHEMA), numbers),
        )
    except pl.exceptions.PolarsError as error:
        raise UserError(f"the tables of '{path}' are damaged: {str(error).splitlines()[0]}") from error


def _read_run(folder: Path, root: Path) -> Study:
    config = _read_toml(folder / "config.toml")
    missing = [key for key in ("game", "arm", "seed") if key not in config]
    if missing:
        raise UserError(f"'{folder / 'config.toml'}' names no {missing[0]}; it is not the configuration of a run")
    if not isinstance(config["seed"], int):
        raise UserError(f"seed in '{folder / 'config.toml'}' is {config['seed']!r}; it must be a whole number")
    settings = config.get("settings", {})
    status = read_json(folder / "status.json") if (folder / "status.json").exists() else {"state": "planned"}
    if not isinstance(status, dict) or not isinstance(status.get("state"), str):
        raise UserError(f"'{folder / 'status.json'}' names no state; it is not the status of a run")
    if status["state"] in SETTLED:
        _check_logs(folder)
    kind, kappa, centered = _arm(str(config["arm"]))
    # A run may carry a learning rate or a label of its own; it is then an arm of its own.
    arm = arm_label(str(config["arm"]), config.get("learning_rate"), str(config.get("label", "")))
    name = folder.relative_to(root).name or folder.resolve().name
    cell = {"run": name, "game": str(config["game"]), "arm": arm, "seed": config["seed"]}
    run = cell | {
        "kind": kind,
        "kappa": kappa,
        "centered": centered,
        "state": status["state"],
        "reason": status.get("reason", ""),
        "agent_steps": status.get("agent_steps"),
        "frames_target": settings.get("frames"),
        "preset": config.get("preset", ""),
        "folder": str(folder),
        "window": WINDOW_EPISODES,
    }
    keys = [pl.lit(value, CELL_SCHEMA[key]).alias(key) for key, value in cell.items()]
    episodes = pl.DataFrame(schema=EPISODE_SCHEMA)
    if (folder / "episodes.csv").exists():
        table = _read_csv(folder / "episodes.csv", {"frames": pl.Int64, "raw_return": pl.Float64})
        episodes = table.select(*keys, "frames", pl.col("raw_return").alias("return"))
    metrics, held_out = (_numbers(folder / name, keys) for name in ("metrics.csv", "representation.csv"))
    records = read_json(folder / "provenance.json") if (folder / "provenance.json").exists() else []
    runs = pl.DataFrame([run], schema=RUN_SCHEMA)
    return Study(runs, episodes, metrics, {name: settings}, {name: records}, held_out)


def _check_logs(folder: Path) -> None:
    """Refuse a damaged log of a run that has ended; that of one which has not may end in the middle of a line."""
    for name, columns in (("episodes.csv", ("frames", "raw_return")), ("metrics.csv", ()), ("representation.csv", ())):
        if (folder / name).exists():
            read_numbers(folder / name, columns)


def _numbers(path: Path, keys: list[pl.Expr]) -> pl.DataFrame:
    """A log of numbers behind the columns of `CELL_SCHEMA`; empty where there is none."""
    if not path.exists():
        return pl.DataFrame(schema=CELL_SCHEMA)
    return _read_csv(path, None).select(*keys, pl.all().exclude(CELL_SCHEMA).cast(pl.Float64, strict=False))


def _joined(parts: list[Study]) -> Study:
    return Study(
        pl.concat([part.runs for part in parts]),
        pl.concat([part.episodes for part in parts]),
        pl.concat([part.metrics for part in parts], how="diagonal"),
        {name: value for part in parts for name, value in part.settings.items()},
        {name: value for part in parts for name, value in part.provenance.items()},
        pl.concat([part.held_out for part in parts], how="diagonal"),
    )


def _arm(text: str) -> tuple[str, float | None, bool | None]:
    """Kind, κ and centring of an arm as the command line writes it; the text itself where it is none of ours."""
    kind, *options = text.split(":")
    if kind not in _KINDS:
        return text, None, None
    kappa = 0.0 if kind == "dqn" else None
    for option in options:
        try:
            kappa = float(option)
        except ValueError:
            continue
    return kind, kappa, kind not in NEVER_CENTERED and "uncentered" not in options


def _checked(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    if table.is_empty():
        raise UserError(f"'{path}' has no rows below its header")
    numbers = table.with_columns(
        pl.col("seed").str.strip_chars().str.replace(r"\.0+$", "").cast(pl.Int64, strict=False).alias("seed_"),
        pl.col("frames").str.strip_chars().cast(pl.Float64, strict=False).alias("frames_"),
        pl.col("return").str.strip_chars().cast(pl.Float64, strict=False).alias("return_"),
        pl.col("arm").fill_null("").str.strip_chars(),
        pl.col("game").fill_null("").str.strip_chars(),
    )
    frames, value = pl.col("frames_"), pl.col("return_")
    for column, good, right in (
        ("arm", pl.col("arm") != "", "a name"),
        ("game", pl.col("game") != "", "a name"),
        ("seed", pl.col("seed_").is_not_null(), "a whole number"),
        ("frames", frames.is_finite() & (frames >= 0) & (frames < 2**62), "a number, 0 or more"),
        ("return", value.is_finite(), "a finite number"),
    ):
        wrong = numbers.select(good.fill_null(False).not_().arg_true()).to_series()
        if len(wrong):
            cell = table[column][wrong[0]]
            raise UserError(f"line {_line(path, wrong[0])} of '{path}': {column} is {cell or ''!r}; it must be {right}")
    return numbers.select(
        "arm",
        "game",
        seed=pl.col("seed_"),
        frames=frames.round().cast(pl.Int64),
        **{"return": value},
    )


def _one_spelling_of_a_run(table: pl.DataFrame, path: Path) -> None:
    """Two spellings of a game in one run are two runs that would be taken for one."""
    cells = table.with_row_index("row").group_by("arm", "game", "seed", "spelled").agg(pl.col("row").min()).sort("row")
    twice = cells.filter(pl.struct("arm", "game", "seed").is_duplicated())
    if twice.height:
        arm, game, seed = twice.row(0)[:3]
        first, second, *_ = twice.filter(arm=arm, game=game, seed=seed).iter_rows(named=True)
        line, again = (_line(path, found["row"]) for found in (first, second))
        raise UserError(
            f"line {again} of '{path}': arm {arm!r}, seed {seed} has game {second['spelled']!r}, and "
            f"{first['spelled']!r} on line {line}, which are the same; give the runs different seeds"
        )


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Header and rows of a CSV file, each with the line on which it begins; a field may hold ends of lines."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader, line = csv.reader(file), 1
        for fields in reader:
            if fields or line > 1:
                yield line, fields
            line = reader.line_num + 1


def _line(path: Path, row: int) -> int:
    """The line on which a row below the header begins."""
    return next(islice(_rows(path), row + 1, None))[0]


def _one_point_at_a_frame(table: pl.DataFrame, path: Path) -> None:
    numbered = table.with_row_index("row")
    point = ["arm", "game", "seed", "frames"]
    twice = numbered.filter(pl.struct(point).is_duplicated())
    if twice.height:
        row, arm, game, seed, frames = next(twice.select("row", *point).iter_rows())
        own = (pl.col(name) == value for name, value in zip(point, (arm, game, seed, frames), strict=True))
        line, again = _line(path, row), _line(path, twice.filter(*own)["row"][1])
        raise UserError(
            f"line {again} of '{path}': arm {arm!r}, game {game!r}, seed {seed} has a point at {frames} frames on line "
            f"{line} already; a curve has one point at a frame"
        )


def _read_csv(path: Path, columns: dict[str, Any] | None) -> pl.DataFrame:
    """The named columns of a CSV file, or all of it; a last line that is still being written is left aside."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read '{path}': {(error.strerror or str(error)).lower()}") from error
    if columns is None or "raw_return" in columns:
        data = data[: data.rfind(b"\n") + 1]
    if not data.strip():
        return pl.DataFrame(schema=columns or {})
    try:
        header = pl.read_csv(data, n_rows=0, infer_schema=False).columns
        for column in columns or ():
            if column not in header:
                raise UserError(f"'{path}' has no column '{column}'; its columns are {', '.join(header)}")
            if f"{column}_duplicated_0" in header:
                raise UserError(f"'{path}' has more than one column '{column}'; leave one")
        if columns is None:
            return pl.read_csv(data, schema_overrides=dict.fromkeys(header, pl.Float64))
        return pl.read_csv(data, columns=list(columns), schema_overrides=columns)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if "more fields" in reason:
            (_, names), *_ = rows = list(_rows(path))
            line, fields = next(row for row in rows if len(row[1]) > len(names))
            reason = f"line {line} has {len(fields)} fields and the header has {len(names)}"
        raise UserError(f"'{path}' is not a CSV table: {reason}") from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error


def _cast(schema: dict[str, Any]) -> list[pl.Expr]:
    return [pl.col(name).cast(kind) for name, kind in schema.items()]
