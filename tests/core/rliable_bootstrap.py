"""rliable's bootstrap, imported around the parts of `arch` that do not import beside a recent pandas.

rliable uses `arch.bootstrap` alone, but `import arch` loads its volatility models as well, which fail beside pandas 3.
"""

import importlib.util
import sys
import types


def rliable_library() -> types.ModuleType:
    try:
        import arch  # noqa: F401
    except TypeError:
        spec = importlib.util.find_spec("arch")
        assert spec is not None
        package = types.ModuleType("arch")
        package.__path__ = list(spec.submodule_search_locations or [])
        for name in [name for name in sys.modules if name.partition(".")[0] == "arch"]:
            del sys.modules[name]
        sys.modules["arch"] = package
    return importlib.import_module("rliable.library")
