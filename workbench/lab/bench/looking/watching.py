"""The page's side of the dashboard benchmark: functions of ``static/watching.js``."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path


def call(function: str, *arguments: object) -> str:
    """A JavaScript expression: the result of that function of the script for these arguments.

    Example:
        >>> call("runCell", 1).splitlines()[-1]
        'return runCell(1) })()'
    """
    given = ", ".join(map(json.dumps, arguments))
    return f"(() => {{ {_functions()}\nreturn {function}({given}) }})()"


@cache
def _functions() -> str:
    text = (Path(__file__).parent / "static" / "watching.js").read_text(encoding="utf-8")
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)
