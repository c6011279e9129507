"""Parts of JSON text: ``get_json_object`` as in Spark, and Flink's ``JSON_VALUE``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.jsonpath import parse as parse_path

from workbench.expressions.evaluation.text_casts import format_float
from workbench.expressions.tree.node import Datum, Node, call
from workbench.expressions.tree.scope import Scope
from workbench.expressions.tree.sql import Tree, render

_INT, _TEXT = pa.int32(), pa.string()
_NOTHING = object()

Builder = Callable[[Scope, Tree], Node]
Step = str | int
"""A field of an object, or a place in an array, from 0."""


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)


def _read(text: str) -> Any:
    """The first JSON value in a text; what follows it does not matter, as in Spark. `_NOTHING` if there is none."""
    try:
        return _DECODER.raw_decode(text.lstrip(" \t\r\n"))[0]
    except (ValueError, RecursionError):
        return _NOTHING


def _at(value: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, _NOTHING) if isinstance(value, dict) else _NOTHING
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else _NOTHING
    return value


def _written(value: Any) -> str:
    """A value as JSON text without blanks, and numbers as in Java."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{_written(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return format_float(value) if isinstance(value, float) else json.dumps(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _part(value: Any, whole: bool) -> str | None:
    """The text of a value; objects and arrays have one only as JSON."""
    if value is _NOTHING or (not whole and isinstance(value, dict | list)):
        return None
    try:
        return value if isinstance(value, str) else _written(value)
    except (RecursionError, ValueError):
        return None


def _each(function: Callable[[str], Any], kind: pa.DataType) -> Callable[[Datum], Datum]:
    def run(value: Datum) -> Datum:
        if isinstance(value, pa.Scalar):
            return pa.scalar(function(value.as_py()) if value.is_valid else None, kind)
        return pa.array([None if text is None else function(text) for text in value.to_pylist()], kind)

    return run


def _extracted(scope: Scope, tree: Tree, name: str, text: Tree, steps: Sequence[Step], whole: bool) -> Node:
    node = scope.string(text, name)
    null = "null" if whole and not (steps and isinstance(steps[-1], str)) else None  # in Spark only fields are null

    def extracted(found: str) -> str | None:
        value = _at(_read(found), steps)
        return null if value is None else _part(value, whole)

    return call(_each(extracted, _TEXT), [node], _TEXT, render(tree))


def _get_json_object(scope: Scope, tree: Tree) -> Node:
    """``get_json_object(text, '$.a[0]')``: text as it is, other values as JSON; null where there is nothing."""
    path = tree.expression
    if not isinstance(path, exp.JSONPath):
        raise scope.error(f"{render(tree)} needs a constant path, such as '$.name' or '$.items[0]'")
    return _extracted(scope, tree, "get_json_object", tree.this, _steps(scope, tree, path), True)


def json_value(scope: Scope, tree: Tree) -> Node:
    """``JSON_VALUE(text, '$.a')``: text, numbers and truth values as text; null for objects and arrays.

    Raises:
        ExpressionError: another number of operands, or a path that is no constant or not supported.
    """
    if len(tree.expressions) != 2:
        raise scope.error(f"{render(tree)} takes text and a path: write JSON_VALUE(text, '$.name')")
    text, path = tree.expressions
    try:
        parsed = parse_path(scope.constant_text(path, "json_value"))
    except (SqlglotError, ValueError, IndexError):
        raise scope.error(f"{render(tree)}: the path cannot be read; write '$.name' or '$.items[0]'") from None
    return _extracted(scope, tree, "json_value", text, _steps(scope, tree, parsed), False)


def json_array_length(scope: Scope, tree: Tree) -> Node:
    """``json_array_length(text)``: null for what is no array.

    Raises:
        ExpressionError: another number of operands.
    """
    if len(tree.expressions) != 1:
        raise scope.error(f"{render(tree)} takes one text")

    def length(text: str) -> int | None:
        found = _read(text)
        return len(found) if isinstance(found, list) else None

    node = scope.string(tree.expressions[0], "json_array_length")
    return call(_each(length, _INT), [node], _INT, render(tree))


def _steps(scope: Scope, tree: Tree, path: Tree) -> list[Step]:
    steps: list[Step] = []
    for part in path.expressions[1:]:
        step = part.this
        named = isinstance(part, exp.JSONPathKey) and isinstance(step, str)
        if not (named or (isinstance(part, exp.JSONPathSubscript) and isinstance(step, int) and step >= 0)):
            raise scope.error(f"{render(tree)}: a path has names and places from 0, such as '$.items[0].name'")
        steps.append(step)
    return steps


BUILDERS: dict[type, Builder] = {exp.JSONExtractScalar: _get_json_object}

FUNCTIONS = ("get_json_object", "json_array_length", "json_value")
"""Their names."""
