"""The public API for a strict type checker: a sample program is accepted, and every mistake in it is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py").relative_to(ROOT)
REVEALED = re.compile(r":(\d+): note: Revealed type is \"(.*)\"$")
SAID = re.compile(r"reveal_type\(.*\)  # (.*)$")

pytestmark = pytest.mark.slow
"""Where ``make types`` has not run before, mypy reads the package, which takes a minute."""


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """What mypy says about the program, as strict as it is for the package itself.

    With the options and in the folder of ``make types``, so that it knows the package from there.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        told, wrong, _ = api.run([str(PROGRAM)])
    assert wrong == ""
    return [line for line in told.splitlines() if line.startswith(str(PROGRAM))]


def short(name: str) -> str:
    """A type without the modules of the package and of the builtins: ``dict[str, Stream]``."""
    return re.sub(r"\b(?:builtins|workbench(?:\.\w+)*)\.", "", name)


def test_the_program_is_right_and_every_mistake_in_it_is_found(messages: list[str]) -> None:
    assert [line for line in messages if ": error:" in line] == []


def test_types_are_what_the_program_says(messages: list[str]) -> None:
    revealed = {int(found[1]): short(found[2]) for line in messages if (found := REVEALED.search(line))}
    lines = (ROOT / PROGRAM).read_text(encoding="utf-8").splitlines()
    said = {at: found[1] for at, line in enumerate(lines, 1) if (found := SAID.search(line))}
    assert len(said) > 40
    assert revealed == said
