"""What befalls a new user, in real processes: each works, or says in one line what to do."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.demos import start_demo, tiny_sizes
from tests.study.studies import environment, tiny

pytestmark = pytest.mark.slow

TRAIN = ("train", "--game", "cartpole", "--arm", "gram:0.01", "--preset", "tiny", "--device", "cpu")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
BARE_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def gramian(*arguments, cwd=None, **variables):
    return subprocess.run(
        [sys.executable, "-m", "gramian", *map(str, arguments)],
        env=environment() | variables,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )


def on_terminal(*arguments, columns=80, **variables):
    """Exit code and everything that a terminal of so many columns is sent."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", *map(str, arguments)],
        env={name: value for name, value in environment().items() if name not in ("COLUMNS", "NO_COLOR")}
        | {"TERM": "xterm-256color"}
        | variables,
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    sent = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        sent += part
    os.close(leader)
    return process.wait(), sent.decode("utf-8")


def only_line(done):
    """The one line that a command said, without a word on standard output."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_wrong_game_name_gets_the_right_one(tmp_path):
    done = gramian("train", "--game", "Brekout", "--arm", "gram", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert only_line(done) == "gramian: unknown game 'Brekout'; did you mean 'breakout'?"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("missing", "command"), [("tyro", "train"), ("polars", "demo"), ("numba", "regression"), ("numba", "train")]
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(missing, command, tmp_path):
    rest = {"train": ["--game", "minatar/breakout", "--arm", "dqn"]}.get(command, [])
    script = (
        f"import sys; sys.modules[{missing!r}] = None; from gramian.cli import main; "
        f"sys.exit(main({[command, *rest, '--out', str(tmp_path / 'out')]!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert only_line(done) == (
        f"gramian: '{command}' needs the package '{missing}', which is not installed; "
        "it comes with: pip install 'gramian[lab]'"
    )
    assert not (tmp_path / "out").exists()


@pytest.fixture
def read_only(tmp_path):
    """A folder that nobody can write to, root neither."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        yield tmp_path
        tmp_path.chmod(0o700)
    elif Path("/proc/self").is_dir():
        yield Path("/proc")
    else:
        pytest.skip("root can write everywhere here")


@pytest.mark.parametrize("command", [("demo",), ("regression",), TRAIN, ("study", "run", "smoke", "--rate", "1")])
def test_a_folder_that_cannot_be_written_is_said_before_any_work(command, read_only):
    done = gramian(*command, "--out", read_only / "new folder")
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("gramian: cannot write to folder")
    assert line.endswith("name a folder that you can write to")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [(), ("doctor",), ("train", "--help"), TRAIN])
def test_a_terminal_of_80_columns_is_enough(command, tmp_path):
    out = ("--out", tmp_path / "run") if command == TRAIN else ()
    code, sent = on_terminal(*command, *out)
    assert code == 0
    lines = [line for text in ESCAPE.sub("", sent).splitlines() for line in text.split("\r")]
    # a sentence may wrap, a table may not; and a path is as long as it is
    said = [line for line in lines if str(tmp_path) not in line and not line.startswith("memory on")]
    assert [line for line in said if len(line) > 80] == []


def test_no_color_is_respected(tmp_path):
    for variables in ({}, {"NO_COLOR": "1"}):
        code, sent = on_terminal("train", "--help", **variables)
        assert code == 0
        assert bool(COLOUR.search(sent)) == (variables == {})
    code, sent = on_terminal(*TRAIN, "--out", tmp_path / "run", NO_COLOR="1")
    assert code == 0
    assert not COLOUR.search(sent)


def test_without_a_terminal_there_are_plain_lines(tmp_path):
    done = gramian(*TRAIN, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "300 of 300 frames (100%)" in done.stderr


def test_paths_may_have_spaces(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "my study.toml").write_text(tiny(seeds=1), encoding="utf-8")
    ran = gramian(
        "study", "run", "my study.toml", "--rate", "1000", "--device", "cpu", "--out", "runs of it", cwd=folder
    )
    assert ran.returncode == 0, ran.stderr
    reported = gramian("study", "report", "runs of it", "--replicates", "100", "--out", "the report", cwd=folder)
    assert reported.returncode == 0, reported.stderr
    assert (folder / "the report" / "index.html").exists()


@pytest.mark.parametrize("variables", [BARE_C, {"LC_ALL": "tr_TR.UTF-8"}, {"LC_ALL": "C.UTF-8"}])
def test_other_locales_train_and_explain_themselves(variables, tmp_path):
    trained = gramian(*TRAIN, "--out", tmp_path / "run", **variables)
    assert trained.returncode == 0, trained.stderr
    listed = gramian("runs", tmp_path / "run", **variables)
    assert listed.returncode == 0, listed.stderr
    assert gramian("--help", **variables).returncode == 0
    assert gramian("mountain-car", "--help", **variables).returncode == 0


def test_a_locale_without_greek_gets_every_number_of_the_demo(tmp_path):
    process = start_demo(tmp_path / "demo", tiny_sizes(tmp_path), **BARE_C)
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "plain at ?·d minus" in out or "plain at ??d minus" in out
    assert "“Within noise”" in (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")
