"""The site as a reader has it: built strictly, opened from disk without a network, searched, and on a phone."""

import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("zensical")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SITE_PAGES = (
    "index",
    "findings",
    "minatar",
    "atari",
    "engine-check",
    "claims",
    "drop-in",
    "speed",
    "deviations",
    "linear",
    "penalties",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built pages; of a copy of the sources, so that nothing is written into the repository."""
    folder = tmp_path_factory.mktemp("site") / "copy"
    for name in ("docs", "src", "examples", "results"):
        ignored = shutil.ignore_patterns("__pycache__", "*.parquet", "*.csv")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_search_works_from_disk(site, browser):
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__button").click()
    page.keyboard.type("participation ratio", delay=20)
    page.get_by_text("participation_ratio").first.wait_for()
    page.close()


@pytest.mark.parametrize("name", SITE_PAGES)
def test_a_page_fits_a_phone(site, browser, name):
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()
