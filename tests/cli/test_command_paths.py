"""Paths that a command cannot use: one line that names the option or the path, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from unprivileged import unprivileged

from workbench.cli import main

OF_A_PATH = [
    ["serve"],
    ["demo", "--headless", "--directory"],
    ["soak", "--seconds", "1", "--directory"],
    ["simulate", "--seeds", "1", "--pipeline"],
    ["bench", "sweep", "--html"],
    ["bench", "grep", "--peers"],
]


def refused(argv: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    try:
        code = main([*argv, str(path)])
    except SystemExit as left:
        code = int(left.code or 0)
    line = capsys.readouterr().err
    assert code == 2, line
    assert line.count("\n") == 1, line
    assert str(path.parent) in line
    assert "unexpected" not in line
    return line


@pytest.mark.parametrize("argv", OF_A_PATH, ids=" ".join)
def test_a_file_in_place_of_a_folder(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text("a file")
    refused(argv, tmp_path / "a" / "x.py", capsys)


@pytest.mark.parametrize("argv", OF_A_PATH, ids=" ".join)
def test_a_folder_that_may_not_be_entered(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir(mode=0)
    try:
        with unprivileged():
            assert "Permission denied; change its permissions" in refused(argv, tmp_path / "a" / "x.py", capsys)
    finally:
        (tmp_path / "a").chmod(0o700)


@pytest.mark.parametrize("argv", OF_A_PATH, ids=" ".join)
def test_a_path_with_too_long_a_name(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "File name too long; check the path" in refused(argv, tmp_path / ("x" * 300), capsys)


@pytest.mark.parametrize("argv", [["serve"], ["simulate", "--seeds", "1", "--pipeline"]], ids=" ".join)
def test_a_file_that_may_not_be_read(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lesson.py").touch(mode=0)
    with unprivileged():
        assert "Permission denied; change its permissions" in refused(argv, tmp_path / "lesson.py", capsys)


def test_a_folder_to_soak_in_that_may_not_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir(mode=0o500)
    with unprivileged():
        line = refused(["soak", "--seconds", "1", "--directory"], tmp_path / "a", capsys)
    assert "which cannot be used (Permission denied): name another folder" in line
