"""Converting values from one type to another, as Spark's TRY_CAST does: values that cannot be converted become null."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from workbench.expressions.evaluation.decimals import as_decimal, from_decimal, to_decimal, to_double
from workbench.expressions.evaluation.text_casts import format_text, parse_text
from workbench.expressions.tree.node import Datum, Node, apply, apply_or_null, call, constant, null_of
from workbench.expressions.tree.types import INSTANT, LOCAL, is_number, is_time

_MICROS = 1_000_000


def widen(node: Node, type_: pa.DataType) -> Node:
    """The value in a type that can hold it (see `common_type`)."""
    if node.type == type_:
        return node
    if pa.types.is_null(node.type):
        return null_of(type_, node.text)
    if pa.types.is_decimal(type_):
        return as_decimal(node, type_)
    if pa.types.is_decimal(node.type) and pa.types.is_floating(type_):
        return to_double(node, type_)
    return apply("cast", [node], type_, node.text, pc.CastOptions.unsafe(type_))


def cast(node: Node, type_: pa.DataType, text: str) -> Node | None:
    """The value converted to `type_`, null where it cannot be; None when the types have no conversion."""
    source = node.type
    if source == type_ or pa.types.is_null(source):
        return widen(node, type_)
    if pa.types.is_string(type_):
        return format_text(node, text)
    if pa.types.is_decimal(source):
        return from_decimal(node, type_, text)
    if pa.types.is_decimal(type_):
        return to_decimal(node, type_, text)
    if pa.types.is_string(source):
        return parse_text(node, type_, text)
    if is_number(source) or pa.types.is_boolean(source):
        return _from_number(node, type_, text)
    if is_time(source):
        return _from_time(node, type_, text)
    return None


def _from_number(node: Node, type_: pa.DataType, text: str) -> Node | None:
    source = node.type
    if pa.types.is_boolean(type_):
        return apply("not_equal", [node, constant(pa.scalar(0, source), "0")], type_, text)
    if pa.types.is_integer(type_):
        if pa.types.is_floating(source):
            return _truncate(node, type_, text)
        return apply_or_null("cast", [node], type_, text, pc.CastOptions.safe(type_))
    if pa.types.is_floating(type_):
        return apply("cast", [node], type_, text, pc.CastOptions.unsafe(type_))
    if type_ == INSTANT and not pa.types.is_boolean(source):
        return _instant(node, text)
    return None


def _truncate(node: Node, type_: pa.DataType, text: str) -> Node:
    """The value truncated towards zero; null if it is too large for the type, infinite or NaN."""
    bound = 2.0 ** (type_.bit_width - 1)
    whole = apply("trunc", [widen(node, pa.float64())], pa.float64(), text)
    above = apply("greater_equal", [whole, constant(pa.scalar(-bound), "")], pa.bool_(), "")
    below = apply("less", [whole, constant(pa.scalar(bound), "")], pa.bool_(), "")
    inside = apply("and_kleene", [above, below], pa.bool_(), "")
    kept = apply("if_else", [inside, whole, null_of(pa.float64())], pa.float64(), text)
    return apply("cast", [kept], type_, text, pc.CastOptions.unsafe(type_))


def _instant(node: Node, text: str) -> Node:
    """The instant that lies `node` seconds after 1970."""
    if pa.types.is_floating(node.type):
        scale = constant(pa.scalar(float(_MICROS)), "")
        micros = _truncate(apply("multiply", [widen(node, pa.float64()), scale], pa.float64(), text), pa.int64(), text)
    else:
        scale = constant(pa.scalar(_MICROS, pa.int64()), "")
        micros = apply_or_null("multiply_checked", [widen(node, pa.int64()), scale], pa.int64(), text)
    return apply("cast", [micros], INSTANT, text, pc.CastOptions.unsafe(INSTANT))


def _from_time(node: Node, type_: pa.DataType, text: str) -> Node | None:
    if is_time(type_):
        # Through the zoneless type, so that days are days of UTC.
        return widen(widen(node, LOCAL), type_)
    if pa.types.is_date(node.type):
        return None
    micros = apply("cast", [node], pa.int64(), text, pc.CastOptions.unsafe(pa.int64()))
    if pa.types.is_floating(type_):
        scale = constant(pa.scalar(float(_MICROS)), "")
        return widen(apply("divide", [widen(micros, pa.float64()), scale], pa.float64(), text), type_)
    return call(_whole_seconds, [micros], type_, text) if type_ == pa.int64() else None


def _whole_seconds(micros: Datum) -> Datum:
    # Arrow truncates towards zero, but an instant before 1970 belongs to the second that began before it.
    quotient = pc.divide(micros, _MICROS)
    return pc.if_else(pc.greater(pc.multiply(quotient, _MICROS), micros), pc.subtract(quotient, 1), quotient)
