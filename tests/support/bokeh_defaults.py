"""Bokeh computes and validates the default of a property at each access, half of what a test of a dashboard takes.

Here it does so once for each class, where the default is a value that nobody can change.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from bokeh.core.has_props import HasProps
from bokeh.core.property.bases import ParameterizedProperty, Property

UNCHANGING = (type(None), bool, int, float, str)


def remember() -> None:
    """Let Bokeh remember them in this process."""
    _remember_defaults()
    _remember_whether_stable()
    HasProps._overridden_defaults = classmethod(cache(HasProps._overridden_defaults.__func__))


def _remember_defaults() -> None:
    compute = Property.themed_default
    known: dict[tuple[int, type[HasProps], str], Any] = {}

    def themed_default(
        self: Property[Any], cls: type[HasProps], name: str, theme: dict[str, Any] | None, *, no_eval: bool = False
    ) -> Any:
        if no_eval or (theme is not None and name in theme):
            return compute(self, cls, name, theme, no_eval=no_eval)
        key = (id(self), cls, name)
        if key in known:
            return known[key]
        default = compute(self, cls, name, theme)
        given = cls._overridden_defaults().get(name, self._default)
        if isinstance(default, UNCHANGING) and isinstance(given, UNCHANGING):
            known[key] = default
        return default

    Property.themed_default = themed_default


def _remember_whether_stable() -> None:
    compute = ParameterizedProperty._may_have_unstable_default

    def may_have_unstable_default(self: ParameterizedProperty[Any]) -> bool:
        known: dict[str, Any] = vars(self)
        if "_is_unstable" not in known:
            known["_is_unstable"] = compute(self)
        return bool(known["_is_unstable"])

    ParameterizedProperty._may_have_unstable_default = may_have_unstable_default
