"""The pages that a reader sees, and what stands in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTES = sorted((ROOT / "results").rglob("*.md"))
"""Beside the tables; their commands name no folder of the reader's."""
PROGRAMS = ("gramian", "make", "python", "pip", "ray", "zensical", "pytest")


def name(page):
    return str(page.relative_to(ROOT))


def blocks(text, *languages):
    """Fenced blocks of code in one of the languages."""
    return [
        code for language, code in re.findall(r"```(\w*)[^\n]*\n(.*?)```", text, re.DOTALL) if language in languages
    ]


def shell_lines(text):
    """Commands in the blocks of shell: without prompt, comment and alignment, continued lines in one."""
    lines = [
        line for block in blocks(text, "bash", "console", "sh") for line in block.replace("\\\n", " ").splitlines()
    ]
    return [tidy(line) for line in lines if tidy(line)]


def inline_commands(text):
    """Commands in the running text that have arguments or options."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [tidy(line) for line in re.findall(r"`([^`\n]+)`", prose) if line.split()[0] in PROGRAMS and " " in line]


def commands(text):
    return [*shell_lines(text), *inline_commands(text)]


def tidy(line):
    return " ".join(re.sub(r"\s+# .*|^\s*#.*", "", line).removeprefix("$ ").split())
