"""Tables of TOML and JSON files as frozen dataclasses: unknown keys, missing keys and wrong types are refused."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gramian.core.errors import UserError, unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def from_table(kind: type[T], values: object, where: str, base: T | None = None) -> T:
    """The dataclass ``kind`` with the values of a table; a key that is left out has ``base``'s value, or the default.

    Fields are numbers, texts, tables, literals, tuples of one of them or unions. ``where`` names the table in
    complaints.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     names: tuple[str, ...] = ()
    >>> from_table(Point, {"x": 1, "names": ["a"]}, "the point")
    Point(x=1.0, names=('a',))
    >>> from_table(Point, {"names": "a"}, "the point")
    Traceback (most recent call last):
    ...
    gramian.core.errors.UserError: names in the point is 'a'; it must be a list of str, at least one
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{where} is {values!r}; it must be a table")
    hints, names = get_type_hints(kind), [entry.name for entry in fields(kind)]
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key not in names:
            raise unknown(f"key in {where}:", key, names)
        given[key] = _typed(hints[key], value, f"{key} in {where}", getattr(base, key, None))
    if base is not None:
        return replace(base, **given)
    for entry in fields(kind):
        if entry.name not in given and entry.default is MISSING and entry.default_factory is MISSING:
            raise UserError(f"{entry.name} is missing in {where}")
    return kind(**given)


def _typed(hint: Any, value: Any, where: str, current: Any = None) -> Any:
    accepted = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    accepted = tuple(option for option in accepted if option is not types.NoneType)  # the files know no null
    for option in accepted:
        if is_dataclass(option) and isinstance(option, type):
            return from_table(option, value, where, current)
        if get_origin(option) is Literal:
            if value not in get_args(option):
                raise unknown(f"{where}:", str(value), get_args(option))
            return value
        if get_origin(option) is dict:
            if not isinstance(value, Mapping):
                raise UserError(f"{where} is {value!r}; it must be a table")
            return dict(value)
        if get_origin(option) is tuple and isinstance(value, list) and value:
            return tuple(
                _typed(get_args(option)[0], item, f"entry {place} of {where}") for place, item in enumerate(value, 1)
            )
        if option is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and isinstance(value, option) and (option is bool or not isinstance(value, bool)):
            return value
    raise UserError(f"{where} is {value!r}; it must be {' or '.join(map(_described, accepted))}")


def _described(hint: Any) -> str:
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return "a list of " + ("tables" if is_dataclass(item) else item.__name__) + ", at least one"
    return f"of type {hint.__name__}"
