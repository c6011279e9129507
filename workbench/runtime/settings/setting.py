"""One setting: how its value is parsed, shown, described and offered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from textwrap import TextWrapper
from typing import Any, TypeVar, get_type_hints

from workbench.arguments import whole_number
from workbench.durations import parse_duration
from workbench.errors import SettingError, unknown

_F = TypeVar("_F", bound=Callable[..., Any])
_PLACE = "**settings: "
_ENTRY = "__setting__"


@dataclass(frozen=True, slots=True)
class Setting:
    """An entry of the table of settings.

    Attributes:
        about: its effect, for help and documentation; the first clause, up to a semicolon, is used where one line is
            needed.
        parse: converts what a user wrote to the runtime's value; called with it and the setting's name.
        show: converts the value back to text.
        default: of `Pipeline.run`, as users write it; ``...``: that of `Settings`.
        run: `Pipeline.run` accepts it.
        tunable: it can be changed while a job runs.
        status: a job's status shows it.
        words: the values that are words; a live table, where entries can be added later.
        flag: a short option of ``%%stream``.
        title: of its control on the dashboard; empty: it has none.
        steps: the usual values, in order, which the control offers.
        absent: what the control shows where the setting does not apply to a job.
        name: as users write it.
    """

    about: str
    parse: Callable[[Any, str], Any]
    show: Callable[[Any], Any] = lambda value: value
    default: Any = ...
    run: bool = True
    tunable: bool = True
    status: bool = True
    words: Collection[str] = ()
    flag: str = ""
    title: str = ""
    steps: Collection[str] = ()
    absent: str = "does not apply"
    name: str = ""

    @property
    def help(self) -> str:
        """One line for a list of options."""
        brief = self.about.partition(";")[0].replace("``", "").replace('"', "").rstrip(".")
        if self.words:
            brief += f": {', '.join(self.words)}" if len(self.words) > 1 else f", or {''.join(self.words)}"
        return brief if self.default is None or self.default is True else f"{brief} (default {self.default})"

    @property
    def choices(self) -> tuple[str, ...]:
        """The usual values now, in order."""
        return tuple(self.steps)

    def scale(self, text: str) -> float:
        """A value as a number, for comparison: unlimited (``disabled``, ``max``) is above all others.

        Raises:
            SettingError: the setting does not accept this value.
        """
        value = self.parse(text, self.name)
        if isinstance(value, str):
            return float(tuple(self.words).index(value))
        return float("inf") if value is None else float(value)


def entry(about: str, parse: Callable[[Any, str], Any], **more: Any) -> dict[str, Setting]:
    """The metadata of a field of `Settings` that users set; arguments as for `Setting`."""
    return {_ENTRY: Setting(about, parse, **more)}


def entries(kind: type) -> Iterator[tuple[str, Setting]]:
    """The fields of a class that users set, each with its entry, completed by name and default."""
    for field in fields(kind):
        if (setting := field.metadata.get(_ENTRY)) is not None:
            default = setting.default
            if default is ...:
                default = None if field.default is None else setting.show(field.default)
            yield field.name, replace(setting, name=field.name.removesuffix("_us"), default=default)


def with_settings(settings: Mapping[str, Setting], types: type, *, defaults: bool = True) -> Callable[[_F], _F]:
    """Document these settings of a function that takes ``**settings``: in its docstring, where that says
    ``**settings``, and in its signature.

    Args:
        settings: by name.
        types: what users write for each, a TypedDict.
        defaults: show those of `Setting.default`; False: a setting that is left out stays unchanged, written ``...``.
    """

    hints = get_type_hints(types)

    def tell(function: _F) -> _F:
        before, place, after = (function.__doc__ or "").partition(_PLACE)
        indent = before[before.rfind("\n") + 1 :]
        wrapped = TextWrapper(120, initial_indent=indent, subsequent_indent=f"{indent}    ", break_on_hyphens=False)
        described = "\n".join(wrapped.fill(f"{name}: {each.about}") for name, each in settings.items())
        function.__doc__ = before + described.lstrip() + after[after.find("\n") :] if place else before
        own = inspect.signature(function)
        kinds = list(own.parameters.values())
        named = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=each.default if defaults else ..., annotation=hints[name]
            )
            for name, each in settings.items()
        ]
        function.__signature__ = own.replace(parameters=[*kinds[:-1], *named])  # type: ignore[attr-defined]
        return function

    return tell


def optional_duration(value: object, name: str) -> int | None:
    """Microseconds, or None for ``"disabled"`` (also None and ``"off"``)."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("disabled", "off", "none")):
        return None
    return parse_duration(value, name)  # type: ignore[arg-type]


def positive(value: object, name: str) -> int:
    """A whole number above zero, or text of one.

    Raises:
        SettingError: any other value.
    """
    if isinstance(value, str):  # from a magic or a control
        try:
            value = int(value)
        except ValueError:
            raise SettingError(f"{name} is {value!r}: write a whole number above zero") from None
    number = whole_number(value, name, -(2**63))
    if number < 1:
        raise SettingError(f"{name} is {value!r}: it must be above zero")
    return number


def one_of(words: tuple[str, ...]) -> Callable[[object, str], str]:
    """Reads one of these words."""

    def parse(value: object, name: str) -> str:
        if not isinstance(value, str) or value not in words:
            raise SettingError(unknown(name, str(value), words))
        return value

    return parse
