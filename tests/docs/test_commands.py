"""Every command in README and docs is one that works: it is parsed here, and run in its quick form."""

import importlib
import itertools
import re
import shlex
import shutil
import subprocess
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import torch

from gramian.cli import COMMANDS, main, parse
from tests.docs.pages import PAGES, ROOT, blocks, commands, name, shell_lines

REGISTRY = tomllib.loads((Path(__file__).parent / "commands.toml").read_text(encoding="utf-8"))
STORIES = REGISTRY["stories"]
QUICK = {command["page"]: command["quick"] for story in STORIES.values() for command in story["commands"]}
COVERED = {command["page"]: command["test"] for command in REGISTRY["covered"]}
FOREIGN = ("pip install ", "ray start ")
"""Not ours to test."""
FOUND = {line: name(page) for page in PAGES for line in commands(page.read_text(encoding="utf-8"))}
SHOWN = {line for page in PAGES for line in shell_lines(page.read_text(encoding="utf-8"))}


def gramian_command(words):
    """The longest name of a command that the words begin with, and its arguments; no name where there is none."""
    for length in (2, 1):
        if " ".join(words[:length]) in COMMANDS:
            return " ".join(words[:length]), words[length:]
    return "", words


def is_a_mere_mention(line):
    """A command named in the running text without anything to run: ``gramian train``, ``gramian --help``."""
    program, *words = shlex.split(line)
    if line in SHOWN:
        return False
    known, rest = gramian_command(words)
    is_group = len(words) == 1 and any(command.startswith(f"{words[0]} ") for command in COMMANDS)
    return program == "gramian" and (is_group or words == ["--help"] or (known and rest in ([], ["--help"])))


TO_RUN = [line for line in FOUND if not line.startswith(("make ", *FOREIGN)) and not is_a_mere_mention(line)]


@pytest.mark.parametrize("line", TO_RUN)
def test_every_command_in_the_pages_has_a_quick_form(line):
    assert line in QUICK or line in COVERED, (
        f"{FOUND[line]} has a command without a quick form in tests/docs/commands.toml"
    )


def test_no_quick_form_has_outlived_its_page():
    assert {*QUICK, *COVERED} <= set(FOUND)


def test_what_is_not_run_here_is_covered_by_a_test_that_is_there():
    assert all((ROOT / test).is_file() for test in COVERED.values())


@pytest.mark.parametrize("line", QUICK)
def test_a_quick_form_is_the_same_command_with_all_its_options(line):
    page, quick = shlex.split(line), shlex.split(QUICK[line])
    assert page[:2] == quick[:2]
    if page[0] == "gramian":
        assert gramian_command(page[1:])[0] == gramian_command(quick[1:])[0]
    assert {word for word in page if word.startswith("--")} <= {word for word in quick if word.startswith("--")}


@pytest.mark.parametrize(
    "line", [line for line in FOUND if line.startswith("gramian ") and not is_a_mere_mention(line)]
)
def test_every_option_in_the_pages_is_one_that_the_command_has(line):
    command, arguments = gramian_command(shlex.split(line)[1:])
    if COMMANDS[command].options:
        parse(command, arguments)
    else:
        assert not arguments


SELF_CONTAINED = [
    pytest.param(shell_lines(f"```bash\n{block}```"), id=f"{page}-{number}")
    for page in ("claims-details.md", "minatar.md", "atari.md")
    for number, block in enumerate(blocks((ROOT / "docs" / page).read_text(encoding="utf-8"), "bash"))
]
SHIPPED = {study.stem for study in (ROOT / "src" / "gramian" / "studies").glob("*.toml")}


@pytest.mark.parametrize("lines", SELF_CONTAINED)
def test_a_block_of_commands_reads_what_the_repository_has_or_an_earlier_one_of_its_lines_makes(lines):
    made = set()
    for line in (line for line in lines if line.startswith("gramian ")):
        command, arguments = gramian_command(shlex.split(line)[1:])
        for word in itertools.takewhile(lambda word: not word.startswith("--"), arguments):
            parts = word.split("/")
            is_made = any(fnmatchcase(folder, "/".join(parts[: folder.count("/") + 1])) for folder in made)
            is_made |= any(folder.startswith(f"{word}/") for folder in made)
            is_there = (ROOT / word).exists() or (command == "study run" and word in SHIPPED)
            assert is_made or is_there, line
        made |= {arguments[i + 1] for i, word in enumerate(arguments) if word == "--out"}


@pytest.mark.parametrize("lines", SELF_CONTAINED)
def test_no_command_of_a_block_writes_over_what_another_has_written(lines):
    outs = [re.findall(r"--(?:out|csv) (\S+)", line) for line in lines]
    written = [out for found in outs for out in found]
    assert len(written) == len(set(written))


@pytest.mark.parametrize("line", [line for line in FOUND if line.startswith("make ")])
def test_every_target_in_the_pages_is_in_the_makefile(line):
    if shutil.which("make") is None:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert line.split()[1] in targets
    else:
        subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def run(line):
    """Run a quick form in this process."""
    program, *words = shlex.split(line)
    if program == "gramian":
        arguments = [
            path for word in words for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        assert main(arguments) == 0, line
    else:
        assert words[0] == "-m"
        assert importlib.import_module(words[1]).main(words[2:]) == 0, line


@pytest.fixture
def torch_as_before():
    """Threads and precision of products, which commands set."""
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.mark.usefixtures("torch_as_before")
@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_the_quick_forms_run(story, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file, content in STORIES[story].get("files", {}).items():
        Path(file).write_text(content, encoding="utf-8")
    quick = dict.fromkeys(command["quick"] for command in STORIES[story]["commands"])
    for line in (*STORIES[story].get("before", []), *quick):
        run(line)
