"""The controls: what they ask goes to the job's handle at once; what the job refuses is said beside the control."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from bokeh.models import Button

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import column, row
from workbench.dashboard.contract.actions import Answer, button, choice, field, group, offer
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.knobs import Knobs
from workbench.dashboard.contract.other_engine import OtherEngine
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.contract.slowness import HOW, Slowness
from workbench.dashboard.contract.steps import KNOBS
from workbench.dashboard.contract.timeline import Timeline
from workbench.dashboard.contract.view_table import VIEWS
from workbench.runtime.settings.architecture import CHOICES
from workbench.telemetry.frames import Frame, VertexFrame

PAUSE, RESUME = "❚❚ Pause", "▶ Resume"
STALL, RELEASE = "Stall", "Release"


def busiest(frame: Frame) -> str:
    """The operator that shows most when it is slowed down: the busiest one that receives from another task and is no
    sink; empty: there is no operator."""
    targets, sources = {edge.target for edge in frame.edges}, {edge.source for edge in frame.edges}

    def worth(vertex: VertexFrame) -> tuple[bool, bool, float]:
        is_sink = vertex.id not in sources and len(vertex.operators) == 1
        return not is_sink, vertex.id in targets, float(vertex.metrics.get("busyTimeMsPerSecond") or 0)

    return max(frame.vertices, key=worth).operators[0][0] if frame.vertices else ""


class ControlsPart(Part):
    """Sliders, fields and buttons for a job."""

    hint = "changes apply to the running job"
    follows_unseen = True

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._paused, self._stalled = False, frozenset[str]()
        self._kept: object = None
        self._proposes = True
        elsewhere = {name for view in VIEWS.values() for name in view.knobs}  # with what they change
        own = [knob.name for knob in KNOBS if knob.name not in elsewhere]
        self._slowness = Slowness()
        self.knobs = Knobs(easel, [knob.name for knob in KNOBS] if easel.alone else own)
        self.timeline = Timeline(self._seek, self._answer("seek"))
        self._buttons: list[Button] = []
        self.pause = self._button(
            PAUSE, self._pause_or_resume, "Pause the sources; records in flight are still processed"
        )
        self._make_checkpoints()
        self._make_failures()
        self._make_slowness()
        self._make_architectures()
        self._in_force = easel.texts.piece("Slowed down and stalled", "controls_in_force", role="note")
        of_kernel = [
            group(self.pause, self.checkpoint, self.stop, self.answers["run"].div, name="run"),
            group(
                self.savepoint_name,
                self.savepoint,
                self.savepoints,
                self.restore,
                self.answers["save"].div,
                name="save",
            ),
            group(
                self.task,
                self.fail,
                self.taskmanager,
                self.fail_taskmanager,
                self.fail_coordinator,
                self.answers["fail"].div,
                name="fail",
            ),
            group(
                self.operator,
                self.how,
                self.rest,
                self.slow_down,
                self.stall,
                self._in_force.div,
                self.answers["slow"].div,
                name="slow",
            ),
        ]
        again = group(self.architecture, self.run_again, self.answers["again"].div, name="again")
        # In columns of their own, which can be hidden: a style of the rows says how they are displayed.
        knobs, seek = column(self.knobs.models), column([self.timeline.model])
        actions = column([row(of_kernel, "controls_actions")])
        self.elsewhere = OtherEngine(easel, [knobs, seek, actions])
        on_spark, others = self.elsewhere.on_spark, row([again, self.elsewhere.group], "controls_actions")
        models = [knobs, on_spark.model, seek, actions, others, on_spark.picture.div]
        self.models = [column(models, spacing=8)]
        self.inputs = (
            *self.knobs.inputs, self.timeline.slider,
            self.savepoint_name, self.savepoints, self.task, self.taskmanager, self.operator, self.how, self.rest,
            self.architecture, *self.elsewhere.inputs,
        )  # fmt: skip

    def update(self, frame: Frame) -> None:
        over = frame.state in OVER
        self.knobs.update(frame)
        self.timeline.update(frame.replay, over)
        self._paused = frame.paused
        self.pause.label = RESUME if self._paused else PAUSE
        lists = self.task, self.taskmanager, self.operator, self.how
        for one in (*self._buttons, *lists, self.rest, self.savepoint_name):
            one.disabled = over
        offer(self.task, [task.name for task in frame.tasks], last=True)
        offer(self.taskmanager, sorted({task.slot.partition("/")[0] for task in frame.tasks}))
        self._offer_operators(frame)
        self._offer_savepoints(frame)
        self._slowness.update(frame)
        self._show_slowness(frame)
        self.elsewhere.update(over)
        for answer in self.answers.values():
            answer.update()

    # made once ---------------------------------------------------------------------------------------------------

    def _make_checkpoints(self) -> None:
        self.answers = {name: self._answer(name) for name in ("run", "save", "fail", "slow", "again")}
        self.checkpoint = self._button(
            "Checkpoint now", self._asks("run", lambda: self.easel.job.checkpoint(), "checkpoint requested"),
            "Trigger a checkpoint",
        )  # fmt: skip
        self.stop = self._button(
            "■ Stop job", self._asks("run", lambda: self.easel.job.stop(wait=False), "stop requested"),
            "Take a final checkpoint and end the job", kind="danger",
        )  # fmt: skip
        self.savepoint_name = field("Name of the savepoint", "savepoint name", 130)
        self.savepoint = self._button(
            "Savepoint", self._take_savepoint, "Take a savepoint: a checkpoint that is kept until you delete it"
        )
        self.savepoints = choice("Savepoint to restore")
        self.restore = self._button("Restore", self._restore, "Restart the pipeline from the savepoint")

    def _make_failures(self) -> None:
        self.task, self.taskmanager = choice("Task to fail"), choice("TaskManager to fail", 80)
        self.fail = self._button(
            "Fail task",
            self._asks("fail", lambda: self.easel.job.faults.fail(task=self.task.value), "task failure requested"),
            "Fail the task; the job recovers from its latest checkpoint",
        )  # fmt: skip
        self.fail_taskmanager = self._button(
            "Fail TaskManager",
            self._asks(
                "fail",
                lambda: self.easel.job.faults.fail(taskmanager=self.taskmanager.value),
                "TaskManager failure requested",
            ),
            "Fail all tasks of the TaskManager",
        )  # fmt: skip
        self.fail_coordinator = self._button(
            "Fail coordinator",
            self._asks("fail", lambda: self.easel.job.faults.fail(coordinator=True), "coordinator failure requested"),
            "Discard the job's coordinator; another one takes over",
        )  # fmt: skip

    def _make_slowness(self) -> None:
        self.operator = choice("Operator to slow down or stall")
        self.rest = field("Rest after each buffer", "or a rest", 80)
        self.how = choice("How much slower", 150)
        offer(self.how, HOW)
        self.slow_down = self._button("Slow down", self._slow, "Let the operator rest after each buffer")
        self.stall = self._button(
            STALL, self._stall_or_release, "Stop the operator from taking records until you release it"
        )
        self.operator.on_change("value", lambda _attribute, _old, _new: self._name_stall())

    def _make_architectures(self) -> None:
        self.architecture = choice("Architecture of fault tolerance", 150)
        offer(self.architecture, CHOICES)
        self.run_again = button(
            "Run again under it", self._run_again, "Stop the job, and run its pipeline from the beginning under it"
        )

    def _answer(self, label: str) -> Answer:
        return Answer(label, self.easel.texts, self.easel.background)

    def _button(self, label: str, press: Callable[[], object], hint: str, kind: str = "default") -> Button:
        made = button(label, press, hint, kind)
        self._buttons.append(made)
        return made

    def _asks(self, name: str, action: Callable[[], object], done: str) -> Callable[[], object]:
        return lambda: self.answers[name].ask(action, done)

    # asked -------------------------------------------------------------------------------------------------------

    def _seek(self, instant: str) -> bool:
        return self.timeline.answer.ask(lambda: self.easel.job.seek(instant), f"requested: seek to {instant}")

    def _pause_or_resume(self) -> None:
        job, paused = self.easel.job, self._paused
        self.answers["run"].ask(
            job.resume if paused else job.pause, "resume requested" if paused else "pause requested"
        )

    def _take_savepoint(self) -> None:
        job, name = self.easel.job, self.savepoint_name.value.strip()
        if not name:
            taken = set(self.savepoints.options)
            name = next(free for number in count(1) if (free := f"savepoint-{number}") not in taken)
        self.answers["save"].ask_slowly("savepoint", lambda: job.savepoint(name), f"savepoint {name} is complete")

    def _restore(self) -> None:
        job, name = self.easel.job, self.savepoints.value
        if not name:
            self.answers["save"].refuse("there is no savepoint yet: take one first")
            return
        self.answers["save"].ask_slowly(
            "restore", lambda: self.easel.follow(job.restore(name)), f"restored from savepoint {name}"
        )

    def _slow(self) -> None:
        job, uid = self.easel.job, self.operator.value
        rest = self.rest.value.strip() or self._slowness.rest(uid, self.how.value)
        self.answers["slow"].ask(
            lambda: job.faults.slow_down(uid, rest), f"requested: {uid} rests {rest} after each buffer, not each record"
        )

    def _stall_or_release(self) -> None:
        job, uid = self.easel.job, self.operator.value
        stall = uid not in self._stalled
        self.answers["slow"].ask(
            lambda: job.faults.stall(uid, stall), f"requested: {'stall' if stall else 'release'} {uid}"
        )

    def _run_again(self) -> None:
        job, name = self.easel.job, self.architecture.value
        self.answers["again"].ask_slowly(
            "run again", lambda: self.easel.follow(job.run_again(name)), f"runs again with fault_tolerance {name}"
        )

    # shown -------------------------------------------------------------------------------------------------------

    def _offer_savepoints(self, frame: Frame) -> None:
        """The savepoints are listed anew, off the pump, when one has been completed since they were listed last.

        A new coordinator does not know what the one before completed last, so they are listed after a restart as well.
        """
        complete = sum(c.kind == "savepoint" and c.state == "COMPLETED" for c in frame.checkpoints)
        known = complete, frame.metrics.get("numRestarts")
        if known == self._kept:
            return

        def listed(names: Any, problem: str | None) -> None:
            if problem is None and names is not None:
                offer(self.savepoints, list(names), last=True)

        if self.easel.background.run("savepoints", self.easel.job.savepoints, listed):
            self._kept = known

    def _offer_operators(self, frame: Frame) -> None:
        """Every operator; the busiest one is chosen as soon as it is known which that is, and then left alone."""
        is_known = any(vertex.metrics.get("busyTimeMsPerSecond") for vertex in frame.vertices)
        offer(self.operator, [uid for vertex in frame.vertices for uid, _, _ in vertex.operators], last=True)
        if self._proposes:
            self.operator.value = busiest(frame)
            self._proposes = not is_known

    def _show_slowness(self, frame: Frame) -> None:
        slowed, stalled = frame.settings.get("slow_down"), frame.settings.get("stall")
        self._stalled = frozenset(str(stalled).split(", ")) if stalled else frozenset()
        told = [f"slowed down: <b>{wording.html_text(slowed)}</b>"] if slowed else []
        told += [f"stalled: <b>{wording.html_text(stalled)}</b>"] if stalled else []
        said = "; ".join(told) or "no operator is slowed down or stalled"
        self._in_force.write(f"<p>in force: {said}</p>")
        self._name_stall()

    def _name_stall(self) -> None:
        self.stall.label = RELEASE if self.operator.value in self._stalled else STALL
