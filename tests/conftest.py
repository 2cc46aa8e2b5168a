import os
import shutil
import signal
import tempfile


def pytest_configure(config):
    # A shell lets what it starts in the background ignore Ctrl-C, and a process that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Kernels are compiled once for all tests, and neither use nor change what the user has kept.
    if not hasattr(config, "workerinput"):
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="gramian-tests-")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)
