"""Checks of users' arguments: a wrong one is rejected with a sentence that has its value and the fix.

A sentence is read by the person who asked for a run, and names what that person can write: an option of `run` is an
argument in Python, and a flag of the magic in a notebook's cell. So whoever writes a sentence does not spell an option,
but calls `option`; the magics call `as_flags`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Integral
from os import PathLike, fsencode, fspath
from pathlib import Path

import numpy as np
import pyarrow as pa

from workbench.errors import SettingError

_SHOWN_MAX = 60
_COLLAPSED = re.compile(
    r"(abfss?|adl|az|file|ftp|gcs|gs|hdfs|https?|mock|oss|s3[an]?|sftp|viewfs|wasbs?):/(?!/)", re.IGNORECASE
)
"""A URI that was converted to a path, which removes one of its slashes."""
_URI = re.compile(rf"[a-z][a-z0-9+.-]+://|{_COLLAPSED.pattern}", re.IGNORECASE)

_magic: ContextVar[str] = ContextVar("magic", default="")
"""The magic through which the caller came; empty: Python."""

COUNT_MAX = 2**61
"""The largest number of records: results computed from it have 64 bits."""


def as_given(value: object) -> str:
    """A value for a sentence: its repr, or only its type if that is long.

    Example:
        >>> as_given(3), as_given(pa.table({"n": [1]}))
        ('3', 'a pyarrow.lib.Table')
    """
    text = repr(value)
    if len(text) <= _SHOWN_MAX and "\n" not in text and " object at 0x" not in text:
        return text
    kind = type(value)
    return f"a {kind.__qualname__}" if kind.__module__ in ("builtins", "__main__") else f"a {_name(kind)}"


def _name(kind: type) -> str:
    """The name with its package, without the modules between: ``pandas.DataFrame``."""
    package = kind.__module__ if kind.__module__.startswith("pyarrow") else kind.__module__.partition(".")[0]
    return f"{package}.{kind.__qualname__}"


def path_of(value: object, name: str) -> Path:
    """A path on this machine, given as text or a path object.

    Raises:
        SettingError: any other value, a URI, which would become a folder of that name here, or a path with invalid
            characters.

    Example:
        >>> path_of("flights.log", "path").name
        'flights.log'
    """
    text = fspath(value) if isinstance(value, str | PathLike) else value
    if not isinstance(text, str) or not text:
        raise SettingError(f"{name} is {as_given(value)}: write a path, such as 'data/flights'")
    if _URI.match(text):
        raise SettingError(f"{name} is {text!r}, which is a URI: write a local path, such as 'data/flights'")
    if not _is_path(text):
        raise SettingError(f"{name} is {text!r}, which has characters that a path cannot have: remove them")
    return Path(text)


def _is_path(text: str) -> bool:
    """Whether the system allows such a path: a NUL, or half of a surrogate pair, is not valid."""
    with suppress(UnicodeEncodeError):
        return "\0" not in text and bool(fsencode(text))
    return False


def is_utf8(path: str | PathLike[str]) -> bool:
    """Whether a path can be encoded in UTF-8; Arrow and DuckDB open no others.

    Example:
        >>> is_utf8("café.csv"), is_utf8("caf\\udce9.csv")
        (True, False)
    """
    text = fspath(path)
    return text.encode("utf-8", "ignore").decode() == text


def location_of(value: object, name: str) -> str:
    """A path or a URI, as text.

    Raises:
        SettingError: any other value, or a URI that was converted to a path.

    Example:
        >>> location_of("s3://bucket/jobs", "checkpoint_dir"), location_of(Path("jobs"), "checkpoint_dir")
        ('s3://bucket/jobs', 'jobs')
    """
    text = str(value)
    if not isinstance(value, str | PathLike) or not _is_path(text):
        path_of(value, name)  # rejects it
    if (collapsed := _COLLAPSED.match(text)) is not None:
        raise SettingError(
            f"{name} is {text!r}, a URI that lost a slash because Path removes it: write the URI as text, "
            f"'{collapsed[1]}://...'"
        )
    return text


def whole_number(value: object, name: str, least: int = 1) -> int:
    """A whole number of at least `least`, and at most `COUNT_MAX`.

    Raises:
        SettingError: any other value.

    Example:
        >>> whole_number(2, "channels")
        2
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingError(f"{name} is {as_given(value)}: write a whole number, such as {max(least, 2)}")
    number = int(value)
    if number < least:
        raise SettingError(f"{name} is {number}: it must be a whole number, at least {least}")
    if number > COUNT_MAX:
        raise SettingError(f"{name} is {number}, which is too large: write at most {COUNT_MAX}")
    return number


def true_or_false(value: object, name: str) -> bool:
    """A truth value; text such as ``"no"``, which Python treats as true, is rejected.

    Raises:
        SettingError: any other value.

    Example:
        >>> true_or_false(False, "incremental")
        False
    """
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name} is {as_given(value)}: write True or False")
    return bool(value)


def text_of(value: object, name: str, example: str) -> str:
    """Text.

    Raises:
        SettingError: any other value.

    Example:
        >>> text_of("delays", "name", "delays")
        'delays'
    """
    if not isinstance(value, str):
        raise SettingError(f"{name} is {as_given(value)}: write text, such as {example!r}")
    return value


def table_of(value: object, name: str) -> pa.Table:
    """An Arrow table.

    Raises:
        SettingError: any other value; says how to convert it to a table.

    Example:
        >>> table_of(pa.table({"n": [1]}), "table").num_rows
        1
    """
    if isinstance(value, pa.Table):
        return value
    raise SettingError(f"{name} is {as_given(value)}, but must be {a_table(value)}")


def a_table(value: object) -> str:
    """What is to be passed instead of this value, for a sentence: a table, and how to convert the value to one.

    Example:
        >>> a_table([{"n": 1}])
        'a pyarrow.Table: pyarrow.Table.from_pylist(rows) converts a list of dicts'
    """
    package = type(value).__module__.partition(".")[0]
    fix = {
        "pandas": "pyarrow.Table.from_pandas(frame) converts it",
        "polars": "frame.to_arrow() converts it",
        "pyspark": "frame.toArrow() converts it",
    }.get(package, "pyarrow.table({'column': [1, 2]}) creates one")
    if isinstance(value, pa.RecordBatch):
        fix = "pyarrow.Table.from_batches([batch]) converts it"
    if isinstance(value, list):
        fix = "pyarrow.Table.from_pylist(rows) converts a list of dicts"
    return f"a pyarrow.Table: {fix}"


@contextmanager
def as_flags(magic: str) -> Iterator[None]:
    """Name options as flags of this magic in the messages of this block.

    Example:
        >>> with as_flags("%%stream"):
        ...     option("resume")
        '--resume'
    """
    token = _magic.set(magic)
    try:
        yield
    finally:
        _magic.reset(token)


def option(name: str, value: str = "True") -> str:
    """An option with its value, as the caller writes it.

    Args:
        name: of an argument of `run`.
        value: of it; ``"True"`` for a switch, empty for the name alone.

    Example:
        >>> option("resume"), option("restore", "SAVEPOINT"), option("checkpoint_dir", "")
        ('resume=True', 'restore=SAVEPOINT', 'checkpoint_dir')
    """
    if not _magic.get():
        return f"{name}={value}" if value else name
    flag = f"--{name.replace('_', '-')}"
    return flag if value in ("", "True") else f"{flag} {value}"


def verb(name: str, job: str) -> str:
    """A verb of a job, as the caller writes it.

    Example:
        >>> verb("stop", "delays")
        'job.stop()'
        >>> with as_flags("%%stream"):
        ...     verb("stop", "delays")
        "'%stream stop delays'"
    """
    return f"'%stream {name} {job}'" if _magic.get() else f"job.{name}()"


def run_call(name: str, options: Mapping[str, object]) -> str:
    """The call, or the line of the magic, that runs a job with these options; `True` is the value of a switch.

    Example:
        >>> run_call("delays", {"checkpoint_dir": "kept", "resume": True})
        "run('delays', checkpoint_dir='kept', resume=True)"
        >>> with as_flags("%%stream"):
        ...     run_call("delays", {"checkpoint_dir": "kept", "resume": True})
        '%%stream delays --checkpoint-dir kept --resume'
    """
    magic = _magic.get()
    if not magic:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return f"run({name!r}, {given})"
    return " ".join([magic, name, *(option(key, _word(value)) for key, value in options.items())])


def _word(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text else text
