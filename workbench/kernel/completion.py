"""Tab completion for ``%stream`` and ``%%stream``: verbs, jobs, settings, tasks and options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

import workbench as wb
from workbench.kernel.magics import OPTIONS
from workbench.kernel.verbs import VERBS, WITHOUT_JOB

VIEWS = (
    "graph", "subtasks", "watermarks", "latency", "buffers", "checkpoints", "state", "sink", "events", "controls",
    "stepper",
)  # fmt: skip
"""What ``%stream show JOB`` takes; the dashboard itself is not imported to complete a word."""


@context_matcher(identifier="workbench.stream", priority=100)
def complete_stream(context: CompletionContext) -> SimpleMatcherResult:
    """What may stand at the cursor of a ``%stream`` line; nothing anywhere else."""
    magic, *words = context.text_until_cursor.replace("=", " ").split(" ")
    if magic not in ("%stream", "%%stream") or not words:
        return {"completions": []}
    *before, token = words
    before = [word for word in before if word]
    names = options(token) if magic == "%%stream" else candidates(before)
    found = [SimpleCompletion(name, type="magic") for name in names if name.startswith(token)]
    return {"completions": found, "suppress": bool(found), "matched_fragment": token}


def options(token: str) -> list[str]:
    """The options of ``%%stream``; its name and its values are for the person to invent."""
    return [flag for flags, _ in OPTIONS for flag in flags] if token.startswith("-") else []


def candidates(before: Sequence[str]) -> Iterable[str]:
    """The words that may follow ``%stream`` and the words in `before`."""
    if not before:
        return sorted([*VERBS, *WITHOUT_JOB])
    jobs = wb.jobs()
    verb, *rest = before
    names = [] if rest or verb == "list" else list(jobs)
    if verb == "resume" and not rest:
        names += [job.name for job in wb.found_jobs() if job.resumable and job.name not in jobs]
    if verb == "set":
        return [*names, *(f"{setting}=" for setting in sorted(wb.SETTINGS))]
    if verb == "show" and rest:
        return VIEWS
    meant = [jobs[rest[0]]] if rest and rest[0] in jobs else list(jobs.values())
    frames = [frame for job in meant if (frame := job.recorder.latest()) is not None]
    if verb == "fail":
        slots = dict.fromkeys(task.slot for frame in frames for task in frame.tasks)
        managers = dict.fromkeys(slot.partition("/")[0] for slot in slots)
        return [*names, *(task.name for frame in frames for task in frame.tasks), *slots, *managers, "coordinator"]
    if verb in VERBS and VERBS[verb].flag and VERBS[verb].flag not in rest:
        return [*names, VERBS[verb].flag]
    if verb in ("slow-down", "stall"):
        return [*names, *(uid for frame in frames for vertex in frame.vertices for uid, _, _ in vertex.operators)]
    return names
