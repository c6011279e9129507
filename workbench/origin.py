"""Where in the user's code something was written."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from workbench.redaction import redacted

_TEXT_MAX = 120
_PACKAGE = str(Path(__file__).parent / "_")[:-1]  # with the separator: a neighbour may begin with the same name


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of the user's code: file, line number (from 1) and its text, see `line_text`."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        in_cell = is_cell(self.file) or self.file.startswith("<")
        place = cell_name(self.file) if in_cell else Path(self.file).name
        return f"{place}, line {self.line}: {self.text}" if self.text else f"{place}, line {self.line}"


def caller() -> Origin | None:
    """The nearest frame outside this package, or None when there is none."""
    frame = sys._getframe(1)
    while frame is not None and (is_ours(frame.f_code.co_filename) or _is_generated(frame)):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Origin(file, line, line_text(file, line))


def _is_generated(frame: FrameType) -> bool:
    """Whether a frame runs the constructor of one of our dataclasses, whose code is in no file."""
    module = str(frame.f_globals.get("__name__"))
    return frame.f_code.co_filename == "<string>" and module.startswith(f"{__package__}.")


def is_cell(file: str) -> bool:
    """Whether a file of code is a cell, in a kernel or a terminal."""
    return file.startswith("<ipython-input") or Path(file).parent.name.startswith("ipykernel_")


def cell_name(file: str) -> str:
    """How a notebook names the cell that a file of code is, such as ``cell In[4]``; ``cell`` if it has no number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    compiler = getattr(shell, "compile", None)  # of a kernel that is no IPython: something else, or nothing
    named = getattr(compiler, "format_code_name", lambda file: None)(file)
    return f"cell {named[1]}" if named else "cell"


def is_ours(file: str) -> bool:
    """Whether a file of code belongs to this package, or the package has generated the code."""
    return file.startswith((_PACKAGE, "<workbench "))


def line_text(file: str, line: int) -> str:
    """The beginning of a line of the user's code, without secrets."""
    text = redacted(linecache.getline(file, line).strip(), code=True)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
