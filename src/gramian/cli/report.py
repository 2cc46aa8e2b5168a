"""``gramian study report``, ``import``, ``export`` and ``merge``."""

import sys

from gramian.cli.options import ExportOptions, ImportOptions, MergeOptions, ReportOptions
from gramian.core.errors import UserError
from gramian.report.analysis import Options
from gramian.report.build import build
from gramian.study.export import merge_exports, write_export
from gramian.study.store import write_import


def report_command(options: ReportOptions) -> int:
    """See `ReportOptions`."""
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
    """See `ImportOptions`."""
    study = write_import(options.table, options.out, rows=options.rows)
    print(f"{study.runs.height:,} runs, {study.episodes.height:,} rows in {options.out}", file=sys.stderr)
    repeated = study.episodes.height - study.episodes.unique().height
    if repeated:  # games that are played side by side may end at the same frame with the same return
        print(f"{repeated:,} rows repeat another one; each counts as an episode of its own", file=sys.stderr)
    return 0


def export_command(options: ExportOptions) -> int:
    """See `ExportOptions`."""
    study = write_export(options.folder, options.out)
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    counts = f"{study.runs.height:,} runs, {study.episodes.height:,} episodes"
    print(f"{counts} in {options.out}: {size / 1e6:.1f} MB", file=sys.stderr)
    return 0


def merge_command(options: MergeOptions) -> int:
    """See `MergeOptions`."""
    if not options.parts:
        raise UserError("no part to merge; name at least one folder")
    print(f"{merge_exports(options.parts, options.out):,} runs in {options.out}", file=sys.stderr)
    return 0
