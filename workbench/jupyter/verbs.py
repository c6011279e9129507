"""The verbs of ``%stream``: a table of their arguments and of the methods of ``Job`` that they call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import workbench as wb
from workbench.api.kept.job_record import Cell
from workbench.api.running.faults_by_records import FAULTS
from workbench.api.running.found_jobs import FoundJob
from workbench.api.running.spark_lane import SPARK
from workbench.errors import JobError, SettingError, unknown
from workbench.jupyter.advice import Advice
from workbench.jupyter.docked import choose_display
from workbench.jupyter.job_list import JobList
from workbench.jupyter.verb_help import one_verb, overview
from workbench.printable import printable
from workbench.runtime.settings.architecture import CHOICES, KNOBS
from workbench.runtime.settings.table import TABLE
from workbench.spark.masters import OFFERED
from workbench.spark.watching.variables import watch_variable

LANE_SETTINGS = tuple(name for name in TABLE if name != "fault_tolerance")
"""The settings that all lanes of ``compare`` may share."""
_DIGITS_MAX = 18
"""The maximum digits of a number of steps."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb.

    Attributes:
        run: called with the job and the words after its name; its result is displayed.
        about: one line of help.
        takes: the words after the job's name, as help shows them.
        least, most: the minimum and maximum number of these words.
        flag: a word that may appear anywhere among them; the verb receives it last. Empty: there is none.
        last: optional final words, after the required ones: the word before them is then not a job's name.
    """

    run: Callable[[Any, Sequence[str]], Any]
    about: str
    takes: str = ""
    least: int = 0
    most: int = 0
    flag: str = ""
    last: tuple[str, ...] = ()

    def split(self, verb: str, words: Sequence[str], jobs: Mapping[str, Any]) -> tuple[Any, Sequence[str]]:
        """The intended job and the verb's own words; the job's name may be left out.

        Raises:
            JobError: too many or too few words, no such job, or it is unclear which job is meant.
        """
        flags = [word for word in words if word and word == self.flag]
        words = [word for word in words if word not in flags]
        if len(words) > self.most + 1:
            raise JobError(f"%stream {verb} takes {self.usage(verb)}, not {len(words)} words")
        least = self.least + (len(words) > 0 and words[-1].lower() in self.last)
        named = len(words) > self.most or (len(words) > least and words[0] in jobs)
        name, rest = (words[0], words[1:]) if named else (None, words)
        if len(rest) < self.least:
            raise JobError(f"%stream {verb} needs {self.takes}: write '%stream {self.usage(verb)}'")
        return (wb.job(name) if name is not None else default_job(verb, jobs)), [*rest, *flags[:1]]

    def usage(self, verb: str) -> str:
        """The usage, for example ``seek [NAME] TIME``."""
        return " ".join(filter(None, [verb, "[NAME]", self.takes, f"[{self.flag}]" if self.flag else ""]))


def default_job(verb: str, jobs: Mapping[str, Any]) -> Any:
    """The job that is used when none is named: the only one, or else the newest that still runs.

    Raises:
        JobError: there is no job, or several have ended and none is running.
    """
    if not jobs:
        raise JobError("there is no job yet: start one with '%%stream NAME' above a cell that ends in a stream")
    running = [job for job in jobs.values() if not job.over]
    if running:
        return running[-1]  # jobs() is in the order of their start
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    raise JobError(f"no job is running: name one, '%stream {verb} NAME', from {', '.join(jobs)}")


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


UNTIL = {
    **{what: f"next_{what}" for what in ("record", "buffer", "barrier", "watermark")},
    **{what: f"until_{what}" for what in ("aligned", "checkpoint")},
    "window": "until_window_fires",
}
"""The events up to which ``%stream step`` can run."""


def _step(job: Any, words: Sequence[str]) -> Any:
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


def _fork(job: Any, words: Sequence[str]) -> Any:
    """``fork``, ``fork 12``, ``fork 12 buffer_timeout=5ms``."""
    at = _steps(words[0]) if words and words[0].isdecimal() else None
    return job.stepper.fork(at, **settings(words if at is None else words[1:])).stepper.scene()


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
    "step": Verb(_step, "take steps, of a stepping job: a number, barrier, back 3, ...", "[WHAT]", 0, 3),
    "fork": Verb(
        _fork, "a new job that continues from a past step, with other settings", "[STEP] [SETTING=VALUE]", 0, 9
    ),
    "compare": Verb(
        _compare,
        "with another job, side by side; or its pipeline under several architectures, with faults",
        "OTHER | ARCHITECTURE ... [FAULT ...] [SETTING=VALUE ...]",
        1,
        29,
    ),
    "run-on": Verb(
        _run_on,
        "stop it, and run its pipeline from the beginning in the kernel, or on Spark",
        "kernel|spark [MASTER]",
        1,
        2,
        last=OFFERED,
    ),
    "checkpoint": Verb(lambda job, words: job.checkpoint(), "take a checkpoint now"),
    "savepoint": Verb(_savepoint, "take a checkpoint to keep", "SAVEPOINT", 1, 1),
    "savepoints": Verb(lambda job, words: job.savepoints(), "the savepoints that it can be restored from"),
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
        "restart it from a checkpoint, and record what a source reads from now on",
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
        _stall, "keep an operator from taking records, until 'off'", "OPERATOR [on|off]", 1, 2, last=("on", "off")
    ),
    "plan": Verb(lambda job, words: job.graph(), "the tasks in their slots and the channels between them"),
    "state": Verb(_state, "what an operator holds for a key", "OPERATOR [KEY ...]", 1, 9),
    "late": Verb(lambda job, words: job.late_records(*words), "the latest late records", "[OPERATOR]", 0, 1),
    "report": Verb(_report, "write the recording to a file", "[FILE]", 0, 1),
    "stop": Verb(lambda job, words: job.stop(), "end the job with a final checkpoint"),
    "cancel": Verb(lambda job, words: job.cancel(), "end the job at once, without a checkpoint"),
}

RUN = "--run"
"""Makes ``%stream resume`` run the cell that it shows."""
WITHOUT_JOB = {
    "help": ("help [VERB]", "all verbs, or the usage of one"),
    "list": ("list", "every job"),
    "display": ("display [dock|cell]", "where %%stream shows dashboards: docked beside the notebook, or in the cell"),
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


Offer = Callable[[FoundJob, Cell, bool], Any]
"""Shows the cell of a found job, and runs it if requested."""


def show_cell(job: FoundJob, cell: Cell, run: bool) -> Any:
    """The cell, for a caller that cannot run it."""
    return Advice(printable(str(cell)))


def resume(words: Sequence[str], offer: Offer) -> Any:
    """``%stream resume``: continue a paused job, or a job of an earlier kernel from its latest checkpoint.

    The cell of a found job may come from someone else, with the directory: it is shown, and run only on request.

    Raises:
        JobError: no such job, several candidates, or a job that this kernel cannot continue.
    """
    jobs = wb.jobs()
    run = RUN in words
    words = [word for word in words if word != RUN]
    if len(words) > 1:
        raise JobError(f"%stream resume takes [NAME] [{RUN}], not {len(words)} words")
    here = {name: job for name, job in jobs.items() if not job.over}
    if (words and words[0] in here) or (here and not words):
        job = here[words[0]] if words else default_job("resume", here)
        return job.resume()
    left = wb.found_jobs()
    found = {job.name: job for job in left if job.resumable}
    if not words and len(found) != 1:
        if found:
            raise JobError(f"name the job to resume, '%stream resume NAME', from {', '.join(found)}")
        raise JobError("there is no job to resume: none is paused here, and none was left behind by an earlier kernel")
    name = words[0] if words else next(iter(found))
    if name not in found:
        for job in left:
            if job.name == name:
                raise JobError(f"{name!r} cannot be resumed: {job.facts[1]} ({job.facts[-1]})")
        raise JobError(unknown("job to resume", name, [*here, *found]))
    job = found[name]
    if job.record.cell is None:
        return Advice(f"{name!r} was started by Python: run its program again, and there\n    pipeline.{job.call}")
    return offer(job, job.record.cell, run)


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
    return VERBS[verb].run(job, own)
