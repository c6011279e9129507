"""Converts the text options of a named connector to arguments, with an error for each invalid option."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from workbench.connectors.contract.secrets import check_no_literal
from workbench.errors import SettingError, unknown

Choice = TypeVar("Choice", bound=str)
_TRUTHS = {"true": True, "false": False}


class Options:
    """A user's options for one connector.

    Args:
        connector: the name of the connector, for errors.
        given: the names and values, as text.
        known: the known names; a name that ends in ``*`` is a prefix.

    Raises:
        SettingError: an unknown option, or a secret in plain text.

    Example:
        >>> options = Options("redis", {"url": "redis://localhost", "bounded": "true"}, ["url", "bounded"])
        >>> options.text("url"), options.flag("bounded")
        ('redis://localhost', True)
    """

    def __init__(self, connector: str, given: Mapping[str, str], known: Collection[str]) -> None:
        self.connector = connector
        self._given = dict(given)
        prefixes = tuple(name[:-1] for name in known if name.endswith("*"))
        for name, value in self._given.items():
            if name not in known and not (prefixes and name.startswith(prefixes)):
                raise SettingError(unknown(f"option of the connector {connector!r}", name, known))
            if not isinstance(value, str):
                raise SettingError(f"the option {name!r} of {connector!r} is {value!r}: write text in quotes")
            check_no_literal(name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._given

    def text(self, name: str, default: str | None = None) -> str:
        """The value of an option.

        Raises:
            SettingError: it is missing and has no default.
        """
        value = self._given.get(name, default)
        if value is None:
            raise SettingError(f"the connector {self.connector!r} needs the option {name!r}: add '{name}' = '...'")
        return value

    def optional(self, name: str) -> str | None:
        """The value of an option, or None if it is not given."""
        return self._given.get(name)

    def one_of(self, name: str, choices: Collection[Choice], default: Choice | None = None) -> Choice:
        """The value of an option with a fixed set of values.

        Raises:
            SettingError: the value is not valid; lists the valid ones.
        """
        value = self.text(name, default)
        for choice in choices:
            if choice == value:
                return choice
        raise SettingError(unknown(f"value of the option {name!r}", value, choices))

    def names(self, name: str) -> list[str]:
        """Values separated by ``;`` or ``,``."""
        found = [part.strip() for part in self.text(name).replace(";", ",").split(",")]
        if not all(found):
            raise SettingError(f"the option {name!r} is {self.text(name)!r}: separate the names by ';'")
        return found

    def whole(self, name: str, default: int | None = None) -> int | None:
        """A whole number.

        Raises:
            SettingError: it is not a whole number.
        """
        value = self._given.get(name)
        if value is None:
            return default
        try:
            return int(value)
        except ValueError:
            raise SettingError(f"the option {name!r} is {value!r}: write a whole number, such as '8'") from None

    def number(self, name: str) -> float | None:
        """A number, or None if it is not given.

        Raises:
            SettingError: it is not a number.
        """
        value = self._given.get(name)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            raise SettingError(f"the option {name!r} is {value!r}: write a number, such as '1000'") from None

    def flag(self, name: str, default: bool = False) -> bool:
        """``true`` or ``false``.

        Raises:
            SettingError: another value.
        """
        value = self._given.get(name)
        if value is None:
            return default
        if (truth := _TRUTHS.get(value.lower())) is None:
            raise SettingError(f"the option {name!r} is {value!r}: write 'true' or 'false'")
        return truth

    def below(self, prefix: str) -> dict[str, str]:
        """All options with this prefix; the prefix is removed from their names.

        Example:
            >>> Options("kafka", {"properties.client.id": "a"}, ["properties.*"]).below("properties.")
            {'client.id': 'a'}
        """
        return {name.removeprefix(prefix): value for name, value in self._given.items() if name.startswith(prefix)}
