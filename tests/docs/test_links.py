"""Links lead somewhere: those inside the repository to a file and a heading, those outside are well formed."""

import re
from urllib.parse import urlsplit

import pytest
import yaml

from tests.docs.pages import NOTES, PAGES, ROOT, name

LINK = re.compile(r"(?<!`)!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [*LINK.findall(text), *re.findall(r'(?:src|srcset)="([^"]+)"', text)]


def anchors(page):
    """Names of the headings of a page, as GitHub and mkdocs make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    given = re.findall(r"\{ #([\w-]+) \}", text)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {*given, *(re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings)}


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=name)
def test_links_inside_lead_to_a_file_and_a_heading(page):
    for link in links(page):
        target, _, anchor = link.partition("#")
        anchor = anchor.removeprefix("only-light").removeprefix("only-dark")  # marks of figures
        if "://" in link:
            continue
        # a table is shown on a page of docs, and its links are that page's
        folder = page.parent.parent if page.parent == ROOT / "docs" / "tables" else page.parent
        path = (folder / target).resolve() if target else page
        assert path.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert path.exists(), f"{name(page)} links to {link}"
        if anchor:
            assert anchor in anchors(path), f"{name(page)} links to {link}"


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=name)
def test_links_outside_are_well_formed(page):
    for link in [link for link in links(page) if "://" in link]:
        parts = urlsplit(link)
        assert parts.scheme == "https", link
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc), link


def test_every_page_is_in_the_navigation_or_said_to_be_out_of_it():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("!!python/name:", ""))
    listed = set(re.findall(r"[\w-]+\.md", f"{site['nav']} {site['not_in_nav']}"))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} == listed
