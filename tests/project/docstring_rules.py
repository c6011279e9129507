"""Rules for the docstrings of public names, checked against signatures."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Example|Examples|Source)::?$")
ENTRY = re.compile(r"^(?P<names>\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): ?(?P<text>.*)$")

QUANTITY = re.compile(
    r"timeout|(?<!per_)interval$|lateness|orderness|idle_after|max_drift|delay|_us$|duration|^gap$|^size$|^slide$|^offset$|^span$"
    r"|^every$|^ttl$|^rate$|^speed$|buffer_size|^length$|^limit$|^capacity$"
)
"""Parameters that are an amount of something: of time, of records, of records in a time."""

UNIT = re.compile(
    r"\"\d+ ?(?:us|ms|s|min|h|d|x)\"|microsecond|second|duration|records|rows|per second|times|keys|requests|as for `"
)
"""How a description says of what: an example with its unit, or the unit in words."""

SOURCE = re.compile(
    r"\b(?:D[1-6]|E(?:[1-9]|10)|F1-(?:[1-9]|1[0-3])|F2-(?:[1-9]|1[0-6])|I(?:[1-9]|1[0-6]))\b|Flink's|Spark's|SQL's|"
    r"\b[A-Z]\w+(?: et al\.)?,? \(?(?:19|20)\d\d\b"
)
"""An ID of docs/concepts.md, the system whose concept it is, or a paper by author and year."""


@dataclass(frozen=True)
class Public:
    """A public name with what there is to say about it.

    Attributes:
        name: as people write it, ``"Stream.filter"``.
        text: its docstring, without indentation; empty when it has none.
        parameters: names of its parameters, without that of ``**settings``.
        takes_any: whether it takes further arguments by name.
        called: whether people call it; of some classes they only get instances.
    """

    name: str
    text: str
    parameters: tuple[str, ...] = ()
    takes_any: bool = False
    called: bool = True

    def section(self, *titles: str) -> dict[str, str]:
        """The entries of sections, by name; an entry for several names is there under each."""
        entries: dict[str, str] = {}
        current: list[str] = []
        inside = False
        for line in self.text.splitlines():
            if found := SECTION.match(line):
                inside = found[1] in titles
            elif inside and line and not line.startswith(" "):
                inside = False
            elif inside and (entry := ENTRY.match(line.removeprefix("    "))) and not line.startswith("     "):
                current = [name.lstrip("*") for name in entry["names"].split(", ")]
                entries |= dict.fromkeys(current, entry["text"])
            elif inside and line.strip():
                entries |= {name: f"{entries[name]} {line.strip()}" for name in current}
        return entries


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that this package has given a class."""
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        function = value.fget if isinstance(value, property) else value
        ours = callable(function) and str(getattr(function, "__module__", "")).startswith("workbench")
        if ours and not name.startswith("_"):
            yield name, value


def public(name: str, value: Any, *, called: bool = True) -> Public:
    """What is known of a public name."""
    text = inspect.getdoc(value) or ""
    if isinstance(value, property) or not callable(value) or not called:
        return Public(name, text, called=False)
    kinds = {key: item.kind for key, item in inspect.signature(value).parameters.items() if key not in ("self", "cls")}
    named = tuple(key for key, kind in kinds.items() if kind is not inspect.Parameter.VAR_KEYWORD)
    return Public(name, text, named, takes_any=len(named) < len(kinds))


def undescribed(names: Iterable[Public]) -> list[str]:
    """Parameters that no Args section describes; a function that takes any names describes at least one."""
    found = []
    for of in names:
        described = of.section("Args", "Attributes")
        found += [f"{of.name}({name})" for name in of.parameters if not described.get(name)]
        if of.takes_any and not described.keys() - set(of.parameters):
            found.append(f"{of.name}(**)")
    return found


def unknown_parameters(names: Iterable[Public]) -> list[str]:
    """What an Args section describes although no parameter is called so."""
    return [
        f"{of.name}({name})"
        for of in names
        if of.called and not of.takes_any
        for name in of.section("Args")
        if name not in of.parameters
    ]


def without_unit(names: Iterable[Public]) -> list[str]:
    """Amounts of which nobody says what of."""
    return [
        f"{of.name}({parameter})"
        for of in names
        for parameter, text in of.section("Args", "Attributes").items()
        if QUANTITY.search(parameter) and not UNIT.search(text)
    ]


def silent_about_errors(names: Iterable[Public]) -> set[str]:
    """What takes arguments and does not say which errors it raises."""
    return {of.name for of in names if of.parameters and not of.section("Raises")}


def unknown_errors(names: Iterable[Public], known: Callable[[str], Any]) -> list[str]:
    """Errors in a Raises section that are no exceptions."""
    found = []
    for of in names:
        for error in of.section("Raises"):
            kind = known(error) or getattr(builtins, error, None)
            if not (inspect.isclass(kind) and issubclass(kind, Exception)):
                found.append(f"{of.name}: {error}")
    return found


def without_source(names: Iterable[Public]) -> set[str]:
    """What does not say where its idea comes from."""
    return {of.name for of in names if not SOURCE.search(of.text)}
