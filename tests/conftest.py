import signal

from hypothesis import settings

# The same examples every time, so that a failure repeats. CI asks for more of them: --hypothesis-profile=thorough.
settings.register_profile("thorough", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=20)
settings.load_profile("quick")


def pytest_configure():
    # A shell lets what it starts in the background ignore Ctrl-C, and a process that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
