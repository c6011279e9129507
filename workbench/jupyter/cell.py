"""Running the body of a ``%%stream`` cell in the user's namespace, and the value of its last expression."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any


class BodySyntaxError(SyntaxError):
    """The lines below ``%%stream`` are not valid Python; `kind` is the error that Python raised."""

    def __init__(self, error: SyntaxError) -> None:
        super().__init__(*error.args)
        self.kind = type(error)


MISSING = object()
"""The value of a body that does not end in an expression."""


def run_body(shell: Any, body: str) -> Any:
    """Run the lines below ``%%stream`` as if they were a cell, and return the value of the last expression.

    Lines count from the top of the cell, the magic's own included, so that errors and origins name the line that the
    user sees; magics inside the body work.

    Args:
        shell: the InteractiveShell.
        body: the cell without its first line.

    Returns:
        The value, or MISSING when the last statement is not an expression.

    Raises:
        BodySyntaxError: the body does not parse.
        Exception: whatever the body raises.
    """
    __tracebackhide__ = True  # a traceback shows the user's own lines
    above = 1 + len(body) - len(body.lstrip("\n"))  # IPython's transformation drops leading blank lines
    source = "\n" * above + shell.transform_cell(body)
    number = len(shell.history_manager.input_hist_raw) - 1  # the counter may already be that of the next cell
    file = shell.compile.cache(source, number or shell.execution_count)
    try:
        statements, last = _compiled(source, file)
    except SyntaxError as error:
        raise BodySyntaxError(error) from None
    _execute(statements, shell)
    return MISSING if last is None else _execute(last, shell)


def _compiled(source: str, file: str) -> tuple[CodeType, CodeType | None]:
    """The statements, and the final expression if they end in one."""
    tree = ast.parse(source, filename=file)
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return compile(tree, file, "exec"), None
    del tree.body[-1]
    return compile(tree, file, "exec"), compile(ast.Expression(last.value), file, "eval")


def _execute(code: CodeType, shell: Any) -> Any:
    __tracebackhide__ = True
    return eval(code, shell.user_global_ns, shell.user_ns)
