"""How messages name an option of `run`: as its argument in Python, and as the flag of the magic in a notebook's cell.

A message is read by the person who asked for the run, and must name what that person can write. So whoever writes a
message does not spell an option, but calls `option`; the magics call `as_flags`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_magic: ContextVar[str] = ContextVar("magic", default="")


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
