"""Studies: games × arms × seeds, packed into populations, run on this machine or on a Ray cluster."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramian.study.export import write_export
    from gramian.study.store import Study, import_csv, read_study, write_import

__all__ = ["Study", "import_csv", "read_study", "write_export", "write_import"]


def __getattr__(name: str) -> object:
    """The tables of a study are read by polars, which those that only run one do without."""
    if name not in __all__:
        raise AttributeError(f"module 'gramian.study' has no attribute {name!r}")
    module = "export" if name == "write_export" else "store"
    value = getattr(import_module(f"gramian.study.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
