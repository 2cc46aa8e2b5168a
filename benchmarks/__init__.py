"""Measurements whose tables stand in the documentation. Each prints ratios taken side by side, in one run."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler announces each start and stop otherwise
