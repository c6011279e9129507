"""Errors and values of foreign code as text: whatever their methods do, the text is a bounded line without secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workbench.errors import JobError, as_error, sentence_of, told_by
from workbench.raised import MESSAGE_MAX, described, first_line_of, kind_of, message_of, one_line, shown, without_frames


class NoTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class NumberError(Exception):
    def __str__(self) -> Any:
        return 3


class StopsError(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class Text(str):
    __slots__ = ()

    def split(self, *_: Any) -> Any:
        raise RuntimeError

    __getitem__ = __len__ = isprintable = split


class TextError(Exception):
    def __str__(self) -> str:
        return Text("fine")


class NotesError(Exception):
    __notes__: Any = 7


class NamelessType(type):
    @property
    def __name__(cls) -> str:
        raise RuntimeError


class NamelessError(Exception, metaclass=NamelessType):
    pass


def noted(error: Exception, *notes: str) -> Exception:
    for note in notes:
        error.add_note(note)
    return error


TOLD = [
    (ValueError("bad"), "ValueError: bad"),
    (MemoryError(), "MemoryError (no message)"),
    (ValueError(" \n "), "ValueError (no message)"),
    (KeyError("delay"), "KeyError: 'delay'"),
    (NoTextError(), "NoTextError: its __str__ raised ValueError"),
    (NumberError(), "NumberError: its __str__ raised TypeError"),
    (StopsError(), "StopsError: its __str__ raised SystemExit"),
    (TextError(), "TextError: fine"),
    (NotesError("x"), "NotesError: x"),
    (NamelessError("x"), "NamelessError: x"),
    (ValueError("two\nlines\tand  spaces"), "ValueError: two lines and spaces"),
    (ValueError("\x1b[31mred\x00 \ud800\u202e"), r"ValueError: \x1b[31mred\x00 \ud800\u202e"),
    (noted(ValueError("bad"), "in file a", "in row 3"), "ValueError: bad (in file a; in row 3)"),
    (
        ExceptionGroup("two", [ExceptionGroup("one", [KeyError("k")]), ValueError("v")]),
        "ExceptionGroup: two (2 sub-exceptions), the first: KeyError: 'k'",
    ),
    (OSError("no access to s3://key:pa55@bucket"), "OSError: no access to s3://***@bucket"),
    (SystemExit(3), "SystemExit: 3"),
]


@pytest.mark.parametrize(("error", "told"), TOLD, ids=[told[:40] for _, told in TOLD])
def test_an_error_is_told_by_its_class_and_message(error: BaseException, told: str) -> None:
    assert described(error) == told
    assert sentence_of(error) == told
    kind, _, message = told.partition(": ")
    assert message_of(error) == (message or kind)
    assert kind_of(error) == kind.partition(" ")[0]


@pytest.mark.parametrize("tell", [described, message_of, first_line_of, sentence_of])
def test_a_message_is_bounded(tell: Callable[[Exception], str]) -> None:
    told = tell(ValueError("s3://key:pa55" + 1_000_000 * "5" + "@bucket" + 10_000_000 * "x"))
    assert len(told) <= MESSAGE_MAX + len("ValueError: ...")
    assert "5555" not in told


def test_a_secret_that_would_be_cut_is_hidden_before() -> None:
    password = 100 * "5"
    text = f"{(MESSAGE_MAX - 50) * 'x'} s3://key:{password}@bucket"
    assert "555" not in one_line(text, MESSAGE_MAX)


def test_a_value_is_shown_without_writing_all_of_it() -> None:
    class Counted:
        written = 0

        def __repr__(self) -> str:
            Counted.written += 1
            return "counted"

    class Hostile:
        def __repr__(self) -> str:
            raise SystemExit

    assert shown({"n": 1, "t": "x"}) == "{'n': 1, 't': 'x'}"
    assert shown("a  b") == "'a  b'"
    assert shown([Counted() for _ in range(100_000)]).startswith("[counted, counted")
    assert Counted.written <= 200
    assert len(shown({"text": "x" * 50_000_000, "bytes": b"x" * 50_000_000})) == 203
    assert shown(Hostile()) == "<Hostile whose repr raised SystemExit>"
    assert shown({"x": Hostile()}) == "<dict whose repr raised SystemExit>"
    ring: list[Any] = []
    ring.append(ring)
    assert shown(ring).startswith("[[[")


@pytest.mark.parametrize("tell", [described, message_of, first_line_of, shown])
def test_an_interrupt_passes(tell: Callable[[Exception], str]) -> None:
    """It comes at any moment, and that is the person's."""

    class AskedError(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

        __repr__ = __str__

    with pytest.raises(KeyboardInterrupt):
        tell(AskedError())


def test_causes_that_go_in_a_circle_let_go_of_their_frames() -> None:
    class CarelessError(Exception):
        def __bool__(self) -> bool:
            raise RuntimeError

        def __setattr__(self, *_: Any) -> None:
            raise RuntimeError

    errors = [CarelessError("a"), CarelessError("b"), ValueError("c"), ExceptionGroup("d", [KeyError("e")])]
    raised = []
    for error in [*errors, errors[-1].exceptions[0]]:  # type: ignore[attr-defined]
        try:
            raise error
        except Exception as caught:  # noqa: BLE001  of any class
            raised.append(caught)
    for error, cause in zip(errors, [*errors[1:], errors[0]], strict=True):
        BaseException.__dict__["__cause__"].__set__(error, cause)
    assert without_frames(errors[0]) is errors[0]
    assert [error.__traceback__ for error in raised] == [None] * 5


def test_what_a_system_says_is_its_first_line() -> None:
    class OddError(OSError):
        strerror = property(lambda self: 7)  # type: ignore[assignment]

    assert told_by(OSError(28, "No space left on device")) == "No space left on device"
    assert told_by(OSError("\n\nfirst\nsecond")) == "first"
    assert told_by(OSError()) == "OSError (no message)"
    assert told_by(OddError("seven")) == "seven"
    assert first_line_of(NoTextError()) == "its __str__ raised ValueError"
    assert [first_line_of(OSError(text)) for text in ("no.\nmore", "schema=...", ". ")] == ["no", "schema=...", ""]


def test_what_would_end_a_program_is_told_as_well() -> None:
    class Quits(BaseException):
        def __repr__(self) -> str:
            raise ValueError

    error = as_error(Quits())
    assert isinstance(error, JobError)
    assert str(error).startswith("<Quits whose repr raised ValueError> was raised, which ends programs and not jobs")
