"""The table of verbs: their arguments, and the methods of ``Job`` that they call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import workbench as wb
from workbench.api.running.faults_by_records import FAULTS
from workbench.api.running.spark_lane import SPARK
from workbench.errors import JobError, SettingError, unknown
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.verbs.setting_words import LANE_SETTINGS, settings
from workbench.jupyter.verbs.stepping import fork, step
from workbench.jupyter.verbs.verb import Verb
from workbench.runtime.settings.architecture import CHOICES
from workbench.spark.masters import OFFERED


def _compare(job: Any, words: Sequence[str]) -> Any:
    """``compare delays other``, or ``compare delays snapshots acks task-dies:at=2000 checkpoint_interval=1s``."""
    if job.engine == "spark":
        raise JobError("a job on Spark cannot be compared: run its pipeline in the kernel")
    if len(words) == 1 and words[0] in wb.jobs():
        return wb.compare(job, wb.job(words[0]))
    kinds: dict[str, list[str]] = {"architecture": [], "fault": [], "setting": []}
    for word in words:
        head = word.partition(":")[0].lower()
        kind = "architecture" if head in (*CHOICES, SPARK) else "fault" if head in FAULTS else "setting"
        if kind == "setting" and "=" not in word:
            raise SettingError(unknown("job, architecture or fault", word, (*wb.jobs(), *CHOICES, SPARK, *FAULTS)))
        kinds[kind].append(word)
    return wb.compare(
        job,
        kinds["architecture"],
        faults=kinds["fault"] or None,
        replace=True,
        **settings(kinds["setting"], LANE_SETTINGS),
    )


def _report(job: Any, words: Sequence[str]) -> Any:
    return job.report(words[0] if words else f"{job.name}-report.html")


def _fail(job: Any, words: Sequence[str]) -> Any:
    """``aggregate[1]`` is a task, ``tm-0/slot-1`` a slot, ``tm-1`` a TaskManager, ``coordinator`` the job's master."""
    what = words[0]
    if what == "coordinator":
        return job.faults.fail(coordinator=True)
    if what.startswith("tm-"):
        return job.faults.fail(slot=what) if "/" in what else job.faults.fail(taskmanager=what)
    return job.fail(task=what)


def _show(job: Any, words: Sequence[str]) -> Any:
    """``show delays`` shows the job, ``show delays graph`` one part of its dashboard."""
    return job.view(words[0]) if words else job


def _stall(job: Any, words: Sequence[str]) -> Any:
    """``stall counts`` stops a sink from taking records, ``stall counts off`` lets it continue."""
    switch = words[1].lower() if len(words) > 1 else "on"
    if switch not in ("on", "off"):
        raise SettingError(f"%stream stall OPERATOR is switched 'on' or 'off', not {words[1]!r}")
    return job.faults.stall(words[0], switch == "on")


def _state(job: Any, words: Sequence[str]) -> Any:
    """``state aggregate JFK``: what the operator holds for a key; without a key, some of the keys."""
    view = job.operator_state(words[0])
    return view.get(*words[1:]) if len(words) > 1 else view.keys()


def _savepoint(job: Any, words: Sequence[str]) -> Any:
    folder = job.savepoint(words[0])
    if folder:
        return folder
    return Advice(
        f"the savepoint {words[0]!r} is in memory and is lost with the kernel: start the job with --checkpoint-dir to "
        "keep it and to restore it later"
    )


def _restore(job: Any, words: Sequence[str]) -> Any:
    savepoint, *flags = words
    return job.restore(savepoint, allow_non_restored_state=True) if flags else job.restore(savepoint)


def _run_on(job: Any, words: Sequence[str]) -> Any:
    """``run-on delays spark local-cluster[2,1,1024]``: a job on Spark shows what Spark measures."""
    engine, *master = words
    new = job.run_again(engine=engine, spark=master[0] if master else None)
    return new.dashboard() if new.engine == "spark" else new


VERBS: dict[str, Verb] = {
    "status": Verb(lambda job, words: job.status(), "the current state of the job, in numbers"),
    "show": Verb(_show, "the job with its graph, or one view of it", "[VIEW]", 0, 1),
    "dashboard": Verb(lambda job, words: job.dashboard(), "the live view with its controls"),
    "lecture": Verb(
        lambda job, words: job.lecture(*words), "the live view in large type, one scene at a time", "[SCENE]", 0, 1
    ),
    "pause": Verb(lambda job, words: job.pause(), "stop reading; in-flight records are still processed"),
    "resume": Verb(lambda job, words: job.resume(), "continue after a pause, or continue a job of an earlier kernel"),
    "seek": Verb(lambda job, words: job.seek(words[0]), "go to a time of the history", "TIME", 1, 1),
    "step": Verb(step, "step a stepping job: a number, barrier, back 3, ...", "[WHAT]", 0, 3),
    "fork": Verb(
        fork, "a new job that continues from a past step, with different settings", "[STEP] [SETTING=VALUE]", 0, 9
    ),
    "compare": Verb(
        _compare,
        "side by side with another job; or its pipeline under several architectures, with faults",
        "OTHER | ARCHITECTURE ... [FAULT ...] [SETTING=VALUE ...]",
        1,
        29,
    ),
    "run-on": Verb(
        _run_on,
        "stop it, and run its pipeline from the beginning in the kernel or on Spark",
        "kernel|spark [MASTER]",
        1,
        2,
        last=OFFERED,
    ),
    "checkpoint": Verb(lambda job, words: job.checkpoint(), "take a checkpoint now"),
    "savepoint": Verb(_savepoint, "take a checkpoint to keep", "SAVEPOINT", 1, 1),
    "savepoints": Verb(lambda job, words: job.savepoints(), "the savepoints from which it can be restored"),
    "restore": Verb(
        _restore,
        "run it again from a savepoint; the flag drops state that no operator can restore",
        "SAVEPOINT",
        1,
        1,
        flag="--allow-non-restored-state",
    ),
    "record": Verb(
        lambda job, words: job.record(*words),
        "restart it from a checkpoint, and record what a source reads from then on",
        "FOLDER [SOURCE]",
        1,
        2,
    ),
    "delete-savepoint": Verb(
        lambda job, words: job.delete_savepoint(words[0]),
        "delete a savepoint that is no longer needed",
        "SAVEPOINT",
        1,
        1,
    ),
    "fail": Verb(_fail, "crash a task, slot, TaskManager or the coordinator; the job recovers", "WHAT", 1, 1),
    "slow-down": Verb(
        lambda job, words: job.faults.slow_down(*words),
        "delay an operator after every buffer; 0ms ends it",
        "OPERATOR TIME",
        2,
        2,
    ),
    "stall": Verb(
        _stall, "stop an operator from taking records, until 'off'", "OPERATOR [on|off]", 1, 2, last=("on", "off")
    ),
    "plan": Verb(lambda job, words: job.graph(), "the tasks in their slots and the channels between them"),
    "state": Verb(_state, "the state of an operator for a key", "OPERATOR [KEY ...]", 1, 9),
    "late": Verb(lambda job, words: job.late_records(*words), "the latest late records", "[OPERATOR]", 0, 1),
    "letters": Verb(lambda job, words: job.dead_letters(), "the last records that could not be processed"),
    "report": Verb(_report, "write the recording to a file", "[FILE]", 0, 1),
    "stop": Verb(lambda job, words: job.stop(), "stop the job with a final checkpoint"),
    "cancel": Verb(lambda job, words: job.cancel(), "stop the job immediately, without a checkpoint"),
}
