"""Small studies, and what makes two of them the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

from gramian.study.manifest import PART, POPULATIONS
from gramian.study.plan import make_plan, read_plan, write_plan
from gramian.study.spec import parse_study, part_options
from gramian.study.status import attempts
from tests.deep.sessions import fingerprint

ARMS = '[[arms]]\nkind = "dqn"\n[[arms]]\nkind = "decor"\n[[arms]]\nkind = "gram"\n'


def tiny(seeds=2, frames=300, extra="", arms=ARMS):
    """The text of a study of 3 × ``seeds`` cells of CartPole."""
    return (
        f'title = "Tiny"\npreset = "tiny"\nframes = {frames}\ngames = ["cartpole"]\nseeds = {list(range(seeds))}\n'
        f"{arms}{extra}"
    )


HEADER = "frames,environment,episode,raw_return,clipped_return,length_agent_steps,truncated\n"


def make_run(
    folder: Path, *, game="pong", arm="gram:10.24", seed=1, extra="", settings="frames = 8000",
    episodes=HEADER, metrics=None, status=None,
) -> Path:  # fmt: skip
    """The folder of a run, with the logs that are given."""
    folder.mkdir(parents=True)
    config = f'game = "{game}"\narm = "{arm}"\nseed = {seed}\n{extra}preset = "author"\n[settings]\n{settings}\n'
    (folder / "config.toml").write_text(config)
    logs = {
        "episodes.csv": episodes,
        "metrics.csv": metrics,
        "status.json": None if status is None else json.dumps(status),
    }
    for name, text in logs.items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


def plan_of(spec, **choices):
    return make_plan(spec, **({"largest": 9, "device": "cpu", "torch_threads": 1, "checkpoint_replay": True} | choices))


def planned(folder, text=None, largest=3):
    """A study's folder with its plan."""
    text = tiny() if text is None else text
    plan = plan_of(parse_study(text, "a test"), largest=largest)
    write_plan(folder, plan, text)
    return plan


def planned_part(folder, text, seeds=(), games=(), largest=3):
    """The folder of a part of a study, as ``gramian study run --seeds --games`` makes it."""
    whole = parse_study(text, "a test")
    part = whole.part(list(games), list(seeds))
    plan = plan_of(part, largest=largest)
    write_plan(folder, plan, f"{PART}{part_options(part, whole)}\n{text}")
    return plan


def environment():
    """Workers import what this process imports."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OMP_NUM_THREADS": "1"}


HANG = """
import contextlib, ctypes, pathlib, subprocess, sys, threading

if "worker" in " ".join(sys.orig_argv):  # ours or Ray's, and none of Ray's other processes
    from gramian.deep.training.trainer import Trainer
    from gramian.study import worker

    once = pathlib.Path({once!r})
    start, step, watched, begin = worker._free_memory, Trainer.step, worker.watched, []

    @contextlib.contextmanager
    def watched_later(*arguments):
        with contextlib.ExitStack() as stack:
            begin.append(lambda: stack.enter_context(watched(*arguments)))
            yield lambda: None

    def hang():
        if once.exists():
            return
        child = subprocess.Popen(["sleep", "1000"])
        once.with_suffix(".made").write_text(str(child.pid))
        once.with_suffix(".made").rename(once)
        if begin:
            begin[-1]()
        {wait}

    def starting(device):
        hang()
        return start(device)

    def stepping(self):
        if self.agent_steps == {agent_steps}:
            hang()
        return step(self)

    if {agent_steps} is None:
        worker._free_memory = starting
    else:  # however slow the machine is, nothing but the hang lies within the limit
        Trainer.step, worker.watched = stepping, watched_later
"""
WAITS = {"python": "threading.Event().wait()", "without letting go of the lock": "ctypes.PyDLL(None).pause()"}
"""How to wait for ever: as Python does, and so that no other thread of Python runs either."""


def hang_once(folder, monkeypatch, agent_steps, wait="python"):
    """Let the first worker process that comes to a step, or starts, start a child and wait for ever.

    The file that is returned has the child's number. ``agent_steps`` is None for the start.
    """
    once = folder / "hung"
    (folder / "sitecustomize.py").write_text(HANG.format(once=str(once), agent_steps=agent_steps, wait=WAITS[wait]))
    monkeypatch.syspath_prepend(folder)
    return once


SLOW = """
import pathlib, sys, time

if "worker" in " ".join(sys.orig_argv):
    from gramian.deep.training.checkpoint import Checkpoints

    save = Checkpoints.save

    def saving(*arguments, **named):
        if pathlib.Path({slow!r}).exists():
            time.sleep({seconds})
        return save(*arguments, **named)

    Checkpoints.save = saving
"""


def save_slowly(folder, monkeypatch, seconds):
    """Let worker processes take so long for a checkpoint while the file that is returned is there."""
    slow = folder / "slow"
    slow.touch()
    (folder / "sitecustomize.py").write_text(SLOW.format(slow=str(slow), seconds=seconds))
    monkeypatch.syspath_prepend(folder)
    return slow


def is_over(pid):
    """Whether a process has ended, also where nobody has asked for its exit code yet."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def start(*arguments):
    """Begin ``gramian study`` in a process of its own."""
    command = [sys.executable, "-m", "gramian", "study", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fingerprints(study):
    """Hashes of everything in a study that must be the same bytes, by population."""
    return {entry.id: fingerprint(study / POPULATIONS / entry.id) for entry in read_plan(study).populations}


def events(study, population):
    return [attempt.event for attempt in attempts(study, population)]


def assert_every_cell_done_exactly_once(study):
    """No cell is missing, and each population was finished by one process, after which none took it up again."""
    plan = read_plan(study)
    for population in plan.populations:
        past = events(study, population.id)
        assert past.count("finished") == 1
        assert (past[0], past[-1]) == ("started", "finished")
        folders = {path.parent.name: path.parent for path in study.glob(f"populations/{population.id}/*/status.json")}
        assert folders.keys() == {run.name for run in population.runs}
        for folder in folders.values():
            assert json.loads((folder / "status.json").read_text())["state"] == "done"
            assert len(json.loads((folder / "provenance.json").read_text())) <= past.count("started")
    return plan
