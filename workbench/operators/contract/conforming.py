"""Whether a spec has what a protocol asks for, asked once for each class: ``isinstance`` looks at every member anew."""

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
