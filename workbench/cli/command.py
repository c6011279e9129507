"""The parser of a sub-command, and the types of its options: durations, speeds, counts, paths."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from workbench.durations import parse_duration, parse_speed
from workbench.errors import MISSING, SettingError, remedy, told_by, unknown
from workbench.once import Once

Run = Callable[[argparse.Namespace], int]
"""Runs a command with its options and returns the exit code."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser with one-line errors, which refuses an option that is given twice unless it appends."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.register("action", None, Once)

    def error(self, message: str) -> NoReturn:
        """Print the message without the usage, refer to the help, and exit with code 2."""
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' lists the options\n")

    def does(self, run: Run, details: str) -> None:
        """Set the function and the help of a command.

        Args:
            run: called with the options.
            details: the description in the command's help.
        """
        self.description = details
        self.set_defaults(run=run)


def duration(option: str) -> Callable[[str], str]:
    """A parser of a duration option, which refuses an invalid value before anything starts."""

    def read(text: str) -> str:
        if text != "disabled":
            parse_duration(text, option)
        return text

    return read


def speed(text: str) -> str:
    """Parse a replay speed such as ``600x`` or ``max``."""
    parse_speed(text, "--speed")
    return text


def count(option: str, least: int = 1) -> Callable[[str], int]:
    """A parser of whole numbers of at least `least`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise SettingError(f"{option} is {text!r}: write a whole number") from None
        if number < least:
            raise SettingError(f"{option} is {number}: it must be at least {least}")
        return number

    return read


def _path(text: str, option: str) -> Path:
    from workbench.arguments import path_of  # imports Arrow, which the help does not need

    path = path_of(text, option).expanduser()
    with _refused(text, option):
        path.stat()
    return path


@contextmanager
def _refused(text: str, option: str) -> Iterator[None]:
    try:
        with suppress(*MISSING):
            yield
    except OSError as error:
        raise SettingError(f"{option} is {text!r}: {told_by(error)}; {remedy(error)}") from None


def readable_file(option: str) -> Callable[[str], Path]:
    """A parser of files to read; the command itself reports a missing one."""

    def read(text: str) -> Path:
        path = _path(text, option)
        if path.is_file():
            with _refused(text, option):
                path.open("rb").close()
        return path

    return read


def folder(option: str) -> Callable[[str], Path]:
    """A parser of folders, which need not exist yet."""

    def read(text: str) -> Path:
        path = _path(text, option)
        if path.exists() and not path.is_dir():
            raise SettingError(f"{option} is {text!r}, which is a file: name a folder")
        return path

    return read


def new_file(option: str) -> Callable[[str], Path]:
    """A parser of output files, which refuses a path that cannot be written before the work starts."""

    def read(text: str) -> Path:
        path = _path(text, option)
        if path.is_dir():
            raise SettingError(f"{option} is {text!r}, which is a folder: name a file")
        if not path.parent.is_dir():
            raise SettingError(f"{option} is {text!r}, and there is no folder {str(path.parent)!r}: create it first")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise SettingError(f"{option} is {text!r}, which cannot be written: name a file in another folder")
        return path

    return read


def refuse_given(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse the first given option of `names`, because it would have no effect.

    Args:
        options: options that were not given are None, False or an empty list.
        names: Python names of options.
        why: the rest of the sentence after the option.

    Raises:
        SettingError: one of the options was given.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False and value != []:
            raise SettingError(f"--{name.replace('_', '-')} {why}")


def one_of(kind: str, names: tuple[str, ...]) -> Callable[[str], str]:
    """A parser of names; for an unknown name, the error suggests the nearest match and lists all valid ones."""

    def read(text: str) -> str:
        if text not in names:
            raise SettingError(unknown(kind, text, names))
        return text

    return read


def say(text: str = "") -> None:
    """Print a line and flush it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
