from collections.abc import Iterator

import pytest

from gramian.attach import inactive


@pytest.fixture(autouse=True)
def _only_this_test_s_penalties() -> Iterator[None]:
    """Penalties that other tests left behind are not warned about in this one."""
    inactive._WATCHES.clear()
    yield
    inactive._WATCHES.clear()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A warning of attach is an error, unless a test expects it."""
    for item in items:
        if item.path.parent.name == "attach":
            item.add_marker(pytest.mark.filterwarnings("error:gramian.attach"), append=False)
