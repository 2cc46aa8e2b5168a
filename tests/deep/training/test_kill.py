"""Real processes, really killed: what they leave behind resumes to the bytes of a run that was never touched."""

import random

import pytest

from benchmarks.kills import CASES, attempt

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES)
def test_kills_at_random_moments_leave_no_trace(case, tmp_path):
    moments, kills = random.Random(0), 0
    for number in range(3):  # where the first run compiles kernels, no kill may hit the shorter second one
        outcome = attempt(case, 3, tmp_path / str(number), moments, "--frames", "2_500")
        assert (outcome.files, outcome.differing_bytes) == (11, 0)
        kills += outcome.kills
        if kills:
            break
    assert kills
