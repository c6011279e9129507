"""Decodes JSON from untrusted sources, and accepts it only if every value has the expected type."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Any value in JSON."""

_INT64 = 2**63
_SHOWN = 60
Made = TypeVar("Made")
_Maker = Callable[[Any], Any]
"""Converts a JSON value to the expected type, or raises `_UnfitError`."""


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, or is nested too deeply to be one of ours.

    Example:
        >>> parsed(b'{"n": [1]}')
        {'n': [1]}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def made(kind: type[Made], value: object, name: str = "it", ignore_unknown: bool = False) -> Made:
    """Convert `value`, decoded from JSON, to an instance of `kind`, which may nest dataclasses; lists become tuples.

    Fields with a default may be missing. Whole numbers have at most 64 bits; they may stand for floats.

    Args:
        kind: a JSON type, `Any`, a dataclass, or a tuple, sequence, mapping, union or literal of these.
        value: a result of `parsed`.
        name: of the value, for errors.
        ignore_unknown: skip fields that the dataclasses do not have; a later version may write some.

    Raises:
        ValueError: it has another form; names the part and its value.

    Example:
        >>> made(tuple[int, ...], [1, 2])
        (1, 2)
        >>> made(tuple[int, ...], [1, "2"])
        Traceback (most recent call last):
        ...
        ValueError: it[1] is '2' instead of an int
    """
    try:
        return cast(Made, _maker(cast(Any, kind), ignore_unknown)(value))
    except _UnfitError as unfit:
        raise ValueError(f"{name}{unfit.place} {unfit.fact}") from None


class _UnfitError(ValueError):
    """A part of a value has the wrong type; its place is assembled as the error propagates."""

    def __init__(self, fact: str, place: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.place = place

    def within(self, place: str) -> _UnfitError:
        return _UnfitError(self.fact, place + self.place)


@cache
def _maker(kind: Any, ignore_unknown: bool) -> _Maker:
    if is_dataclass(kind) and isinstance(kind, type):
        return _of_object(kind, ignore_unknown)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _of_words(arguments)
    if origin in (dict, Mapping):
        return _of_mapping(_maker(arguments[1], ignore_unknown))
    parts = [_maker(part, ignore_unknown) for part in arguments if part is not Ellipsis]
    if origin in (tuple, Sequence):
        return _of_items(parts[0]) if origin is Sequence or Ellipsis in arguments else _of_parts(parts)
    if origin in (Union, types.UnionType):
        return _of_one_of(arguments, parts)
    return _as_is if kind is Any else _of_plain(kind)


def _as_is(value: Any) -> Any:
    return value


def _of_object(kind: type, ignore_unknown: bool) -> _Maker:
    hints = get_type_hints(kind)
    told_apart = [field for field in fields(kind) if field.compare]
    makers = {field.name: _maker(hints[field.name], ignore_unknown) for field in told_apart}
    needed = [f.name for f in told_apart if f.default is MISSING and f.default_factory is MISSING]

    def make(value: Any) -> Any:
        given = _DICT(value)
        if not ignore_unknown and (unknown := given.keys() - makers):
            raise _UnfitError(f"has {_shown(min(unknown))}, which is not a known field")
        if missing := [name for name in needed if name not in given]:
            raise _UnfitError(f"has no {missing[0]}")
        arguments, name = {}, ""
        try:
            for name, maker in makers.items():
                if name in given:
                    arguments[name] = maker(given[name])
        except _UnfitError as unfit:
            raise unfit.within(f".{name}") from None
        return kind(**arguments)

    return make


def _of_items(maker: _Maker) -> _Maker:
    def make(value: Any) -> Any:
        items, made = _LIST(value), []
        try:
            for item in items:
                made.append(maker(item))
        except _UnfitError as unfit:
            raise unfit.within(f"[{len(made)}]") from None
        return tuple(made)

    return make


def _of_parts(makers: Sequence[_Maker]) -> _Maker:
    def make(value: Any) -> Any:
        items = _LIST(value)
        if len(items) != len(makers):
            raise _UnfitError(f"has {len(items)} parts instead of {len(makers)}")
        made: list[Any] = []
        try:
            for maker, item in zip(makers, items, strict=True):
                made.append(maker(item))
        except _UnfitError as unfit:
            raise unfit.within(f"[{len(made)}]") from None
        return tuple(made)

    return make


def _of_mapping(maker: _Maker) -> _Maker:
    return lambda value: {_STR(key): maker(item) for key, item in _DICT(value).items()}


def _of_one_of(kinds: Sequence[Any], makers: Sequence[_Maker]) -> _Maker:
    by_type = {_type_in_json(kind): maker for kind, maker in zip(reversed(kinds), reversed(makers), strict=True)}
    if float in by_type:
        by_type.setdefault(int, by_type[float])
    return lambda value: by_type.get(type(value), makers[0])(value)


def _type_in_json(kind: Any) -> type:
    origin = get_origin(kind)
    if origin is Literal:
        return type(get_args(kind)[0])
    return dict if is_dataclass(kind) or origin is Mapping else list if origin is tuple else origin or kind


def _of_words(words: Sequence[object]) -> _Maker:
    def make(value: Any) -> Any:
        if value not in words:
            raise _UnfitError(f"is {_shown(value)} instead of one of {', '.join(map(repr, words))}")
        return value

    return make


def _of_plain(kind: type) -> _Maker:
    def make(value: Any) -> Any:
        is_int = type(value) is int
        if type(value) is not kind and not (kind is float and is_int):
            raise _UnfitError(f"is {_shown(value)} instead of {'an' if kind is int else 'a'} {kind.__name__}")
        if is_int and not -_INT64 <= value < _INT64:
            raise _UnfitError("has more than 64 bits")
        if type(value) is str and not value.isascii():
            value.encode()  # an unpaired surrogate is not text: it can neither be written nor be part of a name
        return value

    return make


_DICT, _LIST, _STR = _of_plain(dict), _of_plain(list), _of_plain(str)


def _shown(value: object) -> str:
    """Enough of a value to recognize it, in one line."""
    text = ascii(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
