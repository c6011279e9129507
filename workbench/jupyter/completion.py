"""Tab completion for ``%stream`` and ``%%stream``: verbs, jobs, options, and their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

import workbench as wb
from workbench.api.launching.refusals import DRIVERS
from workbench.api.running.faults_by_records import FAULTS
from workbench.api.running.pipeline import ENGINES
from workbench.api.running.spark_lane import SPARK
from workbench.dashboard.contract.view_table import VIEWS
from workbench.dashboard.lecture.scene_table import SCENES
from workbench.jupyter.magics import OPTIONS
from workbench.jupyter.showing.docked import PLACES
from workbench.jupyter.verbs.resuming import RUN
from workbench.jupyter.verbs.running import WITHOUT_JOB
from workbench.jupyter.verbs.setting_words import LANE_SETTINGS
from workbench.jupyter.verbs.stepping import UNTIL
from workbench.jupyter.verbs.table import VERBS
from workbench.runtime.settings.architecture import CHOICES
from workbench.runtime.settings.architecture_knobs import ARCHITECTURE_KNOBS
from workbench.runtime.settings.table import TABLE
from workbench.spark.masters import OFFERED
from workbench.spark.watching.variables import queries_in, sessions_in

VALUES: Mapping[str, Collection[str]] = {
    "driver": DRIVERS,
    "engine": ENGINES,
    "master": OFFERED,
    **{name: each.words for name, each in TABLE.items()},
}
"""The values of settings and options that are words."""
_LINE = re.compile(r"\s*(?:[\w, ]+=\s*)?(%%?stream|%%stream_sql)\s(.*)")


def completer_of_streams(shell: Any) -> Any:
    """The matcher for a shell, whose variables hold the queries of Spark that can be watched."""

    @context_matcher(identifier="workbench.stream", priority=100)
    def complete_stream(context: CompletionContext) -> SimpleMatcherResult:
        """Completions at the cursor of a ``%stream`` line; none anywhere else."""
        line = _LINE.fullmatch(context.text_until_cursor)
        if line is None:
            return {"completions": []}
        *before, token = line[2].replace("=", " ").split(" ")
        before = [word for word in before if word]
        names = options(before) if line[1].startswith("%%") else candidates(before, shell.user_ns)
        begins = token, token.replace("-", "_")  # a setting may be written either way
        found = [SimpleCompletion(name, type="magic") for name in names if name.startswith(begins)]
        return {"completions": found, "suppress": bool(found), "matched_fragment": token}

    return complete_stream


def options(before: Sequence[str]) -> Iterable[str]:
    """Completions after ``%%stream`` and the words in `before`: values of the last option, else options; first the
    name of a job to replace."""
    if not before:
        return list(wb.jobs())
    last = before[-1]
    takes_value = any(last in flags and "action" not in details for flags, details in OPTIONS)
    if last == "--restore":
        directory = dict(pairwise(before)).get("--checkpoint-dir")
        return () if directory is None else _names_of(lambda: (found.name for found in wb.savepoints(directory)))
    if takes_value:
        return VALUES.get(last.lstrip("-").replace("-", "_"), ())
    return [flag for flags, _ in OPTIONS for flag in flags]


def candidates(before: Sequence[str], variables: Mapping[str, object]) -> Iterable[str]:
    """Completions after ``%stream`` and the words in `before`; `variables` are the user's."""
    if not before:
        return sorted([*VERBS, *WITHOUT_JOB])
    jobs = wb.jobs()
    verb, *rest = before
    if verb == "help":
        return () if rest else sorted([*VERBS, *WITHOUT_JOB])
    if verb == "display":
        return () if rest else PLACES
    if verb == "watch":
        on_spark = [name for name, job in jobs.items() if job.engine == "spark"]
        return () if rest else [*queries_in(variables), *sessions_in(variables), *on_spark]
    named = bool(rest) and rest[0] in jobs
    meant, own = ([jobs[rest[0]]], rest[1:]) if named else (list(jobs.values()), rest)
    found = [] if rest or verb == "list" else list(jobs)
    if verb == "resume" and not rest:
        found += [job.name for job in wb.found_jobs() if job.resumable and job.name not in jobs]
    if verb == "resume" and RUN not in rest:
        found.append(RUN)
    if verb in _WORDS:
        found += _WORDS[verb](meant, own)
    if verb in VERBS and VERBS[verb].flag and VERBS[verb].flag not in own:
        found.append(VERBS[verb].flag)
    return dict.fromkeys(found)


def _settings(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    """Settings, and after a setting its values."""
    if len(own) % 2:
        return VALUES.get(own[-1].replace("-", "_"), ())
    return [f"{setting}=" for setting in sorted((*wb.SETTINGS, *ARCHITECTURE_KNOBS))]


def _fork(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    return _settings(meant, own[1:] if own and own[0].isdecimal() else own)


def _savepoints(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    return () if own else _names_of(lambda: (name for job in _in_kernel(meant) for name in job.savepoints()))


def _names_of(read: Callable[[], Iterable[str]]) -> list[str]:
    """None if they cannot be read."""
    with suppress(wb.errors.WorkbenchError):
        return list(read())
    return []


def _operators(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    if own:
        return ()
    return [uid for frame in _frames(meant) for vertex in frame.vertices for uid, _, _ in vertex.operators]


def _stall(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    return ("on", "off") if len(own) == 1 else _operators(meant, own)


def _fail(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    if own:
        return ()
    frames = _frames(meant)
    slots = dict.fromkeys(task.slot for frame in frames for task in frame.tasks)
    managers = dict.fromkeys(slot.partition("/")[0] for slot in slots)
    return [*(task.name for frame in frames for task in frame.tasks), *slots, *managers, "coordinator"]


def _others(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    return () if own else [name for name, job in wb.jobs().items() if job not in meant]


def _compare(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    """Other jobs; architectures, faults and settings, and after a setting its values."""
    if own and own[-1].replace("-", "_") in LANE_SETTINGS:
        return VALUES.get(own[-1].replace("-", "_"), ())
    architectures = [name for name in (*CHOICES, SPARK) if name not in own]
    return [
        *_others(meant, own),
        *architectures,
        *FAULTS,
        *(f"{setting}=" for setting in sorted(LANE_SETTINGS)),
    ]


def _run_on(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    return ENGINES if not own else OFFERED if list(own) == ["spark"] else ()


def _step(meant: Sequence[Any], own: Sequence[str]) -> Iterable[str]:
    if len(own) == 2 and own[0] == "until":
        return _operators(meant, ())
    return () if own else (*UNTIL, "back", "told", "until")


def _frames(meant: Sequence[Any]) -> list[Any]:
    return [frame for job in _in_kernel(meant) if (frame := job.recorder.latest()) is not None]


def _in_kernel(meant: Sequence[Any]) -> list[Any]:
    return [job for job in meant if job.engine != "spark"]


_WORDS: Mapping[str, Callable[[Sequence[Any], Sequence[str]], Iterable[str]]] = {
    "show": lambda meant, own: () if own else VIEWS,
    "lecture": lambda meant, own: () if own else SCENES,
    "set": _settings,
    "fork": _fork,
    "restore": _savepoints,
    "delete-savepoint": _savepoints,
    "state": _operators,
    "late": _operators,
    "slow-down": _operators,
    "stall": _stall,
    "fail": _fail,
    "compare": _compare,
    "run-on": _run_on,
    "step": _step,
}
"""Completions of each verb after the job's name: called with the candidate jobs and the words so far."""
