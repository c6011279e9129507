"""Conditions on rows that were bound before, as instructions that the kernel runs for each partial match and row.

Parts of a condition that read a single row (``A.price - 50``) are computed in columns, once for each row that arrives.
Only parts that combine several rows (``B.price > A.price - 50``, ``AVG(A.price) < 15``) are left for the kernel:
comparisons, logic and arithmetic, with the NULL rules and the ranges of the expressions. Texts are represented by
numbers: codes, which are equal for equal texts, and ranks, which have the order of the texts but change when texts are
added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from workbench.compiled.machinery import codes
from workbench.elements import Int64s
from workbench.errors import ExpressionError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.expressions.tree.sql import Tree
from workbench.operators.matching.text_codes import TextCodes
from workbench.patterns.automaton import TAKE, Automaton
from workbench.patterns.terms import Reference, Term

IntRows = npt.NDArray[np.int64]

_COLUMNS_MAX = 62
_FUNCTIONS = {"count": codes.COUNT, "sum": codes.SUM, "mean": codes.SUM, "min": codes.MIN, "max": codes.MAX}
_COMPARISONS: Mapping[type, tuple[int, bool, bool]] = {
    exp.EQ: (codes.EQUAL, False, False),
    exp.NEQ: (codes.EQUAL, False, True),
    exp.LT: (codes.LESS, False, False),
    exp.LTE: (codes.LESS_EQUAL, False, False),
    exp.GT: (codes.LESS, True, False),
    exp.GTE: (codes.LESS_EQUAL, True, False),
}
"""The operation, whether its sides are swapped, and whether the result is inverted."""
_ARITHMETIC: Mapping[type, int] = {exp.Add: codes.ADD, exp.Sub: codes.SUBTRACT, exp.Mul: codes.MULTIPLY}


class _NotCompiledError(Exception):
    """A part that the kernel has no instruction for."""


@dataclass(frozen=True, slots=True)
class Program:
    """The conditions of a pattern as instructions; see ``step_matches``.

    Attributes:
        conditions, code, constants: arguments of ``step_matches``.
        depth: of the stack.
        columns: expressions that are computed for each row that arrives.
        texts: the codes and ranks of texts.
    """

    conditions: Int64s
    code: Int64s
    constants: npt.NDArray[np.float64]
    depth: int
    columns: tuple[Compiled, ...]
    texts: TextCodes

    @property
    def folds(self) -> bool:
        """Whether it aggregates rows."""
        return bool((self.code[:: codes.OP_WIDTH] == codes.FOLD).any())

    def ranks(self) -> Int64s:
        """Shape (texts,): the rank of each text, by its code; empty if no condition compares the order of texts."""
        return self.texts.ranks() if (self.code[:: codes.OP_WIDTH] == codes.RANK).any() else _NO_RANKS

    def values(self, batch: pa.RecordBatch) -> IntRows:
        """Shape (n, columns + 1): the columns of n rows, floating-point numbers as their bits and texts as their codes;
        in the last column, the bits of the columns that are not null."""
        made = np.zeros((batch.num_rows, len(self.columns) + 1), np.int64)
        for at, column in enumerate(self.columns):
            values = column(batch)
            made[:, at] = _numbers(values, self.texts)
            known = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.int64)
            made[:, -1] |= known << at
        return made

    def packed(self, values: IntRows) -> IntRows:
        """The values with new codes; call it with all values that remain, because other texts may be forgotten."""
        of_text = [at for at, column in enumerate(self.columns) if _is_text(column.type)]
        if of_text:
            values[:, of_text] = self.texts.packed(values[:, of_text])
        return values


_NO_RANKS = np.empty(0, np.int64)
NO_PROGRAM = Program(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0, (), TextCodes())


def program_of(conditions: Sequence[tuple[int, int, Term]], automaton: Automaton, schema: pa.Schema) -> Program:
    """The program of conditions.

    Args:
        conditions: for each condition, its bit, the variable that it belongs to, and the term.
        automaton: of the pattern.
        schema: of the rows.

    Returns:
        ``NO_PROGRAM`` if one of them has a part that the kernel cannot compute, such as a function of two rows.
    """
    made, opening = _Making(schema), _opening(automaton)
    described: list[int] = []
    try:
        for bit, variable, term in conditions:
            begin = len(made.code)
            made.opening = 0 if opening == 1 << variable else opening
            made.term(term)
            described += [bit, variable, begin, len(made.code)]
    except (_NotCompiledError, ExpressionError):
        return NO_PROGRAM
    code = np.array(made.code, np.int64).reshape(-1)
    depth = len(made.code) + 1
    return Program(
        np.array(described, np.int64), code, np.array(made.constants), depth, tuple(made.columns), made.texts
    )


@dataclass
class _Making:
    schema: pa.Schema
    opening: int = 0
    code: list[tuple[int, ...]] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    columns: list[Compiled] = field(default_factory=list)
    texts: TextCodes = field(default_factory=TextCodes)
    _numbers: dict[str, int] = field(default_factory=dict)

    def term(self, term: Term) -> None:
        self._part(term.expression.tree, term)

    def _part(self, node: Tree, term: Term) -> pa.DataType:
        """Emit the instructions that compute a part; return its type."""
        while isinstance(node, exp.Paren):
            node = node.this
        read = [term.references[int(column.name[1:])] for column in node.find_all(exp.Column)]
        kind = compile_expression(Expression(node), term.schema).type
        if not read:
            self._constant(compile_expression(Expression(node), term.schema)(_null_row(term))[0], codes.CONSTANT)
        elif isinstance(node, exp.Column) and read[0].kind == "aggregate":
            self._fold(read[0])
        elif all(one.kind == "row" and not one.final and _place(one) == _place(read[0]) for one in read):
            self._leaf(node, read[0], term, kind)
        elif node.args.get("negate"):
            raise _NotCompiledError
        else:
            self._operation(node, term, kind)
        return kind

    def _operation(self, node: Tree, term: Term, kind: pa.DataType) -> None:
        if isinstance(node, exp.And | exp.Or):
            for side in (node.this, node.expression):
                self._boolean(side, term)
            self._emit(codes.AND if isinstance(node, exp.And) else codes.OR)
        elif isinstance(node, exp.Not):
            self._boolean(node.this, term)
            self._emit(codes.NOT)
        elif isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            self._part(node.this, term)
            self._emit(codes.IS_NULL)
        elif type(node) in _COMPARISONS:
            operation, turned, inverted = _COMPARISONS[type(node)]
            sides = (node.expression, node.this) if turned else (node.this, node.expression)
            self._compare(operation, *sides, term)
            if inverted:
                self._emit(codes.NOT)
        elif isinstance(node, exp.Between):
            self._compare(codes.LESS_EQUAL, node.args["low"], node.this, term)
            self._compare(codes.LESS_EQUAL, node.this, node.args["high"], term)
            self._emit(codes.AND)
        elif isinstance(node, exp.Neg):
            self._number(node.this, term, kind)
            self._emit(codes.NEGATE, int(pa.types.is_floating(kind)), _bounds(kind)[0])
        elif isinstance(node, exp.Div):
            self._number(node.this, term, kind)
            self._number(node.expression, term, kind)
            self._emit(codes.DIVIDE, 1)
        elif type(node) in _ARITHMETIC:
            self._number(node.this, term, kind)
            self._number(node.expression, term, kind)
            self._emit(_ARITHMETIC[type(node)], int(pa.types.is_floating(kind)), *_bounds(kind))
        else:
            raise _NotCompiledError

    def _boolean(self, node: Tree, term: Term) -> None:
        if not pa.types.is_boolean(self._part(node, term)):
            raise _NotCompiledError

    def _compare(self, operation: int, left: Tree, right: Tree, term: Term) -> None:
        kinds = [compile_expression(Expression(side), term.schema).type for side in (left, right)]
        real = any(map(pa.types.is_floating, kinds))
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        if not numbers and kinds[0] != kinds[1]:
            raise _NotCompiledError
        for side in (left, right):
            self._number(side, term, pa.float64() if real else None)
            if _is_text(kinds[0]) and operation != codes.EQUAL:
                self._emit(codes.RANK)
        self._emit(operation, int(real))

    def _number(self, node: Tree, term: Term, wanted: pa.DataType | None) -> None:
        """Emit a part, converted to a floating-point number if the type is one."""
        kind = self._part(node, term)
        if wanted is not None and pa.types.is_floating(wanted) and not pa.types.is_floating(kind):
            if not pa.types.is_integer(kind):
                raise _NotCompiledError
            self._emit(codes.TO_REAL)

    def _leaf(self, node: Tree, one: Reference, term: Term, kind: pa.DataType) -> None:
        """Emit a value of one row, which is computed in columns."""
        holder = exp.Paren(this=node.copy())
        for column in list(holder.find_all(exp.Column)):
            argument = term.references[int(column.name[1:])].argument
            if argument is None:
                raise _NotCompiledError
            column.replace(exp.Paren(this=argument.tree.copy()))
        missing = compile_expression(Expression(node), term.schema)(_null_row(term))[0]
        mask, from_first, offset, shift = _place(one)
        at = self._column(Expression(holder.this), kind)
        is_first = mask == self.opening and not offset
        self._constant(missing, codes.LEAF, at, mask, 2 if is_first else int(from_first), offset, shift)

    def _fold(self, one: Reference) -> None:
        if one.final:
            raise _NotCompiledError
        column, real = -1, 0
        if one.argument is not None:
            column = self._column(_whether_known(one.argument) if one.function == "count" else one.argument)
            if _is_text(self.columns[column].type):
                raise _NotCompiledError
            real = int(pa.types.is_floating(self.columns[column].type))
        operation = _FUNCTIONS[one.function]
        self._emit(codes.FOLD, column, one.mask, operation, real, int(one.function == "mean"))

    def _column(self, expression: Expression, kind: pa.DataType | None = None) -> int:
        """The number of a column."""
        text = expression.sql
        if text not in self._numbers:
            compiled = compile_expression(expression, self.schema)
            stored = compiled.type
            whole = pa.types.is_integer(stored) and stored != pa.uint64()
            timed = pa.types.is_timestamp(stored) or pa.types.is_date32(stored)
            fits = whole or timed or pa.types.is_boolean(stored) or stored == pa.float64() or _is_text(stored)
            if not fits or len(self.columns) == _COLUMNS_MAX:
                raise _NotCompiledError
            self._numbers[text] = len(self.columns)
            self.columns.append(compiled)
        number = self._numbers[text]
        if kind is not None and self.columns[number].type != kind:
            raise _NotCompiledError
        return number

    def _constant(self, value: pa.Scalar, operation: int, *operands: int) -> None:
        """Emit an instruction with a constant."""
        known, kind = value.is_valid, value.type
        whole, real = 0, 0.0
        if _is_text(kind):
            whole = self.texts.constant(value.as_py())
        elif known:
            number = _numbers(pa.repeat(value, 1), self.texts)
            whole, real = int(number[0]), float(number.view(np.float64)[0]) if kind == pa.float64() else 0.0
        elif not (pa.types.is_null(kind) or pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
            raise _NotCompiledError
        self._emit(operation, *operands, *(0,) * (5 - len(operands)), whole, int(known))
        self.constants[-1] = real

    def _emit(self, operation: int, *operands: int) -> None:
        self.code.append((operation, *operands, *(0,) * (codes.OP_WIDTH - 1 - len(operands))))
        self.constants.append(0.0)


def _whether_known(value: Expression) -> Expression:
    """True where a value is not null, and null where it is."""
    known = exp.Not(this=exp.Is(this=exp.Paren(this=value.tree.copy()), expression=exp.Null()))
    return Expression(exp.Case(ifs=[exp.If(this=known, true=exp.Boolean(this=True))]))


def _opening(automaton: Automaton) -> int:
    """The bit of the variable that is bound to the first row of a match and to no other row; 0: there is none."""
    edges = automaton.edges.reshape(-1, 6)
    begin, others = edges[: automaton.first[1]], edges[automaton.first[1] :]
    taken = set(begin[begin[:, 0] == TAKE, 4].tolist())
    again = set(others[others[:, 0] == TAKE, 4].tolist())
    return 1 << taken.pop() if len(taken) == 1 and not taken & again and not (edges[:, 1] == 0).any() else 0


def _place(one: Reference) -> tuple[int, bool, int, int]:
    """The row that a reference reads."""
    return one.mask, one.from_first, one.offset, one.shift


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type; 0 for floating-point types."""
    if kind == pa.float64():
        return 0, 0
    if not pa.types.is_signed_integer(kind):
        raise _NotCompiledError
    return -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1


def _null_row(term: Term) -> pa.RecordBatch:
    """One row in which all columns are null."""
    schema = term.schema
    if not len(schema):
        return pa.RecordBatch.from_arrays([pa.nulls(1)], names=["$"])
    return pa.RecordBatch.from_arrays([pa.nulls(1, one.type) for one in schema], schema=schema)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers(values: pa.Array, texts: TextCodes) -> Int64s:
    """Shape (n,): the values as integers, floating-point numbers as their bits and texts as their codes; any number for
    null."""
    kind = values.type
    if _is_text(kind):
        return texts.codes(values)
    if kind == pa.float64():
        filled: Int64s = values.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
        return filled
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    elif pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif not pa.types.is_integer(kind):
        raise _NotCompiledError
    return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
