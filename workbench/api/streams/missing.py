"""What a stream says about a method that it does not have: where the method is, or the nearest name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from workbench.arguments import as_given
from workbench.errors import PlanError
from workbench.origin import Origin, caller

_AFTER_KEY_BY = ("aggregate", "latest_by", "match", "process", "reduce")
_AS_ELSEWHERE = {
    "agg": "aggregate",
    "assign": "with_columns",
    "foreach": "sink_to",
    "from_pandas": "from_table",
    "partition_by": "key_by",
    "to_pandas": "collect",
    "where": "filter",
    "write": "sink_to",
}
"""Names of other libraries, and ours for the same."""


class MissingMethodError(PlanError, AttributeError):
    """A stream of this kind has no such method; also an AttributeError, so that ``hasattr`` works."""


class Hinting:
    """The base of the kinds of streams: an unknown method is refused with the likely fix and the user's own line."""

    if not TYPE_CHECKING:  # otherwise a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            raise MissingMethodError(f"a {kind} has no {name!r}: {_fix(self, name)}", origin=caller())


def _fix(stream: Any, name: str) -> str:
    meant = _AS_ELSEWHERE.get(name, name)
    own = _public(stream)
    if meant in own:
        return f"write {meant}(...)"
    inner = vars(stream).get("_stream")
    if inner is not None and meant in _public(inner):
        return f"call {meant}(...) on the stream before it is grouped, or on the Stream that aggregate(...) returns"
    if inner is None and meant in _AFTER_KEY_BY:
        return f"group the records first, as in key_by('column').{meant}(...)"
    if near := get_close_matches(meant, own, n=1):
        return f"did you mean {near[0]!r}?"
    return f"it has {', '.join(sorted(own))}"


def _public(stream: Any) -> list[str]:
    return [name for name in dir(type(stream)) if not name.startswith("_")]


def check_named(unnamed: Iterable[object], what: str, example: str, origin: Origin | None) -> None:
    """Reject values of columns that are given without the columns' names.

    Args:
        unnamed: the positional arguments.
        what: the method.
        example: of what to write instead.
        origin: the user's line.

    Raises:
        PlanError: there is one.
    """
    for value in unnamed:
        describe = getattr(value, "describe", None)
        shown = describe() if callable(describe) else as_given(getattr(value, "sql", value))
        raise PlanError(f"{what} got {shown} without a name for its column: write for example {example}", origin=origin)


def check_function(function: object, what: str, origin: Origin | None) -> None:
    """Reject anything that cannot be called.

    Raises:
        PlanError: with the value and the method.
    """
    if not callable(function):
        raise PlanError(f"{what} got {as_given(function)}: pass a function", origin=origin)
