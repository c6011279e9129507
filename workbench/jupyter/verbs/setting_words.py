"""The words of settings: ``%stream set``, and what other verbs take."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import workbench as wb
from workbench.errors import SettingError, unknown
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.verbs.verb import default_job
from workbench.runtime.settings.architecture import KNOBS
from workbench.runtime.settings.table import TABLE

LANE_SETTINGS = tuple(name for name in TABLE if name != "fault_tolerance")
"""The settings that all lanes of ``compare`` may share."""


def settings(words: Sequence[str], known: Collection[str] | None = None) -> dict[str, str]:
    """Settings and their values in ``name=value`` or ``name value`` form; ``-`` may stand for ``_``.

    Args:
        words: the words.
        known: the settings that there are; None: those of a running job, and the arguments of architectures.

    Raises:
        SettingError: an unknown setting, or one without a value.
    """
    flat = _flat(words)
    knobs = KNOBS if known is None else ()
    known = wb.SETTINGS if known is None else known
    found: dict[str, str] = {}
    for name, value in zip(flat[::2], [*flat[1::2], ""], strict=False):
        setting = name.lstrip("-").replace("-", "_")
        if setting not in known and setting not in knobs:
            raise SettingError(unknown("setting", name, known))
        if not value:
            raise SettingError(f"{setting} has no value: write for example '%stream set {setting}=VALUE'")
        if setting in found:
            raise SettingError(f"{setting} is both {found[setting]!r} and {value!r}: write it once")
        found[setting] = value
    return found


def set_settings(words: Sequence[str]) -> Any:
    """``%stream set``: an odd number of words after splitting at ``=`` begins with the job's name."""
    jobs = wb.jobs()
    named = len(_flat(words)) % 2 == 1 and words[0].replace("-", "_") not in (*wb.SETTINGS, *KNOBS)
    job = wb.job(words[0]) if named else default_job("set", jobs)
    changes: Any = settings(words[1:] if named else words)
    before = job.status()
    if not changes:
        return before
    after = job.tune(**changes)
    shown = dict.fromkeys("fault_tolerance" if name in KNOBS and name not in before else name for name in changes)
    return Advice("\n".join(f"{job.name}: {name} {before.get(name)} → {after.get(name)}" for name in shown))


def _flat(words: Sequence[str]) -> list[str]:
    """Names and values in turn, of ``name=value``, ``name value`` and ``name = value``."""
    flat: list[str] = []
    is_value = False  # after an equals sign, the value is still to come
    for word in words:
        name, equals, value = word.partition("=")
        if is_value and not (equals and name):
            flat[-1] = word
            is_value = False
            continue
        if name:
            flat.append(name)
        if equals:
            flat.append(value)
        is_value = bool(equals) and not value
    return flat
