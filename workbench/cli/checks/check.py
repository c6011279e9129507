"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and what was found.

    Attributes:
        name: what was checked.
        ok: whether the check passed.
        found: a version, a path, or what is wrong.
        mend: how to fix it if the check failed.
        needed: whether the workbench requires it; if not, `mend` says what is lost without it.
    """

    name: str
    ok: bool
    found: str
    mend: str = ""
    needed: bool = True
