"""What has changed in a section since it was last sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object that have other values, each whole; empty: none.

    Args:
        before: what was sent.
        after: what is so now, with the same fields.

    Example:
        >>> patch({"state": "RUNNING", "restarts": 0}, {"state": "RUNNING", "restarts": 1})
        {'restarts': 1}
    """
    return {name: value for name, value in after.items() if name not in before or before[name] != value}
