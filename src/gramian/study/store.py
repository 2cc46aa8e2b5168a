"""Run folders, exports of them and imported tables, as tidy tables. Reads files and knows no learner."""

import csv
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from gramian.core.arms import CENTRABLE, KINDS, arm_label, kind_of
from gramian.core.errors import UserError, require
from gramian.core.files import EXPORT, files_below, output_folder, replace_text, replacing
from gramian.core.games import game_name
from gramian.study.manifest import SETTLED, TABLES, check_exports, damaged, read_json, read_toml

RUN_SCHEMA: dict[str, Any] = {
    "run": pl.String, "game": pl.String, "arm": pl.String, "kind": pl.String, "kappa": pl.Float64,
    "centered": pl.Boolean, "seed": pl.Int64, "state": pl.String, "reason": pl.String, "agent_steps": pl.Int64,
    "frames_target": pl.Int64, "preset": pl.String, "folder": pl.String, "window": pl.Int64,
}  # fmt: skip
"""``window``: rows of ``episodes`` that a score is the mean of: 100 where a row is an episode, 1 where it is a mean."""
CELL_SCHEMA: dict[str, Any] = {"run": pl.String, "game": pl.String, "arm": pl.String, "seed": pl.Int64}
EPISODE_SCHEMA: dict[str, Any] = CELL_SCHEMA | {"frames": pl.Int64, "return": pl.Float64}

WINDOW_EPISODES = 100
"""Last training episodes whose mean return is the final score, as in the paper."""
IMPORT_COLUMNS = ("arm", "game", "seed", "frames", "return")
IMPORT_FORMAT = 1
SHORT = 0.9
"""An imported run that ends before this share of the longest one of its game did not finish."""

Rows = Literal["episodes", "points"]


@dataclass(frozen=True)
class Study:
    """What was run, in tidy tables; a log that no run has is an empty table.

    ``runs`` has the columns of `RUN_SCHEMA`: ``state`` is that of ``status.json``, ``planned`` where there is none yet.
    ``episodes`` has those of `EPISODE_SCHEMA`, by run and then by frames. ``metrics`` and ``held_out`` have run, game,
    arm and seed and the columns of ``metrics.csv`` and ``representation.csv``. ``settings`` and ``provenance`` are by
    run.
    """

    runs: pl.DataFrame
    episodes: pl.DataFrame
    metrics: pl.DataFrame
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    provenance: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    held_out: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CELL_SCHEMA))


def read_study(folder: str | Path) -> Study:
    r"""Read every run folder below ``folder``, however deep, every export and every table imported there.

    Folders below it whose names begin with a dot are left out.

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
    manifests = check_exports(root)
    parts = []
    # By path, whatever it is: an exported part keeps its place among the others.
    for path in sorted(path for name in ("config.toml", "imported.json", EXPORT) for path in files_below(root, name)):
        if path.name == EXPORT:
            parts.append(read_export(path, manifests[path]))
        else:
            parts.append(_read_run(path.parent, root) if path.name == "config.toml" else _read_import(path))
    if not parts:
        raise UserError(f"there is no run below '{root}'; a run is a folder with a config.toml")
    return joined(parts)


def joined(parts: Sequence[Study]) -> Study:
    """Several studies as one."""
    return Study(
        pl.concat([part.runs for part in parts]),
        pl.concat([part.episodes for part in parts]),
        pl.concat([part.metrics for part in parts], how="diagonal"),
        {name: value for part in parts for name, value in part.settings.items()},
        {name: value for part in parts for name, value in part.provenance.items()},
        pl.concat([part.held_out for part in parts], how="diagonal"),
    )


def kept_once(parts: Sequence[Study]) -> list[Study]:
    """Parts of a study without the runs that came further in another part; refused is one that ended in two."""
    ended = pl.col("state").is_in(SETTLED)
    runs = pl.concat([part.runs.with_columns(part=at) for at, part in enumerate(parts)])
    done = runs.filter(ended)
    if (double := done.filter(done["run"].is_duplicated())).height:
        run = double["run"][0]
        first, second = double.filter(run=run)["folder"][:2]
        raise UserError(f"run '{run}' has ended in '{first}' and in '{second}'; name one of the two parts")
    furthest = runs.sort(ended, pl.col("agent_steps").fill_null(0), descending=True, maintain_order=True)
    kept = furthest.unique("run", keep="first").select("run", "part")
    found = []
    for at, part in enumerate(parts):
        own = pl.col("run").is_in(kept.filter(part=at)["run"].to_list())
        logs = {name: getattr(part, name).filter(own) for name in ("runs", "episodes", "metrics", "held_out")}
        found.append(replace(part, **logs))
    return found


def first_frames(study: Study, frames: int) -> Study:
    """A study as it was when each run had seen ``frames`` frames; a run that came so far is done."""
    require(frames >= 1, "frames", frames, "at least 1")
    logs = (study.episodes, study.metrics, study.held_out)
    seen = pl.concat([log.select("run", pl.col("frames").cast(pl.Int64)) for log in logs if "frames" in log.columns])
    reached = seen.group_by("run").agg(reached=pl.col("frames").max())
    runs = study.runs.join(reached, on="run", how="left", maintain_order="left")
    arrived = pl.col("reached").fill_null(0) >= frames
    if not runs.select(arrived.any()).item():
        most = max(runs["reached"].drop_nulls().to_list(), default=0)
        raise UserError(f"no run has {frames:,} frames; the longest has {most:,}")
    runs = runs.with_columns(
        state=pl.when(arrived).then(pl.lit("done")).otherwise("state"),
        reason=pl.when(arrived).then(pl.lit("")).otherwise("reason"),
        frames_target=pl.min_horizontal(pl.col("frames_target").fill_null(frames), pl.lit(frames)),
    ).drop("reached")
    cut = [log.filter(pl.col("frames") <= frames) if "frames" in log.columns else log for log in logs]
    return replace(study, runs=runs, episodes=cut[0], metrics=cut[1], held_out=cut[2])


def read_export(path: Path, manifest: Mapping[str, Any]) -> Study:
    """The runs of an export, from the path of its ``export.json`` and what that holds (`read_manifest`)."""
    try:
        tables = {name: pl.read_parquet((path.parent / f"{name}.parquet").read_bytes()) for name in TABLES}
        runs = tables["runs"]
        cells = runs.select(_cast(CELL_SCHEMA))
        logs = {
            name: cells.select(pl.all().gather(table["at"])).hstack(table.drop("at")) for name, table in tables.items()
            if name != "runs"
        }  # fmt: skip
        frames = pl.col("length").cast(pl.Int64).cum_sum().over("run")
        settings, provenance = (
            {run: manifest[name][place] for run, place in runs.select("run", name).drop_nulls().iter_rows()}
            for name in ("settings", "provenance")
        )
        folders = [str(path.parent / own) for own in runs["folder"]]
        numbers = pl.all().exclude(CELL_SCHEMA).cast(pl.Float64)
        return Study(
            runs.with_columns(pl.Series("folder", folders, dtype=pl.String)).select(_cast(RUN_SCHEMA)),
            logs["episodes"].with_columns(frames=frames).select(_cast(EPISODE_SCHEMA)),
            logs["metrics"].with_columns(numbers),
            settings,
            provenance,
            logs["held_out"].with_columns(numbers),
        )
    except (OSError, LookupError, TypeError, pl.exceptions.PolarsError) as error:
        raise damaged(path, error) from error


def _read_run(folder: Path, root: Path) -> Study:
    path, status_path = folder / "config.toml", folder / "status.json"
    config = read_toml(path)
    if missing := [key for key in ("game", "arm", "seed") if key not in config]:
        raise UserError(f"'{path}' names no {missing[0]}; it is not the configuration of a run")
    if not isinstance(config["seed"], int):
        raise UserError(f"seed in '{path}' is {config['seed']!r}; it must be a whole number")
    status = read_json(status_path) if status_path.exists() else {"state": "planned"}
    if not isinstance(status, dict) or not isinstance(status.get("state"), str):
        raise UserError(f"'{status_path}' names no state; it is not the status of a run")
    settings = config.get("settings", {})
    kind, kappa, centered = _arm(str(config["arm"]))
    name = folder.relative_to(root).name or folder.resolve().name
    # A run may carry a learning rate, other settings or a label of its own; it is then an arm of its own.
    arm = arm_label(config)
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
    ended = status["state"] in SETTLED
    logs = (_read_log(folder / log, ended) for log in ("metrics.csv", "representation.csv"))
    metrics, held_out = (
        log.select(*keys, pl.all().exclude(CELL_SCHEMA)) if log.width else pl.DataFrame(schema=CELL_SCHEMA)
        for log in logs
    )
    episodes = _read_log(folder / "episodes.csv", ended, ("frames", "raw_return"))
    return Study(
        pl.DataFrame([run], schema=RUN_SCHEMA),
        episodes.select(*keys, pl.col("frames").cast(pl.Int64), pl.col("raw_return").alias("return")),
        metrics,
        {name: settings},
        {name: _provenance(folder / "provenance.json")},
        held_out,
    )


def _provenance(path: Path) -> Any:
    """Processes that worked on a run; none, with a warning, where the file is damaged, for it only informs."""
    try:
        return read_json(path) if path.exists() else []
    except UserError as error:
        print(f"gramian: {error}; the run is read without it", file=sys.stderr)
        return []


def _read_log(path: Path, ended: bool, columns: tuple[str, ...] = ()) -> pl.DataFrame:
    """The numbers of a log, Float64 by column, among them ``columns``; no others where there is no log.

    The last line of a run that has not ended may be incomplete and is left out; a damaged log of one that has is
    refused with its line.
    """
    if not path.exists():
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.Float64))
    data = _read_bytes(path)
    whole = data[: data.rfind(b"\n") + 1]
    if ended and whole != data:
        raise _broken(path, data.count(b"\n") + 1, "does not end with a newline, as if it were cut off")
    table = _read_csv(path, whole, pl.Float64, columns)
    if ended:
        for column in table.columns:
            if len(rows := table[column].is_null().arg_true()):
                raise _broken(path, rows[0] + 2, f"has no number for {column}")
    return table


def _broken(path: Path, line: int, how: str) -> UserError:
    return UserError(f"line {line} of the table '{path}' {how}; the table is damaged: make it again")


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read '{path}': {(error.strerror or str(error)).lower()}") from error


def _read_csv(path: Path, data: bytes, kind: Any, columns: tuple[str, ...]) -> pl.DataFrame:
    """A CSV table with the named columns and others, each of the type ``kind``."""
    if not data.strip():
        return pl.DataFrame(schema=dict.fromkeys(columns, kind))
    try:
        header = pl.read_csv(data, n_rows=0, infer_schema=False).columns
        for column in columns:
            if column not in header:
                raise UserError(f"'{path}' has no column '{column}'; its columns are {', '.join(header)}")
            if f"{column}_duplicated_0" in header:
                raise UserError(f"'{path}' has more than one column '{column}'; leave one")
        return pl.read_csv(data, schema_overrides=dict.fromkeys(header, kind))
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        if "more fields" in reason:
            (_, names), *rows = _rows(path)
            line, fields = next(row for row in rows if len(row[1]) > len(names))
            reason = f"line {line} has {len(fields)} fields and the header has {len(names)}"
        raise UserError(f"'{path}' is not a CSV table: {reason}") from error


def _arm(text: str) -> tuple[str, float | None, bool | None]:
    """Kind, κ and centring of an arm as the command line writes it; the text itself where it is none of ours."""
    kind, *options = text.split(":")
    if set(kinds := kind_of(text).split("+")) <= {*KINDS} and len(kinds) > 1:
        return kind_of(text), None, None
    if kind not in KINDS:
        return text, None, None
    kappa = 0.0 if kind == "dqn" else None
    for option in options:
        try:
            kappa = float(option)
        except ValueError:
            continue
    return kind, kappa, kind in CENTRABLE and "uncentered" not in options


def import_csv(path: str | Path, *, rows: Rows = "episodes") -> Study:
    r"""Read somebody else's tidy table with the columns arm, game, seed, frames, return; others are left out.

    With ``rows="episodes"`` a row is a training episode that ended at ``frames``, and a run's score is the mean of its
    last 100. With ``rows="points"`` it is a point of a learning curve, a mean already, and the score is the last one.
    """
    path = Path(path)
    table = _checked(_read_csv(path, _read_bytes(path), pl.String, IMPORT_COLUMNS).select(IMPORT_COLUMNS), path)
    names = {game: game_name(game) for game in table["game"].unique().to_list()}
    table = table.with_columns(pl.col("game").replace(names), spelled="game").with_row_index("row")
    _check_spelling(table, path)
    if rows == "points":
        _check_points(table, path)
    table = table.with_columns(run=pl.format("{}-{}-s{}", "game", "arm", "seed"))
    ends = table.group_by("run", "game", "arm", "seed", maintain_order=True).agg(end=pl.col("frames").max())
    target = pl.col("end").max().over("game")
    finished = pl.col("end") >= SHORT * target
    runs = ends.with_columns(
        frames_target=target,
        state=pl.when(finished).then(pl.lit("done")).otherwise(pl.lit("interrupted")),
        reason=pl.when(finished).then(pl.lit("")).otherwise(pl.format("ends at {} of {} frames", "end", target)),
        agent_steps=pl.lit(None, pl.Int64),
        preset=pl.lit("imported"),
        folder=pl.lit(str(path)),
        window=pl.lit(WINDOW_EPISODES if rows == "episodes" else 1),
    )
    arms = [_arm(arm) for arm in runs["arm"]]
    runs = runs.with_columns(
        pl.Series(name, [arm[at] for arm in arms], dtype=RUN_SCHEMA[name])
        for at, name in enumerate(("kind", "kappa", "centered"))
    )
    episodes = table.select(_cast(EPISODE_SCHEMA)).sort("run", "frames")
    return Study(runs.select(_cast(RUN_SCHEMA)), episodes, pl.DataFrame(schema=CELL_SCHEMA))


def write_import(path: str | Path, out: str | Path, *, rows: Rows = "episodes") -> Study:
    """Copy a tidy table (`import_csv`) into a folder that `read_study` reads; a wrong table leaves nothing behind."""
    study, source = import_csv(path, rows=rows), Path(path)
    if (Path(out) / "imported.json").exists():
        raise UserError(f"folder '{out}' holds an imported table already; name another one")
    folder = output_folder(out)
    with replacing(folder / "imported.csv") as temporary:
        study.episodes.select(IMPORT_COLUMNS).write_csv(temporary)
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    record = {"format": IMPORT_FORMAT, "rows": rows, "source": source.name, "sha256": sha256}
    replace_text(folder / "imported.json", json.dumps(record, indent=1) + "\n")
    return study


def _read_import(path: Path) -> Study:
    record = read_json(path)
    known = isinstance(record, dict) and record.get("format") == IMPORT_FORMAT
    if not known or record.get("rows") not in ("episodes", "points"):
        raise UserError(f"'{path}' is not of format {IMPORT_FORMAT}; import the table again")
    study = import_csv(path.with_suffix(".csv"), rows=record["rows"])
    source = [{"imported_from": record.get("source"), "sha256": record.get("sha256")}]
    return replace(study, provenance=dict.fromkeys(study.runs["run"], source))


def _checked(table: pl.DataFrame, path: Path) -> pl.DataFrame:
    """The columns of an import, each of its type."""
    if table.is_empty():
        raise UserError(f"'{path}' has no rows below its header")
    text = pl.all().fill_null("").str.strip_chars()
    numbers = table.select(text).with_columns(
        pl.col("seed").str.replace(r"\.0+$", "").cast(pl.Int64, strict=False),
        pl.col("frames", "return").cast(pl.Float64, strict=False),
    )
    frames, value = pl.col("frames"), pl.col("return")
    for column, good, right in (
        ("arm", pl.col("arm") != "", "a name"),
        ("game", pl.col("game") != "", "a name"),
        ("seed", pl.col("seed").is_not_null(), "a whole number"),
        ("frames", frames.is_finite() & (frames >= 0) & (frames < 2**62), "a number, 0 or more"),
        ("return", value.is_finite(), "a finite number"),
    ):
        wrong = numbers.select(good.fill_null(False).not_().arg_true()).to_series()
        if len(wrong):
            cell = table[column][wrong[0]]
            raise UserError(f"line {_line(path, wrong[0])} of '{path}': {column} is {cell or ''!r}; it must be {right}")
    return numbers.with_columns(frames.round().cast(pl.Int64))


def _check_spelling(table: pl.DataFrame, path: Path) -> None:
    """Two spellings of a game in one run are two runs that would be taken for one."""
    twice = table.filter(pl.col("spelled").n_unique().over("arm", "game", "seed") > 1)
    if twice.height:
        first = twice.row(0, named=True)
        cell = twice.filter(arm=first["arm"], game=first["game"], seed=first["seed"])
        second = cell.filter(pl.col("spelled") != first["spelled"]).row(0, named=True)
        raise UserError(
            f"line {_line(path, second['row'])} of '{path}': arm {first['arm']!r}, seed {first['seed']} has game "
            f"{second['spelled']!r}, and {first['spelled']!r} on line {_line(path, first['row'])}, which are the same; "
            "give the runs different seeds"
        )


def _check_points(table: pl.DataFrame, path: Path) -> None:
    """A curve has one point at a frame."""
    point = ["arm", "game", "seed", "frames"]
    twice = table.filter(pl.struct(point).is_duplicated())
    if twice.height:
        arm, game, seed, frames = twice.select(point).row(0)
        line, again = (
            _line(path, row) for row in twice.filter(arm=arm, game=game, seed=seed, frames=frames)["row"][:2]
        )
        raise UserError(
            f"line {again} of '{path}': arm {arm!r}, game {game!r}, seed {seed} has a point at {frames} frames on line "
            f"{line} already; a curve has one point at a frame"
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


def _cast(schema: dict[str, Any]) -> list[pl.Expr]:
    return [pl.col(name).cast(kind) for name, kind in schema.items()]
