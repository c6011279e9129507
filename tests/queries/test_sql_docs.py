"""The examples of docs/sql.md and docs/patterns.md run in order."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "examples"), [("sql.md", 15), ("patterns.md", 12)])
def test_the_examples_of_the_page_run(page: str, examples: int) -> None:
    result = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > examples
    assert result.failed == 0
