"""Waits until the batch has ended, or for so many seconds; prints how far each run is and copies the logs to $OUT.

Usage: poll.py SECONDS. Call it alone and again at once: a lent machine that stands idle is given back.
"""

import csv
import os
import subprocess
import sys
import time
from pathlib import Path

home, out = Path.home(), Path(os.environ["OUT"])
logs = home / "logs.tar.gz"
until = time.time() + float(sys.argv[1])
while time.time() < until and not logs.exists():
    time.sleep(1)

print(f"{time.time() - int((home / 'began').read_text()):.0f} s since the start")
total = 0
for path in sorted(home.glob("runs/*/*/populations/p*/*-s*/timing.csv")):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    steps = int(rows[-1]["agent_steps"]) if rows else 0
    total += steps
    print(f"{path.parent.name:<32}{steps:>10,} agent steps", flush=True)
print(f"{'together':<32}{total:>10,} agent steps")
if logs.exists():
    print("FINISHED")
    (out / logs.name).write_bytes(logs.read_bytes())
else:  # what there is so far: the logs of finished runs are complete
    files = ["began", "study.log", "runs"]
    subprocess.run(
        ["tar", "czf", str(out / "partial.tar.gz"), "--exclude=*.safetensors", *files], cwd=home, check=False
    )
