"""The context of a compilation: the schema, the builders of the parts, and the wording of errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from workbench.errors import ExpressionError, unknown
from workbench.expressions.tree.node import Coded, Node, Once, apply
from workbench.expressions.tree.sql import Tree, render, shown
from workbench.expressions.tree.types import is_number, is_time, operand_type, type_name
from workbench.origin import Origin

# The parts of a syntax node that the builders read. A node with any other is rejected: its meaning would be lost.
_PARTS = frozenset(
    {
        *("this", "expression", "expressions", "is_string", "quoted", "negate", "safe", "ignore_nulls", "to", "unit"),
        *("low", "high", "ifs", "default", "true", "false", "decimals", "start", "length", "position", "replacement"),
        *("table", "query", "unnest", "field", "group", "null_if_pos_overflow", "fill_pattern", "is_left"),
        *("times", "delimiter", "part_index", "substr", "offset"),
    }
)
# unix_timestamp's format applies to text, which is rejected as its operand.
_PARTS_OF = {exp.StrToUnix: {"format"}}


@dataclass(frozen=True)
class Scope:
    """One compilation.

    Attributes:
        schema: of the batches.
        text: the whole expression, for errors.
        builders: how each kind of syntax node is compiled.
        supported: what `builders` covers in words, for errors.
        origin: the user's line, or None.
    """

    schema: pa.Schema
    text: str
    builders: Mapping[type, Callable[[Scope, Tree], Node]]
    supported: str
    origin: Origin | None
    _calls: dict[str, Node] = field(default_factory=dict)

    def node(self, tree: Tree | None) -> Node:
        """Compile a part; a call of a function that occurs more than once is computed once."""
        if tree is None:
            raise self.error("an operand is missing")
        if not isinstance(tree, exp.Func) or isinstance(tree, exp.Connector | exp.Case | exp.If):
            return self._node(tree)
        text = render(tree)
        made = self._calls.get(text)
        if made is None:
            made = self._node(tree)
            if made.constant is None and made.coded is None:
                made = replace(made, evaluate=Once(made.evaluate))
            self._calls[text] = made
        elif isinstance(made.evaluate, Once):
            made.evaluate.is_shared = True
        return made

    def _node(self, tree: Tree) -> Node:
        builder = self.builders.get(type(tree))
        parts = {key for key, part in tree.args.items() if part}
        if builder is not None and parts <= _PARTS | _PARTS_OF.get(type(tree), set()):
            node = builder(self, tree)
            return apply("invert", [node], node.type, render(tree)) if tree.args.get("negate") else node
        if isinstance(tree, exp.AggFunc):
            raise self.error(f"{render(tree)} is an aggregate, which needs a window: use it in aggregate(...)")
        raise self.unsupported(tree)

    def unsupported(self, tree: Tree) -> ExpressionError:
        """The error for a part that cannot be compiled."""
        return self.error(f"{render(tree)} is not supported: supported are {self.supported}")

    def error(self, message: str) -> ExpressionError:
        """The error to raise: the fact, preceded by the whole expression."""
        return ExpressionError(f"expression {shown(self.text)}: {message}", origin=self.origin)

    def column(self, name: str) -> tuple[int, pa.DataType]:
        """Position and type of a column."""
        positions = self.schema.get_all_field_indices(name)
        if not positions:
            raise self.error(unknown("column", name, self.schema.names))
        if len(positions) > 1:
            raise self.error(f"the column name {name!r} occurs {len(positions)} times: rename one with select")
        return positions[0], self.schema.field(positions[0]).type

    def number(self, tree: Tree, what: str) -> Node:
        """Compile a part that must be a number."""
        node = self.node(tree)
        if pa.types.is_null(node.type):
            return apply("cast", [node], pa.int32(), node.text, pc.CastOptions.safe(pa.int32()))
        if is_time(node.type):
            seconds = f"unix_timestamp({node.text})" if pa.types.is_date(node.type) else f"CAST({node.text} AS double)"
            raise self.error(
                f"{what} needs a number, but {node.text} is {type_name(node.type)}: take its seconds since 1970, "
                f"{seconds}, with their fraction, or shift it by an INTERVAL"
            )
        if not is_number(node.type):
            raise self.needs(what, "a number", node, "double")
        return node

    def boolean(self, tree: Tree, what: str) -> Node:
        """Compile a part that must be true, false or null."""
        node = self.node(tree)
        if pa.types.is_null(node.type):
            return apply("cast", [node], pa.bool_(), node.text, pc.CastOptions.safe(pa.bool_()))
        if not pa.types.is_boolean(node.type):
            raise self.error(
                f"{what} needs true or false, but {node.text} is {type_name(node.type)}: compare it with a value"
            )
        return node

    def string(self, tree: Tree, what: str) -> Node:
        """Compile a part that must be text."""
        node = self.node(tree)
        if pa.types.is_null(node.type):
            return apply("cast", [node], pa.string(), node.text, pc.CastOptions.safe(pa.string()))
        if not pa.types.is_string(node.type):
            raise self.needs(what, "text", node, "string")
        return node

    def constant_text(self, tree: Tree, what: str) -> str:
        """Compile a part that must be constant text, and return that."""
        value = self.string(tree, what).constant
        if value is None or not value.is_valid:
            raise self.error(f"{what} needs constant text, but got {render(tree)}")
        return str(value.as_py())

    def constant_int(self, tree: Tree, what: str) -> int:
        """Compile a part that must be a constant whole number, and return that."""
        node = self.node(tree)
        if node.constant is None or not node.constant.is_valid or not pa.types.is_integer(node.type):
            raise self.error(f"{what} needs a constant whole number, but got {render(tree)}")
        return int(node.constant.as_py())

    def needs(self, what: str, wanted: str, node: Node, cast_to: str) -> ExpressionError:
        """The error for an operand of the wrong type."""
        return self.error(
            f"{what} needs {wanted}, but {node.text} is {type_name(node.type)}: "
            f"convert it with CAST({node.text} AS {cast_to})"
        )


def column_node(scope: Scope, tree: Tree) -> Node:
    """A column converted to its type in computations."""
    if tree.table:
        raise scope.error(
            f"{render(tree)} reads a field of a struct, which is not supported: use map to extract it first"
        )
    index, stored = scope.column(tree.name)
    text, type_ = render(tree), operand_type(stored)

    def read(batch: pa.RecordBatch) -> pa.Array:
        return batch.column(index)

    raw = Node(stored, read, text)
    if stored == type_:
        return raw
    decoded = apply("cast", [raw], type_, text, pc.CastOptions.unsafe(type_))
    if pa.types.is_dictionary(stored) and stored.value_type == type_ and not pa.types.is_nested(type_):
        return replace(decoded, coded=Coded(index, lambda dictionary: dictionary))
    return decoded
