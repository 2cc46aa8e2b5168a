import signal


def pytest_configure():
    # A shell lets what it starts in the background ignore Ctrl-C, and a process that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
