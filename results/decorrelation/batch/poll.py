"""Waits for NAME.tar.gz, or for so many seconds; prints how far the batch is and copies what there is to $OUT.

Usage: poll.py SECONDS STUDY NAME. Call it alone and again at once: a lent machine that stands idle is given back.
"""

import os
import sys
import time
from pathlib import Path

seconds, study, name = sys.argv[1:]
folder = Path.home() / "runs" / study
logs = folder / f"{name}.tar.gz"
until = time.time() + float(seconds)
while time.time() < until and not logs.exists():
    time.sleep(1)

steps = 0
for path in folder.glob(f"{name}/populations/p*/*/timing.csv"):
    lines = path.read_text().splitlines()
    whole = [line for line in lines if line.count(",") == lines[0].count(",")]
    steps += int(dict(zip(whole[0].split(","), whole[-1].split(","), strict=True))["agent_steps"]) if whole[1:] else 0
taken = time.time() - int((folder / f"{name}.began").read_text())
print(f"{name}: {steps:,} agent steps after {taken:.0f} s, {steps / taken:,.0f} a second since the start")
if logs.exists():
    print("FINISHED")
    (Path(os.environ["OUT"]) / logs.name).write_bytes(logs.read_bytes())
