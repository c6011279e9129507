"""The names of the topics or streams that a source reads."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.arguments import as_given, text_of
from workbench.errors import SettingError


def split_names(given: str | Sequence[str], argument: str, example: str) -> tuple[str, ...]:
    """The names that a user wrote: one or several.

    Args:
        given: of the user.
        argument: its name, such as ``topics``.
        example: of a name.

    Raises:
        SettingError: no names, an empty or a repeated name, or any other value.

    Example:
        >>> split_names("orders", "topics", "orders"), split_names(["a", "b"], "topics", "orders")
        (('orders',), ('a', 'b'))
    """
    several = (given,) if isinstance(given, str) else given
    if isinstance(several, list | tuple):
        names = tuple(text_of(name, argument, example) for name in several)
        if names and all(names) and len(set(names)) == len(names):
            return names
    raise SettingError(f"{argument} is {as_given(given)}: write one or several different names, such as {example!r}")
