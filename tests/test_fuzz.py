"""Random command lines, study files and damaged folders: each ends with an exit code, and none with a traceback."""

import os
import random
import resource
import shutil
import signal
import sys
import traceback
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from gramian.cli import COMMANDS, load, main

pytestmark = pytest.mark.slow

SEED = 20260101
CASES = {"command lines": 1_000, "study files": 500, "damaged folders": 500}
INTERRUPT_S = 1.0
"""A case that takes longer is interrupted as by Ctrl-C."""
MORE_BYTES = 3 << 30
"""Address space that a case may take."""
STUDY = """title = "Tiny"
preset = "tiny"
games = ["cartpole"]
seeds = [0]
[[arms]]
kind = "dqn"
[[arms]]
kind = "gram"
kappa = 0.1
label = "gram (a)"
[[arms]]
kind = "dqn"
learning_rates = [1e-3, 1e-2]
settings = { layer_norm = true }
[settings]
gamma = 0.9
"""
KEPT = """[evaluation]
games = ["minatar/freeway"]
seeds = [1]
"""
BEGINNINGS = {
    "regression": "--quick --runs 1 --steps 10 --out NEW",
    "mountain-car": "--quick --runs 1 --episodes 1 --most-steps 20 --out NEW",
    "theory": "--processes 1 --samples 100 --steps 100 --out NEW",
    "claims": "--out NEW",
    "train": "--game cartpole --preset tiny --out NEW",
    "evaluate": "RUN --episodes 1",
    "completion": "bash",
    "bench": "minatar/breakout --seconds 0.05 --runs 1",
    "runs": "RUNS",
    "analyze": "RUN --states 20 --out NEW",
    "study plan": "TOML --rate 1000",
    "study status": "STUDY",
    "study report": "EXPORT --replicates 20 --out NEW",
    "study import": "CSV --out NEW",
    "study export": "STUDY --out NEW",
    "study match": "STUDY --arm gram:0.1",
    "study choose": "STUDY --out NEW",
}
"""Commands that end soon as they stand; the words in capitals are places."""
READERS = {
    "run": [
        "runs FOLDER",
        "train --resume FOLDER",
        "evaluate FOLDER/ANY --episodes 1",
        "analyze FOLDER/ANY --states 20",
    ],
    "study": ["study status FOLDER", "study export FOLDER --out NEW", "study report FOLDER --replicates 20 --out NEW"],
    "export": ["study report FOLDER --replicates 20 --out NEW", "study match FOLDER --arm gram:0.1", "runs FOLDER"],
}
"""Commands that read a folder of each kind."""
VALUES = (
    *("", " ", "-", "--", "-1", "0", "1", "2", "nan", "inf", "-inf", "1e400", "1e-400", "0x10", "1_000", "9" * 30),
    *("None", "True", "[]", "{}", "x" * 300, "é∞", "a\0b", "\udcff", "../..", "/dev/null", "/proc/self/mem", "no/such"),
    *("RUN", "RUNS", "STUDY", "EXPORT", "TOML", "CSV", "LOOP", "NEW", "BINARY", "cartpole", "gram", "gram:nan", "auto"),
    *("gym:Acrobot-v1", "gym:Nope-v0", "gym:", "gym:no.module:X"),
)
SPLINTERS = (
    *(b"", b"\0", b"\xff\xfe", b"\n", b",", b"[", b"]", b'"', b"=", b"nan", b"-1", b"1e400", b"9" * 40, b"null", b"{}"),
    *(b"true", b"../../x", b"x" * 300, "é".encode(), b"3.5"),
)
"""What is put into a file."""


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A run, a study, an export and other places, which no case changes."""
    root = tmp_path_factory.mktemp("places")
    (root / "tiny.toml").write_text(STUDY)
    (root / "theirs.csv").write_text("arm,game,seed,frames,return\ndqn,Pong,0,4000,-20\nours,Pong,0,4000,-19\n")
    (root / "binary").write_bytes(bytes(range(256)))
    (root / "loop").symlink_to(root / "loop")
    arms = ["--arm", "dqn", "--arm", "gram:0.1"]
    assert main(["train", "--preset", "tiny", "--game", "cartpole", *arms, "--out", str(root / "run")]) == 0
    assert main(["study", "run", str(root / "tiny.toml"), "--rate", "1000", "--out", str(root / "study")]) == 0
    assert main(["study", "export", str(root / "study"), "--out", str(root / "export")]) == 0
    run = next(path.parent for path in (root / "run").rglob("config.toml"))
    folders = {"RUN": run, "RUNS": root / "run", "STUDY": root / "study", "EXPORT": root / "export"}
    files = {"TOML": root / "tiny.toml", "CSV": root / "theirs.csv", "BINARY": root / "binary", "LOOP": root / "loop"}
    return folders | files


def options_of(command):
    """Names of the options of a command."""
    if not (options := COMMANDS[command].options):
        return []
    return [f"--{field.name.replace('_', '-')}" for field in fields(load(options))]


def interrupted(_number, _frame):
    signal.raise_signal(signal.SIGINT)


def fault(arguments, capfd):
    """What is wrong about how a command ended, in words; empty where nothing is."""
    before = signal.signal(signal.SIGALRM, interrupted)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (taken + MORE_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, INTERRUPT_S)
    wrong = ""
    try:
        code = main(arguments)
        wrong = "" if code in (0, 1, 2, 130) else f"exit code {code}"
    except SystemExit as stop:
        wrong = "" if stop.code in (0, 1, 2, 130) else f"exit code {stop.code}"
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        wrong = f"{type(error).__name__}: {str(error)[:120]} ({Path(last.filename).name}:{last.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
    err = capfd.readouterr().err
    return wrong or ("it prints a traceback: " + err.splitlines()[-1][:160] if "Traceback" in err else "")


def command_line(rng, places, folder):
    """A command with one to three options that it may not like."""
    command = rng.choice([*BEGINNINGS])
    words = BEGINNINGS[command].split()
    if rng.random() < 0.2:
        words[rng.randrange(len(words))] = rng.choice(VALUES)
    for _ in range(rng.randint(1, 3)):
        words += [rng.choice(options_of(command)), *rng.choices(VALUES, k=rng.choice((0, 1, 1, 1, 2)))]
    return [*command.split(), *(str({"NEW": folder / "new", **places}.get(word, word)) for word in words)]


def spoilt(rng, data):
    """Some bytes cut off, replaced, put in, doubled, or their lines in another order."""
    at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 4, 20))
    lines = data.splitlines(keepends=True)
    match rng.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + rng.choice(SPLINTERS) + data[at + length :]
        case 2:
            return data[:at] + rng.choice(SPLINTERS) + data[at:]
        case 3:
            return data + data
        case 4 if lines:
            del lines[rng.randrange(len(lines))]
        case _:
            rng.shuffle(lines)
    return b"".join(lines)


def study_file(rng, _places, folder):
    """A plan of a study whose file is spoilt once or twice."""
    data = (STUDY + KEPT).encode()
    for _ in range(rng.randint(1, 2)):
        data = spoilt(rng, data)
    (folder / "study.toml").write_bytes(data)
    return ["study", "plan", str(folder / "study.toml"), "--rate", "1000"]


def damaged_folder(rng, places, folder):
    """A command that reads a folder in which one or two files are damaged, gone, or something else than files."""
    kind = rng.choice([*READERS])
    copy = folder / kind
    shutil.copytree(places[{"run": "RUNS", "study": "STUDY", "export": "EXPORT"}[kind]], copy)
    for path in rng.choices(sorted(path for path in copy.rglob("*") if path.is_file()), k=rng.randint(1, 2)):
        if not path.is_file():
            continue
        data = path.read_bytes()
        path.unlink()
        match rng.randrange(10):
            case 0:
                pass
            case 1:
                path.mkdir()
            case 2:
                path.symlink_to(path)
            case _:
                path.write_bytes(spoilt(rng, data))
    runs = sorted(path.name for path in copy.iterdir() if path.is_dir()) or ["nothing"]
    words = rng.choice(READERS[kind]).replace("ANY", rng.choice(runs)).split()
    return [word.replace("FOLDER", str(copy)).replace("NEW", str(folder / "new")) for word in words]


def test_a_fault_is_noticed(monkeypatch, capfd):
    def fails(arguments):
        if arguments == ["raise"]:
            raise ValueError("wrong")
        print("Traceback (most recent call last):\nOops", file=sys.stderr)
        return 7 if arguments else 0

    monkeypatch.setattr(sys.modules[__name__], "main", fails)
    assert fault(["raise"], capfd).startswith("ValueError: wrong (test_fuzz.py:")
    assert fault([], capfd) == "it prints a traceback: Oops"
    assert fault(["x"], capfd) == "exit code 7"


@pytest.mark.parametrize(
    ("kind", "make"),
    [("command lines", command_line), ("study files", study_file), ("damaged folders", damaged_folder)],
)
def test_nothing_ends_in_a_traceback(kind, make, places, tmp_path, monkeypatch, capfd):
    faults = []
    for case in range(CASES[kind]):
        folder = tmp_path / str(case)
        folder.mkdir()
        monkeypatch.chdir(folder)
        arguments = make(random.Random(f"{SEED} {kind} {case}"), places, folder)
        if wrong := fault(arguments, capfd):
            faults.append(f"{case}: {' '.join(arguments)[:200]!r}: {wrong}")
        monkeypatch.chdir(tmp_path)
        shutil.rmtree(folder, ignore_errors=True)
    if faults:
        pytest.fail(f"{len(faults)} of {CASES[kind]} {kind}:\n" + "\n".join(faults), pytrace=False)
