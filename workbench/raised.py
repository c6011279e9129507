"""Describes exceptions and values of foreign code: one line of bounded length without secrets, whatever its methods do.

A user's exception may raise in its ``__str__``, return something that is not text, or return a hundred megabytes with
escape sequences. Describing it must neither fail the job, nor fill a log or a row.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from workbench.redaction import redacted

MESSAGE_MAX = 1_000
"""Characters of a foreign message that are shown."""
VALUE_MAX = 200
"""Characters of a foreign value that are shown."""
_READ_MAX = 64_000
"""Characters that are examined: a secret that begins in the shown part ends within these."""
_NAME_MAX = 80
_NOTES_MAX = 5
_NESTED_MAX = 100
_FULL_STOP = re.compile(r"(?<!\.)\.\s*$")
_NAME_OF: Any = type.__dict__["__name__"]
_DEEPEST = 2
_CAUSE_OF: Any = BaseException.__dict__["__cause__"]
_CONTEXT_OF: Any = BaseException.__dict__["__context__"]
_MEMBERS_OF: Any = BaseExceptionGroup.__dict__["exceptions"]


class EndedFromOutside(BaseException):
    """Ends a thread or a process on behalf of the runtime; code that handles failures of functions lets it pass."""


PASSING = (KeyboardInterrupt, EndedFromOutside)
"""Exceptions that are not failures of the function in which they are raised."""


def kind_of(value: object) -> str:
    """The name of a value's class.

    Example:
        >>> kind_of(MemoryError())
        'MemoryError'
    """
    return one_line(_NAME_OF.__get__(type(value)), _NAME_MAX)


def message_of(error: BaseException, most: int = MESSAGE_MAX) -> str:
    """The message of an error with its notes and, for a group, its first member; its class if it has no message.

    Args:
        error: of any class.
        most: characters.

    Example:
        >>> message_of(ValueError("no number in\\nline 3")), message_of(MemoryError())
        ('no number in line 3', 'MemoryError (no message)')
    """
    return _message(error, most) or f"{kind_of(error)} (no message)"


def described(error: BaseException) -> str:
    """The class of an error and its message.

    Example:
        >>> described(ZeroDivisionError("division by zero")), described(MemoryError())
        ('ZeroDivisionError: division by zero', 'MemoryError (no message)')
    """
    message = _message(error, MESSAGE_MAX)
    return f"{kind_of(error)}: {message}" if message else f"{kind_of(error)} (no message)"


def first_line_of(error: BaseException) -> str:
    """The first line of an error's message, without a full stop; stores and databases say more below it, such as the
    whole statement.

    Example:
        >>> first_line_of(OSError("When reading: no answer.\\nTraceback"))
        'When reading: no answer'
    """
    try:
        lines = str.__getitem__(str(error), slice(0, _READ_MAX)).strip().splitlines()
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001  `message_of` says what its class does
        lines = []
    return one_line(_FULL_STOP.sub("", lines[0]), MESSAGE_MAX) if lines else message_of(error)


def fact_of(error: BaseException) -> str:
    """Why something that came from outside was refused: of an error that nobody wrote for people, its class, too.

    Example:
        >>> fact_of(ValueError("it is empty")), fact_of(KeyError("uuid"))
        ('it is empty', "KeyError: 'uuid'")
    """
    is_bare = isinstance(error, LookupError | TypeError | AttributeError | ArithmeticError | RuntimeError | MemoryError)
    return described(error) if is_bare and not isinstance(error, NotImplementedError) else first_line_of(error)


def shown(value: object, most: int = VALUE_MAX) -> str:
    """The repr of a value; for a large value, no more is computed than is shown.

    Example:
        >>> shown({"n": 1}), shown("x" * 1_000_000, 5)
        ("{'n': 1}", "'xxxx...")
    """
    try:
        text = repr(_beginning(value, most, _DEEPEST))
    except PASSING:
        raise
    except BaseException as error:  # noqa: BLE001  whatever it raises, there is a value to be named
        return f"<{kind_of(value)} whose repr raised {kind_of(error)}>"
    return one_line(text, most, spaces=True)


def one_line(text: str, most: int, *, spaces: bool = False) -> str:
    """Text without line ends, control characters, surrogates and secrets; longer text is cut and ends with "...".

    Args:
        text: of any length.
        most: characters.
        spaces: keep runs of several spaces.

    Example:
        >>> one_line("no\\x1b[31m access\\n to s3://key:pa55@bucket", 100)
        'no\\\\x1b[31m access to s3://***@bucket'
    """
    head = str.__getitem__(text, slice(0, _READ_MAX))  # subclasses of str included, whose methods may do anything
    told = head if spaces and head.isprintable() else " ".join(head.split())
    if not told.isprintable():
        told = "".join(letter if letter.isprintable() else _escaped(letter) for letter in told)
    told = redacted(told)
    return told if len(told) <= most and str.__len__(text) <= _READ_MAX else f"{told[:most]}..."


def without_frames(error: Exception) -> Exception:
    """The error with only its message and causes: the frames of its tracebacks would keep values alive."""
    seen: set[int] = set()
    left: list[BaseException] = [error]
    while left:
        item = left.pop()
        if id(item) in seen:  # causes may form a cycle
            continue
        seen.add(id(item))
        BaseException.with_traceback(item, None)
        left += [each for of in (_CAUSE_OF, _CONTEXT_OF) if (each := of.__get__(item)) is not None]
        if issubclass(type(item), BaseExceptionGroup):
            left += _MEMBERS_OF.__get__(item)
    return error


def _message(error: BaseException, most: int) -> str:
    try:
        return one_line(_told(error), most)
    except PASSING:
        raise
    except BaseException as second:  # noqa: BLE001  whatever it raises, there is an error to be told
        return f"its __str__ raised {kind_of(second)}"


def _told(error: BaseException) -> str:
    text = str.__getitem__(str(error), slice(0, _READ_MAX))
    notes = getattr(error, "__notes__", ())
    if isinstance(notes, list) and notes:
        text += f" ({'; '.join(str.__getitem__(note, slice(0, MESSAGE_MAX)) for note in notes[:_NOTES_MAX])})"
    member: BaseException = error
    for _ in range(_NESTED_MAX):
        if not issubclass(type(member), BaseExceptionGroup):
            break
        member = _MEMBERS_OF.__get__(member)[0]
    return text if member is error else f"{text}, the first: {described(member)}"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _beginning(value: Any, most: int, depth: int) -> Any:
    """A value whose repr begins with the same `most` characters."""
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return value if len(value) <= most else value[:most]
    if depth and kind in (list, tuple):
        return kind(_beginning(item, most, depth - 1) for item in islice(value, most))
    if depth and kind is dict:
        return {
            _beginning(key, most, 0): _beginning(item, most, depth - 1) for key, item in islice(value.items(), most)
        }
    return value
