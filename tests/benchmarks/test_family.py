"""What processes take together."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import family

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")]

# takes 64 MB, works for a while and starts a child that does the same; says so, and waits
GREEDY = """
import subprocess, sys, time
held = bytearray(b"x" * (64 << 20))
while time.process_time() < 0.3:
    pass
depth = int(sys.argv[1])
if depth:
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2], str(depth - 1), sys.argv[2]],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def greedy():
    command = [sys.executable, "-c", GREEDY, "1", GREEDY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.stdin.close()


def test_memory_and_time_of_processes_that_a_process_starts_are_counted(greedy):
    of_child = family.descendants(greedy.pid)
    assert len(of_child) == 1
    assert {family.PROC / str(greedy.pid), *of_child} <= set(family.descendants())
    greedy_bytes = 2 * (64 << 20)
    assert family.rss_bytes()[0] > greedy_bytes
    assert family.cpu_seconds()[1] >= 0.5


def test_processes_that_have_ended_are_not_counted(greedy):
    assert (before := family.rss_bytes()[0])
    greedy.communicate(b"\n")
    assert family.rss_bytes()[0] < before - 2 * (60 << 20)
