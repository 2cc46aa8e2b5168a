"""``gramian study report``, ``import``, ``export`` and ``merge``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gramian.core.errors import UserError
from gramian.core.statistics import REPLICATES
from gramian.report.analysis import Options
from gramian.report.build import build
from gramian.report.reference import HumanTable
from gramian.study.export import merge_exports, write_export
from gramian.study.store import Rows, write_import


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Which study to report, and how."""

    folder: tyro.conf.Positional[Path]
    """Of a study, a population, a run, an import or an export."""
    out: Path
    """Folder for index.html, figures, scores.csv, features.csv, table.md and table.tex."""
    human: HumanTable = "atari-57"
    """Table of human and random scores that Atari scores are normalised with."""
    baseline: str = Options.baseline
    """Arm that the others are compared with."""
    control: str = ""
    """Arm that they are compared with besides, in a section of its own; 'norm (matched)', where the study has it."""
    replicates: int = REPLICATES
    """Bootstrap replicates."""
    seed: int = 0
    """Of the bootstrap."""
    title: str = ""
    """Of the page; the study's own where it is left away."""
    analysis: Path | None = None
    """What 'gramian analyze' has written of these runs; FOLDER/analysis, where there is one, unless it is given."""
    frames: int = 0
    """Look at the first so many frames of every run; a run that has come so far counts as done. 0 for all of them."""
    small: bool = False
    """A page without scripts, its figures as pictures in it: a fraction of the size, and nothing to explore."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Which table to import, and what its rows are."""

    table: tyro.conf.Positional[Path]
    """CSV file with the columns arm, game, seed, frames, return."""
    out: Path
    """Folder to write it to; 'gramian study report' reads it from there."""
    rows: Rows = "episodes"
    """A row is a training episode, of which a score takes the last 100, or a point of a curve, a mean already."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Which study to export."""

    folder: tyro.conf.Positional[Path]
    """Of a study, of its parts, of a population or of a run."""
    out: Path
    """Folder to write to, new or empty; 'gramian study report' reads it from there."""


def report_command(options: ReportOptions) -> int:
    """Write the report of a study: a page, figures and tables."""
    chosen = Options(
        human=options.human,
        baseline=options.baseline,
        replicates=options.replicates,
        seed=options.seed,
        title=options.title,
        frames=options.frames,
        control=options.control,
    )
    page = build(options.folder, options.out, chosen, analysis_folder=options.analysis, small=options.small, warn=_warn)
    print(f"report in {page}", file=sys.stderr)
    return 0


def _warn(line: str) -> None:
    print(f"gramian: {line}", file=sys.stderr)


def import_command(options: ImportOptions) -> int:
    """Import a tidy table of somebody else, so that it can be reported like a study."""
    study = write_import(options.table, options.out, rows=options.rows)
    print(f"{study.runs.height:,} runs, {study.episodes.height:,} rows in {options.out}", file=sys.stderr)
    repeated = study.episodes.height - study.episodes.unique().height
    if repeated:  # games that are played side by side may end at the same frame with the same return
        print(f"{repeated:,} rows repeat another one; each counts as an episode of its own", file=sys.stderr)
    return 0


def export_command(options: ExportOptions) -> int:
    """Write what a report reads of a study, its tables and its analysis, as a small folder without weights."""
    study = write_export(options.folder, options.out)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    counts = f"{study.runs.height:,} runs, {study.episodes.height:,} episodes"
    print(f"{counts} in {options.out}: {size / 1e6:.1f} MB", file=sys.stderr)
    return 0


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """Which parts of a study to put together."""

    parts: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="PART [PART …]")]
    """Folders of the parts of one study, or exports of them."""
    out: Path
    """Folder to write to, new or empty; 'gramian study status' says what is missing in it."""


def merge_command(options: MergeOptions) -> int:
    """Put the exported parts of a study into one folder; of a run made twice the one that is done is kept."""
    if not options.parts:
        raise UserError("no part to merge; name at least one folder")
    print(f"{merge_exports(options.parts, options.out):,} runs in {options.out}", file=sys.stderr)
    return 0
