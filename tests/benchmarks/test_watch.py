"""What is seen of studies while they run."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks import watch
from benchmarks.watch import Ticks
from gramian.core.errors import WorkFailed
from gramian.study.attempts import lock, record
from tests.study.studies import environment, start, tiny

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")]

PATIENCE_S = 120.0


def write_log(study, population, run, text):
    folder = study / "populations" / population / run
    folder.mkdir(parents=True)
    (folder / "timing.csv").write_text("agent_steps,seconds,agent_steps_per_second\n" + text)


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def until(true):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_last_whole_rows_of_all_runs_are_counted(tmp_path):
    write_log(tmp_path / "a", "p000", "pong-dqn-s0", "10000,1.0,2.0\n20000,2.0,2.0\n")
    write_log(tmp_path / "a", "p000", "pong-dqn-s1", "10000,1.0,2.0\n2000")  # is being written
    write_log(tmp_path / "a", "p001", "pong-gram-s0", "")
    write_log(tmp_path / "b", "p000", "pong-gram-s1", "".join(f"{step},1.0,2.0\n" for step in range(0, 5001, 5)))
    write_log(tmp_path / ".export-1", "p000", "pong-gram-s1", "7,1.0,2.0\n")
    assert watch.logged_agent_steps([tmp_path]) == 20_000 + 10_000 + 5_000
    assert watch.logged_agent_steps([tmp_path / "a"]) == 30_000
    assert watch.logged_agent_steps([tmp_path, tmp_path / "a", tmp_path]) == 35_000


def test_shares_of_the_cores_are_those_between_two_readings(tmp_path):
    (tmp_path / "stat").write_text("cpu  10 20 30 1000 100 4 6 8 3 2\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert watch.ticks(tmp_path / "stat") == Ticks(busy=70, stolen=8, total=1178)
    assert watch.ticks().busy > 0


def test_a_process_is_at_work_while_it_holds_a_lock(tmp_path):
    assert watch.holders([tmp_path]) == set()
    with lock(tmp_path / "part", "p000"):
        record(tmp_path / "part", "p000", "started")
        assert watch.holders([tmp_path]) == {os.getpid()}
        assert watch.holders([tmp_path, tmp_path / "part"]) == {os.getpid()}
        with lock(tmp_path / "part", "p000") as second:
            assert not second  # and the look at it did not give it back
    assert watch.holders([tmp_path]) == set()


@pytest.mark.parametrize(("host", "event"), [("elsewhere", "started"), (None, "finished")])
def test_who_works_elsewhere_or_has_finished_is_not_at_work_here(tmp_path, monkeypatch, host, event):
    with lock(tmp_path, "p000"):
        with monkeypatch.context() as patch:
            if host:
                patch.setattr("socket.gethostname", lambda: host)
            record(tmp_path, "p000", event)
        assert watch.holders([tmp_path]) == set()


@pytest.fixture
def called_like_training(tmp_path):
    """A process that waits, under the command line of ``gramian train``."""
    (tmp_path / "gramian").write_text("import sys; print(flush=True); sys.stdin.read()")
    command = [sys.executable, "gramian", "train", "--game", "pong", "--out=runs/first"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.send_signal(signal.SIGCONT)
        process.stdin.close()


def test_training_is_found_by_the_folder_that_it_names(tmp_path, called_like_training):
    for name in ("runs/first", "runs"):
        assert watch.trainers([tmp_path / name]) == {called_like_training.pid}
    assert watch.trainers([tmp_path / "runs" / "second"]) == set()
    processes, *_, rss_bytes, _ = watch.sample([tmp_path / "runs"])
    assert processes == 1
    assert rss_bytes > 1e6


def test_a_launcher_with_the_same_words_is_not_a_second_process_at_work(tmp_path):
    (tmp_path / "gramian").write_text(
        "import subprocess, sys\n"
        "if sys.argv[-1] == 'outer': subprocess.run([sys.executable, *sys.argv[:-1]])\n"
        "else: print(flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "gramian", "train", "--out=runs/first", "outer"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        (inner,) = watch.trainers([tmp_path / "runs"])
        assert [place.name for place in watch.descendants(process.pid)] == [str(inner)]
        assert {place.name for place in watch.family(inner)} == {str(process.pid), str(inner)}
        process.stdin.close()


def test_a_stopped_process_is_not_at_work_and_has_its_memory(tmp_path, called_like_training):
    called_like_training.send_signal(signal.SIGSTOP)
    until(lambda: watch.is_stopped(called_like_training.pid))
    processes, *_, rss_bytes, _ = watch.sample([tmp_path / "runs"])
    assert processes == 0
    assert rss_bytes > 1e6


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo '90, 1000'; echo '50, 24'", (0.7, 1024 << 20)),
        ("echo '[N/A], 1000'", (0.0, 0)),
        ("exit 9", (0.0, 0)),
        ("true", (0.0, 0)),
    ],
)
def test_the_gpus_are_asked_where_they_can_be(tmp_path, monkeypatch, script, found):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert watch.gpu() == pytest.approx(found)


def test_rows_come_until_it_is_told_to_stop(tmp_path, monkeypatch):
    write_log(tmp_path / "study", "p000", "pong-dqn-s0", "10000,1.0,2.0\n")
    stopped, sample, seen = threading.Event(), watch.sample, []

    def sampled(folders):
        seen.append(rows_of(tmp_path / "x.csv"))  # what is there in the middle of the work
        if len(seen) == 3:
            stopped.set()
        return sample(folders)

    monkeypatch.setattr(watch, "sample", sampled)
    assert watch.watch([tmp_path / "study"], tmp_path / "x.csv", 0.05, stopped) == 3
    assert [len(rows) for rows in seen] == [0, 1, 2]
    rows = rows_of(tmp_path / "x.csv")
    assert len(rows) == 3
    assert tuple(rows[0]) == watch.COLUMNS
    assert {(row["processes"], row["agent_steps"], row["rss_bytes"]) for row in rows} == {("0", "10000", "0")}


def test_the_columns_are_those_of_the_tables_in_the_repository():
    table = Path(watch.__file__).parents[1] / "results" / "speed" / "parts-h200.csv"
    assert tuple(table.read_text().splitlines()[0].split(",")) == watch.COLUMNS


def test_a_row_for_which_there_is_no_room_is_taken_back(tmp_path):
    class Small:
        """Takes ten bytes more."""

        def __init__(self, path):
            self._file, self.name = path.open("ab", buffering=0), path.name
            self.seek, self.truncate = self._file.seek, self._file.truncate

        def write(self, line):
            return self._file.write(line[:10])

    (tmp_path / "x.csv").write_text("a,b\n")
    with pytest.raises(WorkFailed, match=r"cannot write 'x.csv' any further: no space left on device"):
        watch._append(Small(tmp_path / "x.csv"), ("long", "longer", "longest"))
    assert (tmp_path / "x.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_study_is_watched_while_it_runs(tmp_path, number):
    spec, study, out = tmp_path / "long.toml", tmp_path / "study", tmp_path / "new" / "x.csv"
    spec.write_text(tiny(frames=50_000_000))
    study.mkdir()
    running = start("run", spec, "--out", study, "--rate", "1000", "--device", "cpu", "--population", "3")
    command = [sys.executable, "-m", "benchmarks.watch", str(study), "--out", str(out), "--every", "1"]
    watching = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: out.exists() and any(int(row["agent_steps"]) > 0 for row in rows_of(out)))
        watching.send_signal(number)
        said = watching.communicate(timeout=PATIENCE_S)[1]
    finally:
        watching.kill()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE_S)
    rows = rows_of(out)
    assert watching.returncode == 0
    assert said == f"benchmarks.watch: {len(rows)} row{'s'[: len(rows) > 1]} in '{out}'\n"
    assert int(rows[-1]["processes"]) in (1, 2)
    assert int(rows[-1]["rss_bytes"]) > 1e8
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("cores_busy", "cores_stolen", "gpu_busy"))
    assert watch.sample([study])[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "--out", "x.csv"], "there is no folder 'nowhere'"),
        (["file", "--out", "x.csv"], "there is no folder 'file'"),
        ([".", "--out", "file"], "'file' is there already; name a new file, or take it away"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert watch.main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmarks.watch: ")
    assert words in line
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["."], "the following arguments are required: --out"),
        (["--out", "x.csv"], "the following arguments are required: FOLDER"),
        ([".", "--out", "x.csv", "--nosuch", "3"], "unrecognized arguments: --nosuch 3"),
        ([".", "--out", "."], "argument --out: cannot write '.': it is a folder"),
        ([".", "--out", "x.csv", "--every", "0"], "argument --every: it is 0; give a whole number from 1 to 3,600"),
    ],
)
def test_what_the_command_line_lacks_is_one_line(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        watch.main(arguments)
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("benchmarks.watch: ")
    assert words in line
