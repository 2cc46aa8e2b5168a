"""Real processes, really killed: what they leave behind resumes to the bytes of a run that was never touched."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.deep.sessions import fingerprint

pytestmark = pytest.mark.slow

KILLS = 10
GAMES = {
    "minatar/seaquest": ["--frames", "6_000", "--checkpoint-period-agent-steps", "500"],
    "breakout": ["--frames", "6_400", "--checkpoint-period-agent-steps", "200", "--prefill-agent-steps", "200"],
    "cartpole": ["--frames", "6_000", "--checkpoint-period-agent-steps", "500", "--prioritized", "--n-step", "3"],
}
"""Breakout has lives; both play sticky actions, and both games and episodes end and are truncated on the way."""


def command(*arguments):
    return [sys.executable, "-m", "gramian", "train", *arguments]


def begin(game, out):
    return command(
        *("--game", game, "--arm", "dqn", "--arm", "gram", "--seeds", "0", "--preset", "smoke", "--out", str(out)),
        *("--atari.sticky-probability", "0.25", "--atari.max-episode-frames", "1_000"),
        *("--metrics-period-agent-steps", "100", "--replay-capacity", "1_000", "--update-period-agent-steps", "16"),
        *("--target-period-agent-steps", "160", *GAMES[game]),
    )


@pytest.mark.parametrize("game", GAMES)
def test_ten_kills_at_random_moments_leave_no_trace(game, tmp_path):
    started = time.monotonic()
    subprocess.run(begin(game, tmp_path / "undisturbed"), check=True, capture_output=True)
    whole_s = time.monotonic() - started

    moments = random.Random(0)
    arguments = begin(game, tmp_path / "killed")
    kills = 0
    for _ in range(10 * KILLS):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if kills < KILLS:
            try:
                process.wait(timeout=moments.uniform(0.0, whole_s / 4))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
        complaint = process.communicate()[1]
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, complaint
        if (tmp_path / "killed" / "population.json").exists():
            arguments = command("--resume", str(tmp_path / "killed"))
    assert process.returncode == 0
    assert kills == KILLS
    assert fingerprint(tmp_path / "killed") == fingerprint(tmp_path / "undisturbed")
