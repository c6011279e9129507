"""TypeScript's types of the wire, generated from its dataclasses: ``make wire``."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from workbench.wire.head import Head, Latency
from workbench.wire.messages import ACTS, EVERY_JOB, FRAME_MAX, VERSION, Act, Choices, Hello, Open, Reply, See, View
from workbench.wire.sentences import Figure
from workbench.wire.values import WHOLE_MAX

FILE = Path(__file__).parents[2] / "extension/src/wire.ts"
TOLD: tuple[type, ...] = (Figure, Latency, Head, View, Choices, Hello, Reply)
"""What a kernel sends: a page compares it with these types."""
ASKED: tuple[type, ...] = (Open, See, Act)
_ATOMS = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def typescript() -> str:
    """The module."""
    parts = [
        "// Generated from the dataclasses in `workbench/wire` by `make wire`.",
        f"export const VERSION = {VERSION};\n"
        f"export const EVERY_JOB = {_quoted(EVERY_JOB)};\n"
        f"export const FRAME_MAX = {FRAME_MAX};\n"
        f"export const WHOLE_MAX = {WHOLE_MAX};",
        f"export type ActName = {' | '.join(map(_quoted, ACTS))};",
        *map(_interface, TOLD + ASKED),
        "\n".join(
            ["/** What values are compared with. */", "export const SHAPES = {", *map(_shapes, TOLD), "} as const;"]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _interface(kind: type) -> str:
    lines = [f"  readonly {name}: {_type(hint)};" for name, hint in _fields(kind).items()]
    return "\n".join([f"export interface {kind.__name__} {{", *lines, "}"])


def _shapes(kind: type) -> str:
    lines = [f"    {name}: {json.dumps(_shape(hint))}," for name, hint in _fields(kind).items()]
    return "\n".join([f"  {kind.__name__}: {{", *lines, "  },"])


def _fields(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _type(hint: Any) -> str:
    if hint in _ATOMS:
        return _ATOMS[hint]
    if is_dataclass(hint):
        return hint.__name__  # type: ignore[union-attr]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(_type, inner)))
    if origin is tuple:
        item = _type(inner[0])
        return f"readonly ({item})[]" if "|" in item else f"readonly {item}[]"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"{{ readonly [name: string]: {_type(inner[1])} }}"
    raise TypeError(f"{hint} has no type in TypeScript")


def _shape(hint: Any) -> Any:
    """The same type as data."""
    if hint in _ATOMS:
        return _ATOMS[hint]
    if is_dataclass(hint):
        return {"object": hint.__name__}  # type: ignore[union-attr]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        shapes = [_shape(each) for each in inner]
        return {"any": [each for at, each in enumerate(shapes) if each not in shapes[:at]]}
    return {"list": _shape(inner[0])} if origin is tuple else {"map": _shape(inner[1])}


def _quoted(value: object) -> str:
    return f"'{value}'"


if __name__ == "__main__":
    FILE.write_text(typescript(), encoding="utf-8")
