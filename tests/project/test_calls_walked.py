"""Calls all that is public without arguments, with one too many and with a misspelt one: the error names the call that
the program has written, and the note below it says how it is called and which argument is meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import EnumType
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from reference import exported

from workbench.traces.calls import advice

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
OBJECT = SimpleNamespace(_run=SimpleNamespace(journal=None))
"""In the place of the object of a method, which Python does not look at before the arguments."""


def public() -> Iterator[tuple[type | None, str, Callable[..., Any], bool]]:
    """The class, if any, name and function of each public callable, and whether it needs an object first."""
    for name, value in exported().items():
        if inspect.isclass(value):
            if not isinstance(value, EnumType) and value.__init__ is not object.__init__:
                yield value, "__init__", value, False
            for item in dir(value):
                made = inspect.getattr_static(value, item)
                if not item.startswith("_") and inspect.isroutine(getattr(value, item)):
                    yield value, item, getattr(value, item), inspect.isfunction(made)
        elif inspect.isfunction(value):
            yield None, name.rpartition(".")[2], value, False


def names_of(kind: type | None, name: str) -> list[str]:
    """As which Python may name a call: by the class that has the method."""
    return [name] if kind is None else [f"{base.__qualname__}.{name}" for base in kind.__mro__]


def wrong_calls(function: Callable[..., Any], needs_object: bool) -> Iterator[tuple[list[Any], dict[str, Any], str]]:
    """Arguments that the function refuses, with the keyword that a misspelt one means."""
    parameters = list(inspect.signature(function).parameters.values())[needs_object:]
    first = [OBJECT] if needs_object else []
    required = [each for each in parameters if each.default is each.empty and each.kind not in VARIADIC]
    kinds = {each.kind for each in parameters}
    if required:
        yield first, {}, ""
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        yield [*first, *[None] * (len(parameters) + 1)], {}, ""
    named = [each.name for each in parameters if each.kind not in (*VARIADIC, inspect.Parameter.POSITIONAL_ONLY)]
    code = getattr(inspect.unwrap(function), "__code__", None)  # of `run`, whose signature lists the settings
    takes_any = code is not None and code.co_flags & inspect.CO_VARKEYWORDS
    if named and not takes_any and inspect.Parameter.VAR_KEYWORD not in kinds:
        meant = max(named, key=len)
        yield first, {**{each.name: None for each in required if each.name != meant}, f"{meant}s": None}, meant


@pytest.mark.slow
def test_a_call_with_wrong_arguments_is_named_and_told_how_it_is_called() -> None:
    tried, wrong = 0, []
    for kind, name, function, needs_object in public():
        names = names_of(kind, name)
        if not str(getattr(function, "__module__", "")).startswith("workbench"):
            continue
        for given, named, meant in wrong_calls(function, needs_object):
            tried += 1
            told, note = "nothing", ""
            try:
                function(*given, **named)
            except TypeError as error:
                told, note = str(error), advice(error, error.__traceback__)
            place = next((each for each in names if told.startswith(f"{each}() ")), None)
            how = f"It is called as {place.removesuffix('.__init__')}(" if place else "?"
            if how not in note or (meant and f"did you mean '{meant}'?" not in note):
                wrong.append(f"{names[0]}(*{given}, **{named}): {told}; {note}")
    assert wrong == []
    assert tried > 500


@pytest.mark.parametrize(
    ("call", "note"),
    [
        ("wb.DiscardSink(nam='a')", r"did you mean 'name'\? It is called as DiscardSink\(name=\.\.\.\)"),
        ("wb.Stream.map()", r"It is called as Stream\.map\(function, schema=\.\.\., \*, "),
        ("wb.sum(1, 2, 3)", r"It is called as sum\("),
        ("wb.sum()", r"It is called as sum\("),
    ],
)
def test_a_notebook_shows_the_note_below_the_error_of_python(call: str, note: str) -> None:
    shell = InteractiveShell()
    shell.run_cell("import workbench as wb\n%load_ext workbench\n%colors nocolor")
    try:
        assert re.search(rf"TypeError: .*\n{note}", shown(shell, call))
        other = "def sum(only): pass\n"
        assert "It is called as" not in shown(shell, f"{other}sum(1, 2)")
        assert "It is called as" not in shown(shell, "len(1, 2)")
        assert "It is called as" not in shown(shell, "1 + 'a'")
    finally:
        shell.run_cell("%unload_ext workbench")


def shown(shell: InteractiveShell, cell: str) -> str:
    with capture_output() as printed:
        shell.run_cell(cell)
    return f"{printed.stdout}{printed.stderr}"
