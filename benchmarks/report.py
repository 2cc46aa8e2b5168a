"""How long the report of a study of the paper's size takes, how large its page is and how fast it opens.

The study is made up (`benchmarks.synthetic_study`): 49 games × 3 arms × 3 seeds, with an analysis of its features.
"Opens" is the time from the navigation to a page whose script has run and whose first figure is drawn, in chromium,
from the disk.

Run with ``python -m benchmarks.report [--games 49] [--rounds 3] [--keep FOLDER]``.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.command_line import Parser, exit_code, new_folder, whole
from benchmarks.synthetic_study import write_analysis, write_study
from gramian.report.analysis import Options, analyse
from gramian.report.features import dynamics, feature_table, growths, read_representation
from gramian.report.figures import draw_figures
from gramian.report.page import Page
from gramian.report.tables import score_table
from gramian.study.store import read_study

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


def opening_seconds(page: Path, rounds: int) -> float:
    """Median time to open the page, each time in a new browser context."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for _ in range(rounds):
            context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
            tab = context.new_page()
            begin = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            tab.wait_for_selector("#game-figure .main-svg", state="attached")
            times.append(time.perf_counter() - begin)
            context.close()
        browser.close()
    return statistics.median(times)


def measured(arguments: Sequence[str] | None) -> None:
    """Print the table."""
    parser = Parser("report", __doc__)
    parser.add_argument("--games", type=whole(1, 49), default=49, help="of the paper's 49")
    parser.add_argument(
        "--rounds", type=whole(1, 1000), default=3, help="times the page is opened; the median is printed"
    )
    parser.add_argument("--keep", type=new_folder, help="new folder to keep the study and its report in")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        generator = np.random.default_rng(0)
        write_study(folder / "study", games=options.games, episodes=5_000, metric_rows=500, generator=generator)
        write_analysis(folder / "analysis", games=options.games, generator=generator)
        marks = [time.perf_counter()]
        study = read_study(folder / "study")
        marks.append(time.perf_counter())
        analysis = analyse(study, Options())
        marks.append(time.perf_counter())
        features = dynamics(study, dict(zip(analysis.games, analysis.horizon.tolist(), strict=True)))
        cells = set(study.runs.select("game", "arm").iter_rows())
        trained = read_representation(folder / "analysis", cells)
        grown = growths(feature_table(study))
        page_of = Page("Made-up runs", study, analysis, features, score_table(analysis), grown, trained)
        text = page_of.html()
        marks.append(time.perf_counter())
        draw_figures(analysis, features, folder / "report" / "figures")
        marks.append(time.perf_counter())
        page = folder / "report" / "index.html"
        page.write_text(text, encoding="utf-8")
        for name, seconds in zip(("read", "statistics", "page", "figures"), np.diff(marks), strict=True):
            print(f"{name:12}{seconds:8.1f} s")
        print(f"{'page size':12}{page.stat().st_size / 1e6:8.1f} MB   limit 15 MB")
        print(f"{'page opens':12}{opening_seconds(page, options.rounds):8.1f} s    limit 3 s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("report", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
