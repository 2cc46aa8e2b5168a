"""States of a run, as its ``status.json`` has them. Knows no learner."""

SETTLED = ("done", "diverged")
"""Those that no further training changes; a run has brought its logs to the disk before it says so."""
