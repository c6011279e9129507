"""What a sub-command is, and how its options read durations, speeds and counts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from workbench.durations import parse_duration, parse_speed
from workbench.errors import SettingError, unknown
from workbench.once import Once

Run = Callable[[argparse.Namespace], int]
"""Runs a command with its options; the result is the exit code."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line, and whose options are given once unless they say otherwise."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.register("action", None, Once)

    def error(self, message: str) -> NoReturn:
        """Print the message without the usage, name the help, and leave with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; '{self.prog} --help' shows what it takes\n")

    def does(self, run: Run, details: str) -> None:
        """Make it the parser of a command.

        Args:
            run: called with the options.
            details: the text of the command's own help.
        """
        self.description = details
        self.set_defaults(run=run)


def duration(option: str) -> Callable[[str], str]:
    """Reads a duration option; a value that is none is refused with a sentence before anything starts."""

    def read(text: str) -> str:
        if text != "disabled":
            parse_duration(text, option)
        return text

    return read


def speed(text: str) -> str:
    """Reads a replay speed such as ``600x`` or ``max``."""
    parse_speed(text, "--speed")
    return text


def count(option: str, least: int = 1) -> Callable[[str], int]:
    """Reads a whole number that is not below `least`."""

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
    from workbench.arguments import path_of  # knows Arrow, which the help does without

    return path_of(text, option).expanduser()


def folder(option: str) -> Callable[[str], Path]:
    """Reads a folder, which need not exist yet."""

    def read(text: str) -> Path:
        path = _path(text, option)
        if path.exists() and not path.is_dir():
            raise SettingError(f"{option} is {text!r}, which is a file: name a folder")
        return path

    return read


def new_file(option: str) -> Callable[[str], Path]:
    """Reads a file that will be written when the work is done; a place where it cannot be is refused before."""

    def read(text: str) -> Path:
        path = _path(text, option)
        if path.is_dir():
            raise SettingError(f"{option} is {text!r}, which is a folder: name a file")
        if not path.parent.is_dir():
            raise SettingError(f"{option} is {text!r}, and there is no folder {str(path.parent)!r}: make it first")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise SettingError(f"{option} is {text!r}, which cannot be written: name a file in another folder")
        return path

    return read


def refuse_given(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Refuse the first of these options that was given, because it would do nothing.

    Args:
        options: those of `names` that were not given are None, False or an empty list.
        names: of options as Python writes them.
        why: the rest of the sentence behind the option.

    Raises:
        SettingError: one was given.
    """
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False and value != []:
            raise SettingError(f"--{name.replace('_', '-')} {why}")


def one_of(kind: str, names: tuple[str, ...]) -> Callable[[str], str]:
    """Reads a name out of a list; another one gets the nearest match and all valid ones."""

    def read(text: str) -> str:
        if text not in names:
            raise SettingError(unknown(kind, text, names))
        return text

    return read


def say(text: str = "") -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
