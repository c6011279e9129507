"""Lines of code of a Python file: without docstrings, comments and blank lines.

``python tests/project/code_lines.py [FOLDER]`` prints how many the package has, and its longest modules.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def code_lines(source: str) -> int:
    """How many lines of a module hold code."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - _docstrings(ast.parse(source)))


def _docstrings(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


def main(folder: Path) -> None:
    counted = {path: code_lines(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    print(f"{sum(counted.values()):,} lines of code in {len(counted):,} files of {folder}")
    for path in sorted(counted, key=lambda path: -counted[path])[:10]:
        print(f"{counted[path]:5} {path.relative_to(folder)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "workbench")
