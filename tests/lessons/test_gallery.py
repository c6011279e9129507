"""The programs of the gallery run, and give what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/gallery.md"


@pytest.mark.slow
def test_the_ten_programs_of_the_gallery_run() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 10
    names: dict[str, Any] = {}
    for program in programs:
        assert "assert " in program
        exec(program, names)
