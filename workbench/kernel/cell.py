"""Running the body of a ``%%stream`` cell in the user's namespace, and the value of its last expression."""

from __future__ import annotations

import ast
from typing import Any

MISSING = object()
"""The value of a body that does not end in an expression."""


def run_body(shell: Any, body: str) -> Any:
    """Run the lines below ``%%stream`` as if they were a cell, and return the value of the last expression.

    Lines count from the top of the cell, the magic's own included, so that errors and origins name the line that the
    person sees; magics inside the body work.

    Args:
        shell: the InteractiveShell.
        body: the cell without its first line.

    Returns:
        The value, or MISSING when the last statement is not an expression.

    Raises:
        SyntaxError: the body does not parse.
        Exception: whatever the body raises.
    """
    __tracebackhide__ = True  # a traceback shows the user's own lines
    above = 1 + len(body) - len(body.lstrip("\n"))  # IPython's transformation drops leading blank lines
    source = "\n" * above + shell.transform_cell(body)
    file = shell.compile.cache(source, shell.execution_count)
    tree = ast.parse(source, filename=file)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        _execute(compile(tree, file, "exec"), shell)
        return MISSING
    last = tree.body.pop()
    _execute(compile(tree, file, "exec"), shell)
    return _execute(compile(ast.Expression(last.value), file, "eval"), shell)


def _execute(code: Any, shell: Any) -> Any:
    __tracebackhide__ = True
    return eval(code, shell.user_global_ns, shell.user_ns)
