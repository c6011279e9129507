"""A missing path is distinguished from a path without permission, on every version of Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unprivileged import unprivileged

from workbench.durable.kind import kind_of


def test_what_stands_at_a_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "broken").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    found = {name: kind_of(tmp_path / name) for name in ("", "file", "link", "pipe", "broken", "gone", "file/in it")}
    assert list(found.values()) == ["folder", "file", "file", "other", None, None, None]


def test_a_path_behind_a_closed_door_is_not_nothing(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    try:
        with unprivileged(), pytest.raises(PermissionError):
            kind_of(closed / "x")
    finally:
        closed.chmod(0o700)
