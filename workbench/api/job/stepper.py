"""Manual control of a job that runs with the stepping driver: forwards, backwards and forks."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Unpack

from workbench.api.job.registry import check_free, jobs, register
from workbench.api.job.run import Run
from workbench.api.kept.journal import Given
from workbench.api.pictures.scene_view import SceneView, Steps
from workbench.arguments import whole_number
from workbench.drivers.stepped.stepping import ReachedError, SteppingDriver
from workbench.errors import JobError, WorkbenchError
from workbench.expressions import Expression
from workbench.runtime.settings.setting import with_settings
from workbench.runtime.settings.table import OF_TUNE, TunableSettings
from workbench.runtime.storage import check_name
from workbench.telemetry.scene import scene_of

if TYPE_CHECKING:
    from workbench.api.job.job import Job


FRAMES = 300
"""A job that went back keeps the frames of this many earlier steps; older steps are repeated without frames."""


class Stepper:
    """The steps of a job that runs with ``driver="stepping"``; reached as ``job.stepper``.

    Each verb returns the picture of the moment at which it stopped. The picture is true if the awaited event has
    happened, and false if the job ended, or could not advance, before.

    Source: F2-5 to F2-15; a debugger's verbs.

    Example:
        >>> clicks = wb.Stream.from_table(pa.table({"user": ["a", "b"] * 50, "t": range(100)}), event_time="t")
        >>> counts = clicks.key_by("user").aggregate(n=wb.count()).sink_to(wb.TableSink("counts"))
        >>> job = counts.run("lesson", driver="stepping", buffer_size=1)
        >>> bool(job.stepper.next_record()), bool(job.stepper.next_buffer()), bool(job.stepper.next_watermark())
        (True, True, True)
        >>> job.checkpoint()
        >>> bool(job.stepper.next_barrier()), bool(job.stepper.until_aligned()), bool(job.stepper.until_checkpoint())
        (True, True, True)
        >>> job.cancel()
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def driver(self) -> SteppingDriver:
        """The stepping driver, with further verbs: ``job.stepper.driver.run_until(lambda: job.over)``.

        Raises:
            JobError: the job runs live.
        """
        driver = self._run.driver
        if not isinstance(driver, SteppingDriver):
            raise JobError(
                f'the job {self._run.name!r} runs live and cannot be stepped: run its pipeline with driver="stepping"'
            )
        return driver

    def __repr__(self) -> str:
        return f"<Stepper of job {self._run.name!r}>"

    def step(self, count: int = 1) -> Steps:
        """Take this many steps of a job that runs with ``driver="stepping"``; fewer if nothing can happen any more.

        Source: not in Flink; it shows F2-9 to F2-15.

        Args:
            count: steps; each takes at most one element of one task.

        Raises:
            JobError: the job runs live.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.DiscardSink())
            >>> job = pipeline.run("steps", driver="stepping")
            >>> len(job.stepper.step(3)), job.stepper.driver.run_until(lambda: job.over)
            (3, True)
        """
        driver = self.driver
        steps = (driver.step() for _ in range(whole_number(count, "count", 0)))
        return Steps([step for step in steps if step is not None], self._pictured(True))

    def scene(self) -> SceneView:
        """The picture of this moment: every record, watermark and barrier on its channel, and the operators' state.

        Source: F2-5 to F2-15.

        Raises:
            JobError: the job runs live.

        Example:
            >>> stream = wb.Stream.from_table(pa.table({"k": ["a", "b"], "n": [1, 2]}))
            >>> sums = stream.key_by("k").aggregate(total=wb.sum("n")).sink_to(wb.DiscardSink())
            >>> job = sums.run("scene", driver="stepping", buffer_size=1, buffer_timeout="0ms")
            >>> bool(job.stepper.next_buffer())
            True
            >>> job.stepper.scene().scene.task("aggregate[0]").state
            (('a', 'total=1'),)
            >>> job.cancel()
        """
        return self._pictured(True)

    def next_record(self) -> SceneView:
        """Continue until a task has taken a record, from its source or from a channel; see `scene`.

        Source: F2-5, where single records are visible.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.next_record())

    def next_buffer(self) -> SceneView:
        """Continue until a task has taken a buffer of records from a channel; see `scene`.

        Source: F2-3.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.next_buffer())

    def next_barrier(self) -> SceneView:
        """Continue until a checkpoint barrier has moved: left a source, or been taken by a task; see `scene`.

        Source: F2-9 to F2-15.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.next_barrier())

    def next_watermark(self) -> SceneView:
        """Continue until event time has advanced in a task; see `scene`.

        Source: F2-6.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.next_watermark())

    def until_aligned(self) -> SceneView:
        """Continue until the barriers of all inputs of a task have arrived, so that it takes its snapshot; see `scene`.

        Source: F2-12, F2-13.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.until_aligned())

    def until_checkpoint(self) -> SceneView:
        """Continue until a checkpoint is complete; see `scene`.

        Source: F2-15.

        Raises:
            JobError: the job runs live.
        """
        return self._pictured(self.driver.next_checkpoint())

    def until_window_fires(self, operator: str | None = None) -> SceneView:
        """Continue until a window has fired; see `scene`.

        Source: F1-6 to F1-10.

        Args:
            operator: the one with the windows; None: any.

        Raises:
            JobError: the job runs live, or has no such operator.

        Example:
            >>> table = pa.table({"k": ["a"] * 3, "t": [0, 1_000_000, 2_000_000]})
            >>> counts = wb.Stream.from_table(table, event_time="t").key_by("k").window(wb.tumbling("2s"))
            >>> pipeline = counts.aggregate(n=wb.count()).sink_to(wb.DiscardSink())
            >>> job = pipeline.run("fires", driver="stepping", buffer_size=1)
            >>> bool(job.stepper.until_window_fires())
            True
            >>> job.cancel()
        """
        return self._pictured(self.driver.until_window_fires(operator))

    def until(self, condition: Expression | str, operator: str) -> SceneView:
        """Continue until an operator has emitted a record for which a condition is true; see `scene`.

        Source: C, F1-4 to F1-5, whose records are shown one by one; like a debugger's conditional breakpoint.

        Args:
            condition: on the operator's records, ``"total > 5"`` or ``col("total") > 5``.
            operator: the one that emits the records: any except a sink.

        Raises:
            JobError: the job runs live, or has no such operator.
            ExpressionError: the condition does not fit the operator's records.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
            >>> job = numbers.sink_to(wb.DiscardSink()).run("until", driver="stepping", buffer_size=1)
            >>> bool(job.stepper.until("n = 2", "table")), bool(job.stepper.until("n = 9", "table"))
            (True, False)
        """
        return self._pictured(self.driver.until(condition, operator))

    def until_told(self, text: str) -> SceneView:
        """Continue until a step says something, such as ``"is replayed"``; see `scene`.

        Each step is described in words, also for the fault-tolerance architecture of the job: a root that is
        acknowledged, a batch that is committed, a duplicate that is refused.

        Source: C, D1 to D6, whose mechanisms are seen this way.

        Args:
            text: a part of a sentence, in capitals or not.

        Raises:
            JobError: the job runs live, or the text is empty.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]})).key_by("n").aggregate(m=wb.count())
            >>> acks, counted = wb.acks(granularity="record"), numbers.sink_to(wb.DiscardSink())
            >>> job = counted.run("told", driver="stepping", buffer_size=1, fault_tolerance=acks)
            >>> job.stepper.until_told("root 2 is acknowledged").scene.words
            '... Root 2 is acknowledged.'
            >>> job.cancel()
        """
        if not text.strip():
            raise JobError(
                "the text that a step should say is empty: write a part of a sentence, such as 'is replayed'"
            )
        return self._pictured(self.driver.until_told(text.strip()))

    # back and forks ----------------------------------------------------------------------------------------------

    def back(self, count: int = 1) -> SceneView:
        """Go back by `count` steps; see `scene`.

        The job runs again from its start, with every command at the step at which it was given; commands after the step
        that is reached are forgotten.

        Source: F2-7, sources that can be read again; deterministic re-execution, as in reversible debuggers.

        Args:
            count: steps; with more than have been taken, back to the start.

        Raises:
            JobError: the job runs live, has external effects, reads a source that cannot be read again, or took other
            steps this time.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
            >>> job = numbers.sink_to(wb.TableSink("n")).run("back", driver="stepping", buffer_size=1)
            >>> steps = job.stepper.step(5)
            >>> job.stepper.back(2).scene.step, job.stepper.step(2) == steps[3:]
            (3, True)
            >>> job.cancel()
        """
        driver = self.driver
        self._run.check_outside()
        with driver.lock:
            twin = self._at(max(0, driver.taken - whole_number(count, "count", 0)), self._run.name)
            _close(self._run)
            self._run.become(twin._run)
        return self._pictured(True)

    @with_settings(OF_TUNE, TunableSettings, defaults=False)
    def fork(self, step: int | None = None, name: str | None = None, **settings: Unpack[TunableSettings]) -> Job:
        """Create another job that has done the same up to a step, and continues from there with other settings.

        Source: E10, what-if: two versions from one moment.

        Args:
            step: a past one; None: this one.
            name: of the new job; None: this one's with a number.
            **settings: as for `Job.tune`; they apply there from that step on.

        Raises:
            JobError: as for `back`, or the step has not been taken yet.
            SettingError: an unknown setting or an invalid value.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
            >>> job = numbers.sink_to(wb.TableSink("n")).run("once", driver="stepping", buffer_size=1)
            >>> steps = job.stepper.step(4)
            >>> other = job.stepper.fork(2, checkpoint_interval="1s")
            >>> other.name, other.stepper.scene().scene.step >= 2, other.status()["checkpoint_interval"]
            ('once-2', True, '1s')
            >>> job.cancel(); other.cancel()
        """
        driver = self.driver
        self._run.check_outside()
        with driver.lock:
            at = driver.taken if step is None else whole_number(step, "step", -(2**63))
            if not 0 <= at <= driver.taken:
                raise JobError(f"step {at} has not been taken: the job is at step {driver.taken}")
            if name is None:
                name = next(free for n in range(2, 1_000) if (free := f"{self._run.name}-{n}") not in jobs())
            check_name(name, "job name")
            check_free(name)
            twin = self._at(at, name)
        try:
            if settings:
                twin.tune(**settings)
        except WorkbenchError:
            _close(twin._run)
            raise
        register(twin)
        return twin

    def _pictured(self, reached: bool) -> SceneView:
        driver = self.driver
        with driver.lock:
            words = driver.steps[-1].words if driver.steps else "Nothing has happened yet."
            scene = scene_of(
                self._run.master, driver.execution, driver.taken, words, driver.dead, driver.copies, driver.narrator
            )
            return SceneView(scene, reached)

    def _at(self, step: int, name: str) -> Job:
        """This job, repeated up to a step.

        Raises:
            JobError: it cannot be repeated, or took other steps.
        """
        run, driver = self._run, self.driver
        if isinstance(run.again, str):
            raise JobError(f"the job {run.name!r} cannot go back: {run.again}")
        assert run.journal is not None
        twin = run.again(name, max(0, step - FRAMES))
        again = twin.stepper.driver
        try:
            again.stop_at = step
            for given in run.journal.commands:
                if given.at >= step and step < driver.taken:
                    break
                again.retrace(driver.choices, given.at)
                again.stop_at = min(step, step if given.until is None else given.until)
                _give(twin, given)
                again.stop_at = step
            again.retrace(driver.choices, step)
            again.stop_at = None
            if step and again.digests[-1] != driver.digests[step - 1]:
                raise JobError("it took different steps this time")
        except JobError as error:
            _close(twin._run)
            raise JobError(
                f"the job {run.name!r} cannot go back: {error}; functions that use random numbers or read the clock "
                "cause this"
            ) from error
        return twin


def _close(run: Run) -> None:
    """Release the resources of a run that will not be stepped any more."""
    if run.master.execution is not None:
        run.master.execution.close()


def _give(job: Job, given: Given) -> None:
    """Repeat a command; one that was rejected then is rejected again."""
    try:
        attrgetter(given.name)(job)(*given.args, **given.kwargs)
    except (ReachedError, WorkbenchError):
        return
