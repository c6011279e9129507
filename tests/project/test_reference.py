"""The API reference lists every public name once, as its docstring says it."""

from __future__ import annotations

import reference

import workbench as wb


def test_every_public_name_has_its_place() -> None:
    placed = [name for names in reference.GROUPS.values() for name in names]
    assert sorted(placed) == sorted(name for name in wb.__all__ if not name.endswith("_ipython_extension"))


def test_the_page_says_what_the_docstrings_say() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "write it anew with `make reference`"
