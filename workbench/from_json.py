"""What somebody else may have written as JSON, taken for what it says only where every value is what it has to be."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_INT64 = 2**63
_SHOWN = 60
Made = TypeVar("Made")


def parsed(text: str | bytes) -> Any:
    """The value that a JSON text says.

    Raises:
        ValueError: it is none, or nested too deeply to be one of ours.

    Example:
        >>> parsed(b'{"n": [1]}')
        {'n': [1]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def made(kind: type[Made], value: object, name: str = "it") -> Made:
    """`value`, which JSON said, as an instance of `kind`: dataclasses in dataclasses, tuples instead of lists.

    Fields with a default may be missing. Whole numbers have at most 64 bits.

    Raises:
        ValueError: it is something else, says which part of it and what it is.

    Example:
        >>> made(tuple[int, ...], [1, 2])
        (1, 2)
        >>> made(tuple[int, ...], [1, "2"])
        Traceback (most recent call last):
        ...
        ValueError: it[1] is '2', where an int belongs
    """
    return cast(Made, _made(kind, value, name))


def _made(kind: Any, value: object, name: str) -> object:
    if is_dataclass(kind) and isinstance(kind, type):
        return _object(kind, _as(dict, value, name), name)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        items = _as(list, value, name)
        kinds = arguments[:1] * len(items) if Ellipsis in arguments else arguments
        if len(items) != len(kinds):
            raise ValueError(f"{name} has {len(items)} parts instead of {len(kinds)}")
        return tuple(
            _made(part, item, f"{name}[{at}]") for at, (part, item) in enumerate(zip(kinds, items, strict=True))
        )
    if origin in (dict, Mapping):
        return {_as(str, key, name): _made(arguments[1], item, name) for key, item in _as(dict, value, name).items()}
    if origin in (Union, types.UnionType):
        fits = next((part for part in arguments if _fits(part, value)), arguments[0])
        return None if value is None and fits is types.NoneType else _made(fits, value, name)
    return _as(kind, value, name)


def _fits(part: Any, value: object) -> bool:
    return type(value) is (dict if is_dataclass(part) else get_origin(part) or part)


def _object(kind: type, value: Mapping[str, object], name: str) -> object:
    known = _fields(kind)
    if unknown := [field for field in value if field not in known]:
        raise ValueError(f"{name} has {_shown(unknown[0])}, which nothing takes")
    if missing := [field for field, (_, needed) in known.items() if needed and field not in value]:
        raise ValueError(f"{name} has no {missing[0]}")
    return kind(**{field: _made(known[field][0], item, f"{name}.{field}") for field, item in value.items()})


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Of each field that is told apart from others: its type, and whether it has no default."""
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
        if field.compare
    }


def _as(kind: type, value: object, name: str) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{name} is {_shown(value)}, where {'an' if kind is int else 'a'} {kind.__name__} belongs")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise ValueError(f"{name} has more than 64 bits")
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text: nothing could be written or named by it
    return value


def _shown(value: object) -> str:
    """Enough of a value to know it by, in one line."""
    text = ascii(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
