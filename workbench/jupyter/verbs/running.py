"""Runs ``%stream`` with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import workbench as wb
from workbench.arguments import as_flags
from workbench.errors import JobError, SettingError, unknown
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.showing.docked import choose_display
from workbench.jupyter.showing.job_list import JobList
from workbench.jupyter.verbs.resuming import Offer, resume, show_cell
from workbench.jupyter.verbs.setting_words import set_settings
from workbench.jupyter.verbs.table import VERBS
from workbench.jupyter.verbs.verb_help import one_verb, overview
from workbench.spark.watching.variables import watch_variable

WITHOUT_JOB = {
    "help": ("help [VERB]", "all verbs, or the usage of one"),
    "list": ("list", "every job"),
    "display": ("display [dock|cell]", "where %%stream shows dashboards: docked next to the notebook, or in the cell"),
    "set": ("set [NAME] SETTING=VALUE", "change a running job: buffer_timeout, checkpoint_interval, speed, ..."),
    "watch": ("watch [NAME]", "streaming queries written in PySpark: a variable with a query or a session"),
}
"""The usage and help of the verbs that parse their own words."""


def about_verbs(verb: str | None = None) -> str:
    """The help of one verb, or of all.

    Raises:
        SettingError: no such verb.
    """
    known = {**WITHOUT_JOB, **{name: (found.usage(name), found.about) for name, found in VERBS.items()}}
    if verb is None:
        return overview(known.values())
    if verb not in known:
        raise SettingError(unknown("verb", verb, known))
    return one_verb(verb, *known[verb])


def watch(words: Sequence[str], variables: Mapping[str, object]) -> Any:
    """``%stream watch``: a job on Spark by its name, or a query or session in a variable.

    Raises:
        SettingError: there is nothing of that name to watch, or it is unclear which one is meant.
    """
    if len(words) > 1:
        raise SettingError(f"%stream watch takes [NAME], not {len(words)} words")
    name = words[0] if words else None
    job = None if name is None or name in variables else wb.jobs().get(name)
    if job is not None and job.engine == "spark":
        return job.dashboard()
    return watch_variable(name, variables)


def run_verb(words: Sequence[str], offer: Offer = show_cell, variables: Mapping[str, object] | None = None) -> Any:
    """Run ``%stream`` with these words, the verb first; without any, list the jobs. `variables` are the user's.

    Raises:
        SettingError: no such verb, or a word that the verb cannot use.
        JobError: no such job, or it cannot do this now.
    """
    verb, *rest = words or ["list"]
    if verb == "set":
        return set_settings(rest)
    if verb == "resume":
        return resume(rest, offer)
    if verb == "display":
        return choose_display(rest)
    if verb == "watch":
        return watch(rest, variables or {})
    if verb == "help":
        if len(rest) > 1:
            raise SettingError(f"%stream help takes [VERB], not {len(rest)} words")
        return Advice(about_verbs(*rest))
    if verb == "list":
        if rest:
            raise JobError(f"%stream list takes no words, not {rest[0]!r}: '%stream show {rest[0]}' shows one job")
        return JobList.of(wb.jobs())
    if verb not in VERBS:
        raise SettingError(unknown("verb", verb, [*VERBS, *WITHOUT_JOB]))
    job, own = VERBS[verb].split(verb, rest, wb.jobs())
    with as_flags("%%stream"):
        return VERBS[verb].run(job, own)
