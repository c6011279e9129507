"""The verbs of a stepping job: ``step`` and ``fork``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.errors import SettingError
from workbench.jupyter.verbs.setting_words import settings

_DIGITS_MAX = 18
"""The maximum digits of a number of steps."""
UNTIL = {
    **{what: f"next_{what}" for what in ("record", "buffer", "barrier", "watermark")},
    **{what: f"until_{what}" for what in ("aligned", "checkpoint")},
    "window": "until_window_fires",
}
"""The events up to which ``%stream step`` can run."""


def step(job: Any, words: Sequence[str]) -> Any:
    """``step``, ``step 5``, ``step barrier``, ``step back 3``, ``step until "total > 5" sum``; shows the picture."""
    if not words:
        return job.stepper.step()
    what, *rest = words
    if what in UNTIL and not rest:
        return getattr(job.stepper, UNTIL[what])()
    if what == "until" and len(rest) == 2:
        condition, operator = rest
        return job.stepper.until(condition, operator)
    if what == "told" and len(rest) == 1:
        return job.stepper.until_told(rest[0])
    if what == "back" and len(rest) <= 1 and all(map(str.isdecimal, rest)):
        return job.stepper.back(*map(_steps, rest))
    if not what.isdecimal() or rest:
        raise SettingError(
            f"%stream step cannot take {' '.join(words)!r}: write a number of steps, one of {', '.join(UNTIL)}, "
            "'back STEPS', 'until \"CONDITION\" OPERATOR', or 'told \"WORDS\"'"
        )
    return job.stepper.step(_steps(what))


def _steps(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise SettingError(f"{digits[:_DIGITS_MAX]}... is too many steps: write fewer")
    return int(digits)


def fork(job: Any, words: Sequence[str]) -> Any:
    """``fork``, ``fork 12``, ``fork 12 buffer_timeout=5ms``."""
    at = _steps(words[0]) if words and words[0].isdecimal() else None
    return job.stepper.fork(at, **settings(words if at is None else words[1:])).stepper.scene()
