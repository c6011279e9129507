"""The API reference lists every public name once, with the first sentence of its docstring."""

from __future__ import annotations

import reference

CONNECTORS = "Connectors to servers: sources for `Stream.from_source`, and sinks"


def test_every_public_name_has_its_place() -> None:
    placed = [name for names in reference.titles().values() for name in names]
    assert len(placed) == len(set(placed))
    written = {id(value) for name, value in reference.exported().items() if name in placed}
    assert written == {id(value) for value in reference.exported().values()}
    assert {"windows.keep_last", "triggers.early", "restart.fixed_delay", "errors.JobError"} <= set(placed)


def test_what_most_programs_write_is_a_short_list() -> None:
    special = {"lesson", "watch", *reference.TITLES["Architectures of fault tolerance"], *reference.TITLES[CONNECTORS]}
    assert len([name for name in reference.exported() if "." not in name and name not in special]) <= 39


def test_the_page_says_what_the_docstrings_say() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "write it anew with `make reference`"
