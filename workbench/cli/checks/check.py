"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and what was found.

    Attributes:
        name: what was looked at.
        ok: whether it is as it should be.
        found: what was found: a version, a place, or what is wrong.
        mend: what to do when it is not ok.
        needed: whether the workbench needs it; without the others something smaller is lost, which `mend` names.
    """

    name: str
    ok: bool
    found: str
    mend: str = ""
    needed: bool = True
