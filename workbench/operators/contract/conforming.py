"""Whether a spec implements a protocol, cached per class, because ``isinstance`` checks every member each time."""

from __future__ import annotations

from typing import Any

_CONFORMS: dict[tuple[type, Any], bool] = {}


def conforms(spec: object, protocol: Any) -> bool:
    """As ``isinstance(spec, protocol)``, for classes all of whose instances have the same members.

    Example:
        >>> from collections.abc import Sized
        >>> conforms([1, 2], Sized), conforms(12, Sized)
        (True, False)
    """
    case = (type(spec), protocol)
    known = _CONFORMS.get(case)
    if known is None:
        known = _CONFORMS[case] = isinstance(spec, protocol)
    return known
