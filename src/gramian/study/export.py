"""``gramian study export``: what a report reads of a study, as a small folder without weights.

Every plan's folder becomes a folder in the same place of the export, with the tables of its runs, its ``plan.json``,
its ``study.toml`` and what its populations' attempts said; the analysis of the study goes along. No learner is needed.

| file | content |
| --- | --- |
| ``export.json`` | manifest: SHA-256 of every file and of itself; settings and provenance |
| ``runs.parquet`` | a row for each run, with the places of its settings and its provenance in the manifest |
| ``episodes.parquet`` | place of the run in ``runs``, length in frames, return |
| ``metrics.parquet``, ``held_out.parquet`` | place of the run in ``runs``, and the columns of its logs |

Lengths of episodes take half the room of running frames, which grow and do not compress.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gramian.core.errors import UserError
from gramian.core.files import EXPORT, file_name, locked, output_folder, plan_paths, replace_bytes, replace_text
from gramian.core.parquet import write_table
from gramian.representation import tables
from gramian.representation.series import first_measured
from gramian.study.manifest import (
    PLAN,
    POPULATIONS,
    REST,
    STUDY,
    TABLES,
    planned_cells,
    read_json,
    write_manifest,
)
from gramian.study.store import CELL_SCHEMA, Study, kept_once, read_study

ANALYSIS = "analysis"
STAGED = ".export-"
"""Begin of the name of the folder, in that of the export, in which one is made; an export that was killed leaves it."""
LOCK = "lock"
_FOLDERS = re.compile(r"(?<![\w.~/])/(?:[^\s/'\",;]+/)+(?=[^\s/'\",;])")
_PRESET = re.compile(r"^\s*preset\s*=.*$", re.MULTILINE)


def write_export(study: str | Path, out: str | Path) -> Study:
    r"""Write the tables of a study to a new or empty folder, which `gramian.study.store.read_study` reads as the study.

    Left out are weights, replays, times, pictures and the machine's folders: a path is cut to its last name.
    """
    root, target = Path(study), Path(out)
    whole = _without_folders(read_study(root))
    _check(whole, root, target)
    with _staged(target) as staged:
        _write(staged, root, whole)
    return whole


def merge_exports(parts: Sequence[Path], out: Path) -> int:
    """Write parts of a study, or exports of them, to one folder, each by its name; gives the number of runs.

    Of a run that is in several parts the one that came furthest is kept. Refused are parts of different studies, and a
    run that came to its end in two of them.
    """
    names = [part.resolve().name for part in parts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"two parts are called '{twice[0]}'; rename one of their folders")
    settings = {part: read_json(path).get("settings") for part in parts for path in plan_paths(part)}
    if strange := [part for part in parts if part not in settings or settings[part] != settings.get(parts[0])]:
        raise UserError(f"'{strange[0]}' holds no part of the study in '{parts[0]}'; name the parts of one study")
    studies = [_without_folders(read_study(part)) for part in parts]
    for part, study in zip(parts, studies, strict=True):
        _check(study, part, out)
    kept = kept_once(studies)
    with _staged(out) as staged:
        for name, part, study in zip(names, parts, kept, strict=True):
            _write(output_folder(staged / name), part, study)
    return sum(study.runs.height for study in kept)


def _write(staged: Path, root: Path, study: Study) -> None:
    """Write the tables of a study that was read from ``root``, with its plans and its analysis."""
    plans = plan_paths(root)
    owners = sorted((path.parent for path in plans), key=lambda folder: -len(folder.parts))
    folders = [Path(folder) for folder in study.runs["folder"]]
    owner = [next((own for own in owners if folder.is_relative_to(own)), root) for folder in folders]
    for path in plans:
        _write_plan(output_folder(staged / path.parent.relative_to(root)), path)
    if tables.is_analysis(root / ANALYSIS):
        _write_analysis(output_folder(staged / ANALYSIS), root / ANALYSIS)
    files = {path for path in staged.rglob("*") if path.is_file()}
    for place in sorted({*owner, root}, key=lambda folder: -len(folder.parts)):
        folder = output_folder(staged / place.relative_to(root))
        own = {path for path in files if path.is_relative_to(folder)}
        files -= own
        beside = sorted(path.relative_to(folder).as_posix() for path in own)
        if place in owner:
            rows = [at for at, one in enumerate(owner) if one == place]
            _write_runs(folder, study, study.runs[rows], place, beside)
        elif beside:
            write_manifest(folder / REST, tables=[], beside=beside)


@contextmanager
def _staged(out: Path) -> Iterator[Path]:
    """A folder to write to, whose content is moved to ``out`` when the block ends well; else nothing is left."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    for path in output_folder(out).glob(f"{STAGED}*"):
        with locked(path / LOCK):  # of an export that is still at work
            shutil.rmtree(path)
    try:
        with tempfile.TemporaryDirectory(prefix=STAGED, dir=out) as own, locked(Path(own) / LOCK):
            staged = output_folder(Path(own) / "study")
            yield staged
            # the manifests last: where they are, everything is
            for path in sorted(staged.iterdir(), key=lambda path: path.name in (EXPORT, REST)):
                path.rename(out / path.name)
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


def _check(study: Study, root: Path, out: Path) -> None:
    if out.resolve().is_relative_to(root.resolve()):
        raise UserError(f"'{out}' lies in the study, where every run would be found twice; name another folder")
    if out.is_dir() and any(not path.name.startswith(STAGED) for path in out.iterdir()):
        raise UserError(f"folder '{out}' is not empty; name another one")
    twice = study.runs.filter(pl.col("run").is_duplicated()).sort("run", maintain_order=True)
    if twice.height:
        first, second = twice["folder"].head(2)
        raise UserError(f"two runs are called {twice['run'][0]!r}: '{first}' and '{second}'; export them apart")
    if study.episodes["frames"].null_count():
        run = study.episodes.filter(pl.col("frames").is_null())["run"][0]
        raise UserError(f"an episode of run {run!r} has no frames; its log is damaged")
    silent = study.runs.filter(pl.col("state") == "done").join(study.episodes, on="run", how="anti")
    if silent.height:
        raise UserError(f"'{silent['folder'][0]}' is done and has no episodes; train the run again, or leave it out")


def _write_runs(folder: Path, study: Study, runs: pl.DataFrame, place: Path, beside: Sequence[str]) -> None:
    """Write the tables of some runs of a study, whose folders lie in ``place``, and then their manifest."""
    inside = [Path(own).relative_to(place).as_posix() for own in runs["folder"]]
    written = {"runs": runs.with_columns(pl.Series("folder", inside, dtype=pl.String))}
    notes: dict[str, list[Any]] = {}
    for name in ("settings", "provenance"):
        texts = {run: json.dumps(note, default=str) for run, note in getattr(study, name).items()}
        own = [texts.get(run) for run in runs["run"]]
        different = [text for text in dict.fromkeys(own) if text is not None]
        notes[name] = [json.loads(text) for text in different]
        at = pl.Series(name, [None if text is None else different.index(text) for text in own], dtype=pl.Int64)
        written["runs"] = written["runs"].with_columns(at)
    for name in TABLES[1:]:
        places = runs.select("run").with_row_index("at").with_columns(pl.col("at").cast(pl.Int64))
        log = getattr(study, name).join(places, on="run", how="inner", maintain_order="left")
        written[name] = log.select("at", pl.all().exclude("at", *CELL_SCHEMA))
    before = pl.col("frames").shift(1).over("at").fill_null(0)
    written["episodes"] = written["episodes"].select("at", (pl.col("frames") - before).alias("length"), "return")
    for name, table in written.items():
        write_table(folder / f"{name}.parquet", table)
    names = [f"{name}.parquet" for name in written]
    write_manifest(folder / EXPORT, tables=names, beside=beside, runs=runs.height, **notes)


def _write_plan(folder: Path, path: Path) -> None:
    """The plan, the study and, of each population, what its processes said, without the machine's names."""
    plan = read_json(path)
    populations = planned_cells(plan, path)
    replace_text(folder / PLAN, json.dumps(plan | {"preset": _word(str(plan.get("preset", "")))}, indent=1) + "\n")
    if (path.parent / STUDY).exists():
        text = (path.parent / STUDY).read_text(encoding="utf-8")
        replace_text(folder / STUDY, _PRESET.sub(lambda line: without_folders(line[0]), text))
    if (path.parent / POPULATIONS).is_dir():
        for population in populations:
            said = path.parent / POPULATIONS / f"{population}.attempts.jsonl"
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines() if said.exists() else []
            text = "".join(f"{_anonymous(line)}\n" for line in lines)
            replace_text(output_folder(folder / POPULATIONS) / said.name, text)


def _write_analysis(folder: Path, analysis: Path) -> None:
    """The tables of an analysis, and of the matrices those that a report shows."""
    for name in ("measures.csv", "summary.md"):
        if (analysis / name).exists():
            replace_bytes(folder / name, (analysis / name).read_bytes())
    tables.pack(folder / "curves.csv", tables.read_curves(analysis / "curves.csv"))
    tables.pack(folder / "dynamics.csv", tables.read_dynamics(analysis / "dynamics.csv"))
    matrices = output_folder(folder / tables.CORRELATION)
    by_game: dict[str, list[tables.Measure]] = {}
    for row in tables.read_measures(analysis / "measures.csv"):
        by_game.setdefault(row.game, []).append(row)
    for measures in by_game.values():
        for arm in dict.fromkeys(row.arm for row in measures):
            run = file_name(first_measured(measures, arm).run, analysis / "measures.csv")
            tables.pack_correlation(matrices, run, tables.read_correlation(analysis / tables.CORRELATION, run))


def _without_folders(study: Study) -> Study:
    """A study whose commands, reasons and presets name no folder of the machine."""
    reasons = [without_folders(reason or "") for reason in study.runs["reason"]]
    presets = [_word(preset or "") for preset in study.runs["preset"]]
    columns = {"reason": reasons, "preset": presets}
    return replace(
        study,
        runs=study.runs.with_columns(pl.Series(name, column, dtype=pl.String) for name, column in columns.items()),
        provenance={run: _records(records) for run, records in study.provenance.items()},
    )


def _records(records: Any) -> Any:
    if not isinstance(records, list):
        return records
    return [
        record | {"command": [_word(str(word)) for word in record["command"]]}
        if isinstance(record, dict) and isinstance(record.get("command"), list)
        else record
        for record in records
    ]


def _word(word: str) -> str:
    """A word of a command: an option, or a path, which may hold anything."""
    return Path(word).name if word.startswith("/") else without_folders(word)


def without_folders(text: str) -> str:
    """A text whose absolute paths are cut to their last names."""
    return _FOLDERS.sub("", text)


def _anonymous(line: str) -> str:
    try:
        said = json.loads(line)
    except ValueError:  # a line that was cut short
        return ""
    if not isinstance(said, dict):
        return line
    hidden = {"host": "", "pid": 0, "reason": without_folders(str(said.get("reason", "")))}
    return json.dumps(said | {name: value for name, value in hidden.items() if name in said})
