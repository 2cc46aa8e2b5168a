"""``gramian study export``: what a report reads of a study, as a small folder without weights.

Every plan's folder becomes a folder in the same place of the export, with the tables of its runs
(`gramian.study.packed`), its ``plan.json``, its ``study.toml`` and what came of its populations; the analysis of the
study goes along. Reads files and knows no learner.
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

from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import EXPORT, locked, output_folder, plan_paths, replace_text
from gramian.representation import tables
from gramian.representation.series import first_measured
from gramian.study.heads import REST, write_head
from gramian.study.packed import LOGS, Notes, write_packed
from gramian.study.store import Study, read_planned, read_study

ANALYSIS = "analysis"
STAGED = ".export-"
"""Begin of the name of the folder, in that of the export, in which one is made; what was stopped leaves it behind."""
LOCK = "lock"
_FOLDERS = re.compile(r"(?<![\w.~/])/(?:[^\s/'\",;]+/)+(?=[^\s/'\",;])")


def write_export(study: str | Path, out: str | Path) -> Study:
    r"""Write the tables of a study to a folder that `gramian.study.store.read_study` reads as it reads the study.

    Left away are weights, replays, times and pictures, and the folders of the machine: in the commands that runs have
    noted, and in the reasons why one failed, a path is cut to its last name. What is written is read back and compared
    before it takes its place.

    Parameters
    ----------
    study
        Folder of a study, of its parts, of a population or of a run; imports and exports in it are taken along.
    out
        Folder to write to; it is not there yet, or empty but for what an export that was stopped has left there, which
        is removed.

    Returns
    -------
    Study
        What was exported.

    Raises
    ------
    UserError
        If there is no run, if two have the same name, if one is done without any episode, or if ``out`` is not empty or
        lies in the study.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "study" / "pong-dqn-s1").mkdir(parents=True)
    >>> run = folder / "study" / "pong-dqn-s1"
    >>> _ = (run / "config.toml").write_text('game = "pong"\narm = "dqn"\nseed = 1\npreset = "author"')
    >>> _ = (run / "episodes.csv").write_text("frames,raw_return\n3000,-21.0\n5000,-20.0\n")
    >>> _ = write_export(folder / "study", folder / "small")
    >>> sorted(path.name for path in (folder / "small").iterdir())
    ['episodes.parquet', 'export.json', 'held_out.parquet', 'metrics.parquet', 'runs.parquet']
    >>> read_study(folder / "small").episodes.select("run", "frames", "return").rows()
    [('pong-dqn-s1', 3000, -21.0), ('pong-dqn-s1', 5000, -20.0)]
    """
    root, target = Path(study), Path(out)
    whole = _without_folders(read_study(root))
    read_planned(root)  # says what is wrong with a plan
    _check(whole, root, target)
    parts = _parts(whole, root)
    plans = plan_paths(root)
    analyzed = tables.is_analysis(root / ANALYSIS)
    _remove_leftovers(target)
    with (
        _new_folder(target) as folder,
        tempfile.TemporaryDirectory(prefix=STAGED, dir=folder) as own,
        locked(Path(own) / LOCK),
    ):
        staged = output_folder(Path(own) / "study")
        for plan in plans:
            _write_plan(output_folder(staged / plan.parent.relative_to(root)), plan)
        if analyzed:
            _write_analysis(output_folder(staged / ANALYSIS), root / ANALYSIS)
        written = sorted(path.relative_to(staged) for path in staged.rglob("*") if path.is_file())
        beside = _by_head(written, [Path(), *parts])
        for place, part in parts.items():
            _write_part(output_folder(staged / place), part, root / place, beside.pop(place))
        if rest := beside.get(Path()):
            write_head(staged / REST, tables=[], beside=rest)
        if not _same(read_study(staged), whole, staged, root):
            raise WorkFailed(f"the export of '{root}' is not read back as it was written; nothing is left of it")
        # the heads last: where they are, everything is
        for path in sorted(staged.iterdir(), key=lambda path: path.name in (EXPORT, REST)):
            path.rename(folder / path.name)
    return whole


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which is not there afterwards where it was not before and nothing came of it."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    output_folder(path)
    try:
        yield path
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(STAGED) and path.is_dir() and not path.is_symlink()


def _remove_leftovers(out: Path) -> None:
    """Remove what exports have left that were stopped; one that is still at work holds its lock."""
    for path in filter(_is_leftover, list(out.iterdir()) if out.is_dir() else ()):
        with locked(path / LOCK):
            shutil.rmtree(path)


def _check(study: Study, root: Path, out: Path) -> None:
    if out.resolve().is_relative_to(root.resolve()):
        raise UserError(f"'{out}' lies in the study, where every run would be found twice; name another folder")
    if out.is_dir() and any(not _is_leftover(path) for path in out.iterdir()):
        raise UserError(f"folder '{out}' is not empty; name another one")
    twice = study.runs.filter(pl.col("run").is_duplicated()).sort("run", maintain_order=True)
    if twice.height:
        first, second = twice["folder"].head(2)
        raise UserError(f"two runs are called {twice['run'][0]!r}: '{first}' and '{second}'; export them apart")
    if study.episodes["frames"].null_count():
        run = study.episodes.filter(pl.col("frames").is_null())["run"][0]
        raise UserError(f"an episode of run {run!r} has no frames; its log is damaged")
    logged = study.episodes["run"].unique().to_list()
    silent = study.runs.filter(pl.col("state") == "done", ~pl.col("run").is_in(logged))
    if silent.height:
        raise UserError(f"'{silent['folder'][0]}' is done and has no episodes; train the run again, or leave it out")


def _without_folders(study: Study) -> Study:
    """A study whose commands and reasons name no folder of the machine."""
    reasons = [without_folders(reason or "") for reason in study.runs["reason"]]
    provenance = {run: _records(records) for run, records in study.provenance.items()}
    return replace(
        study, runs=study.runs.with_columns(reason=pl.Series(reasons, dtype=pl.String)), provenance=provenance
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
    """A text whose absolute paths are cut to their last names.

    Examples
    --------
    >>> without_folders("cannot write '/home/me/runs/p000/log.csv': disk full; 3/4 done in runs/p000")
    "cannot write 'log.csv': disk full; 3/4 done in runs/p000"
    """
    return _FOLDERS.sub("", text)


def _parts(study: Study, root: Path) -> dict[Path, Study]:
    """The runs of each plan by themselves, by the plan's place; all together where that would change their order."""
    owners = sorted((path.parent for path in plan_paths(root)), key=lambda folder: -len(folder.parts))
    folders = [Path(folder) for folder in study.runs["folder"]]
    places = [next((own for own in owners if folder.is_relative_to(own)), root).relative_to(root) for folder in folders]
    by_place = {
        place: [at for at, own in enumerate(places) if own == place] for place in sorted(set(places), key=_head)
    }
    if [at for rows in by_place.values() for at in rows] != list(range(len(places))):
        return {Path(): study}
    return {place: _rows(study, rows) for place, rows in by_place.items()}


def _head(place: Path) -> Path:
    return place / EXPORT


def _rows(study: Study, rows: Sequence[int]) -> Study:
    runs = study.runs[list(rows)]
    names = set(runs["run"])
    logs = {name: getattr(study, name).filter(pl.col("run").is_in(list(names))) for name in LOGS}
    settings, provenance = (
        {run: value for run, value in getattr(study, name).items() if run in names}
        for name in ("settings", "provenance")
    )
    return replace(study, runs=runs, settings=settings, provenance=provenance, **logs)


def _by_head(files: Sequence[Path], places: Sequence[Path]) -> dict[Path, list[str]]:
    """The names of files as seen from the nearest of the places of heads above each; the root is one of them.

    Examples
    --------
    >>> _by_head([Path("plan.json"), Path("s1/plan.json")], [Path(), Path("s1")])
    {PosixPath('.'): ['plan.json'], PosixPath('s1'): ['plan.json']}
    """
    found: dict[Path, list[str]] = {place: [] for place in places}
    for file in files:
        nearest = max((place for place in places if file.is_relative_to(place)), key=lambda place: len(place.parts))
        found[nearest].append(file.relative_to(nearest).as_posix())
    return found


def _write_part(folder: Path, part: Study, place: Path, beside: Sequence[str]) -> None:
    inside = [Path(own).relative_to(place).as_posix() for own in part.runs["folder"]]
    runs = part.runs.with_columns(folder=pl.Series(inside, dtype=pl.String))
    notes: dict[str, Notes] = {"settings": part.settings, "provenance": part.provenance}
    write_packed(folder, runs, {name: getattr(part, name) for name in LOGS}, notes, beside)


def _write_plan(folder: Path, plan: Path) -> None:
    """The plan, the study and, of each population, what its processes said, as they are but for the machine's name."""
    text = plan.read_text(encoding="utf-8")
    for path in (plan, plan.parent / "study.toml"):
        if path.exists():
            replace_text(folder / path.name, path.read_text(encoding="utf-8"))
    if not (plan.parent / "populations").is_dir():
        return
    populations = output_folder(folder / "populations")
    for population in json.loads(text)["populations"]:
        name = f"{_file_name(str(population['id']), plan)}.attempts.jsonl"
        said = plan.parent / "populations" / name
        lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
        replace_text(populations / name, "".join(f"{_anonymous(line)}\n" for line in lines))


def _file_name(name: str, where: Path) -> str:
    """A name that a file may have, for nothing is written outside of the export."""
    if not name or "/" in name or "\0" in name:
        raise UserError(f"'{where}' has the name {name!r}, which no file can have; it is damaged")
    return name


def _anonymous(line: str) -> str:
    try:
        said = json.loads(line)
    except ValueError:  # a line that was cut short
        return ""
    if not isinstance(said, dict):
        return line
    hidden = {"host": "", "pid": 0, "reason": without_folders(str(said.get("reason", "")))}
    return json.dumps(said | {name: value for name, value in hidden.items() if name in said})


def _write_analysis(folder: Path, analysis: Path) -> None:
    """The tables of an analysis, and of the matrices those that a report shows."""
    for name in ("measures.csv", "summary.md"):
        if (analysis / name).exists():
            replace_text(folder / name, (analysis / name).read_text(encoding="utf-8"))
    tables.pack(folder / "curves.csv", tables.read_curves(analysis / "curves.csv"))
    tables.pack(folder / "dynamics.csv", tables.read_dynamics(analysis / "dynamics.csv"))
    matrices = output_folder(folder / tables.CORRELATION)
    by_game: dict[str, list[tables.Measure]] = {}
    for row in tables.read_measures(analysis / "measures.csv"):
        by_game.setdefault(row.game, []).append(row)
    for measures in by_game.values():
        for arm in dict.fromkeys(row.arm for row in measures):
            run = _file_name(first_measured(measures, arm).run, analysis / "measures.csv")
            tables.pack_correlation(matrices, run, tables.read_correlation(analysis / tables.CORRELATION, run))


def _same(read: Study, written: Study, read_at: Path, written_at: Path) -> bool:
    """Whether two studies are the same but for where they lie."""
    places = [
        [Path(folder).relative_to(root) for folder in study.runs["folder"]]
        for study, root in ((read, read_at), (written, written_at))
    ]
    frames = all(getattr(read, name).equals(getattr(written, name)) for name in LOGS)
    notes = all(_text(getattr(read, name)) == _text(getattr(written, name)) for name in ("settings", "provenance"))
    return frames and notes and places[0] == places[1] and read.runs.drop("folder").equals(written.runs.drop("folder"))


def _text(notes: Any) -> str:
    return json.dumps(notes, default=str)
