"""The public API as a strict type checker sees it: a sample program is right, and every mistake in it is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("typed_program.py")
REVEALED = re.compile(r":(\d+): note: Revealed type is \"(.*)\"$")
SAID = re.compile(r"reveal_type\(.*\)  # (.*)$")

pytestmark = pytest.mark.slow
"""Where mypy has not read the package yet, it takes a minute."""


@pytest.fixture(scope="module")
def messages() -> list[str]:
    """What mypy says about the program, as strict as it is for the package itself.

    The package's own modules are read, not reported on; what mypy knows of them is kept from run to run.
    """
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent", "--warn-unused-ignores"]
    cache = ROOT / ".mypy_cache" / "typed_program"
    told, wrong, _ = api.run([*options, "--cache-dir", str(cache), str(PROGRAM)])
    assert wrong == ""
    return told.splitlines()


def short(name: str) -> str:
    """A type without the modules of the package and of the builtins: ``dict[str, Stream]``."""
    return re.sub(r"\b(?:builtins|workbench(?:\.\w+)*)\.", "", name)


def test_the_program_is_right_and_every_mistake_in_it_is_found(messages: list[str]) -> None:
    assert [line for line in messages if ": error:" in line] == []


def test_types_are_what_the_program_says(messages: list[str]) -> None:
    revealed = {int(found[1]): short(found[2]) for line in messages if (found := REVEALED.search(line))}
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    said = {at: found[1] for at, line in enumerate(lines, 1) if (found := SAID.search(line))}
    assert len(said) > 40
    assert revealed == said
