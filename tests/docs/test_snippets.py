"""What a page includes from a file is there, and is included rather than shown as it is written."""

import html
import re

import pytest

from tests.docs.pages import PAGES, ROOT, name

SNIPPET = re.compile(r'^--8<-- "([^":]+)(?::(\d+))?"$', flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_snippet_is_written_as_mkdocs_reads_it_and_names_a_file(page):
    text = page.read_text(encoding="utf-8")
    markers = [line for line in text.splitlines() if re.match(r"\s*-+\s*8\s*<", line)]
    found = SNIPPET.findall(text)
    assert len(found) == len(markers), markers
    for path, _ in found:
        assert (ROOT / path).is_file(), f"{name(page)} includes {path}"


def test_the_page_on_the_monitor_shows_its_recipe():
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("pymdownx")
    page = (ROOT / "docs" / "monitor.md").read_text(encoding="utf-8")
    extensions = ["pymdownx.superfences", "pymdownx.snippets"]
    options = {"pymdownx.snippets": {"base_path": [str(ROOT)], "check_paths": True}}
    shown = markdown.markdown(page, extensions=extensions, extension_configs=options)
    recipe = (ROOT / "docs" / "recipes" / "monitor" / "probe_sb3.py").read_text(encoding="utf-8")
    assert recipe.strip() in html.unescape(re.sub(r"<[^>]+>", "", shown))
