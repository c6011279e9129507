"""The programs in the gallery and the how-to page run, and give the stated results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import workbench as wb

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "count"), [("gallery.md", 11), ("how-to.md", 18)])
def test_the_programs_of_a_page_run_one_after_the_other(page: str, count: int) -> None:
    programs = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == count
    names: dict[str, Any] = {}
    for program in programs:
        exec(program, names)
    assert [name for name in wb.jobs() if not wb.job(name).over] == []


def test_every_program_of_the_gallery_asserts_its_result() -> None:
    programs = re.findall(r"```python\n(.*?)```", (DOCS / "gallery.md").read_text(encoding="utf-8"), re.DOTALL)
    assert [program for program in programs if "assert " not in program] == []
