"""How a job is kept and gone back to: the methods of `Job` that take checkpoints and restore savepoints."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from workbench.api.beginning.opening import matched
from workbench.api.beginning.restorable import check_restorable
from workbench.api.job.job_endings import JobEndings
from workbench.api.job.registry import forget, register
from workbench.arguments import true_or_false
from workbench.durations import parse_duration
from workbench.errors import JobError, WorkbenchError, unknown
from workbench.runtime.storage import check_name

if TYPE_CHECKING:
    from workbench.api.job.job import Job


DELETE_TIMEOUT_S = 60.0
"""What is written before it goes first."""


class JobSavepoints(JobEndings):
    """Checkpoints on demand, and the way back; `Job` inherits them."""

    def checkpoint(self) -> None:
        """Ask for a checkpoint now, beside the periodic ones; returns at once, see `checkpoints` for what became of it.

        Source: F2-9.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        self._apply(self._master.checkpoint)

    def savepoint(self, name: str, timeout: str = "60s") -> str:
        """Take a checkpoint that is kept until you delete it, and wait for it.

        Source: E10; Flink's savepoints.

        Args:
            name: of its folder: letters, digits, ``_``, ``-`` and ``.``.
            timeout: how long to wait until it is complete, such as ``"60s"``.

        Returns:
            Its folder; empty when checkpoints are kept in memory.

        Raises:
            CheckpointError: the name cannot be a file name.
            SettingError: a timeout that is no duration.
            JobError: it exists or is being taken already, failed, was not complete in time, the job ended before, or
                one of the job's own functions calls.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10)
            >>> slow = numbers.sink_to(wb.TableSink("numbers"))
            >>> import tempfile
            >>> job = slow.run("slow", checkpoint_dir=tempfile.mkdtemp())
            >>> folder = job.savepoint("before-fix")
            >>> job.savepoints()
            ['before-fix']
            >>> again = job.restore("before-fix")  # ends the job and goes back
            >>> job.state, again.name
            ('CANCELED', 'slow')
            >>> again.cancel(); again.wait("60s")
            'CANCELED'
        """
        self._check_running()
        check_name(name, "savepoint")
        self._check_outside()
        seconds = parse_duration(timeout, "timeout") / 1e6
        requests, done, reasons = self._master.requests, threading.Event(), []

        def over(reason: str) -> None:
            reasons.append(reason)
            done.set()

        asked = threading.Event()

        def ask() -> None:
            if not done.is_set():
                asked.set()
                self._master.checkpoint("savepoint", name)

        def withdraw() -> None:
            if not asked.is_set():
                requests.await_no_more(name, over)

        try:
            alone = requests.await_savepoint(name, over)
            # Only now: from here on nobody else's of that name can become complete.
            if self._master.storage.savepoint(name) is not None:
                raise JobError(f"the savepoint {name!r} exists already: choose another name")
            if not alone:
                raise JobError(f"the savepoint {name!r} is being taken already: wait for it, or choose another name")
            self._apply(ask)
        except BaseException:  # an interrupt comes anywhere: it is asked for by then, or never
            self._master.call(withdraw)
            raise
        self._driver.wait_for(done, seconds)
        manifest = self._master.storage.savepoint(name)
        if manifest is not None:
            return self._master.storage.path_of(manifest.place)
        if self.over:
            raise JobError(f"the savepoint {name!r} was not taken: the job ended before it ({self.state})")
        if reasons:
            raise JobError(f"the savepoint {name!r} was not taken: {reasons[0] or 'somebody has deleted it at once'}")
        why = self._held_up() or ": see job.checkpoints()"
        raise JobError(f"the savepoint {name!r} was not complete within {timeout}{why}")

    def savepoints(self) -> list[str]:
        """The names of the savepoints in this job's checkpoint directory, oldest first.

        Source: E10; Flink's savepoints.
        """
        return [manifest.place.rpartition("/")[2] for manifest in self._master.storage.savepoints()]

    def delete_savepoint(self, name: str) -> None:
        """Delete a savepoint of this job, with the files that only it needs; `wb.delete_savepoint` is for ended jobs.

        Source: E10; Flink's savepoints.

        Args:
            name: of the savepoint.

        Raises:
            JobError: there is none of that name, a failed job would go on from it, the job has ended, or it is not
                deleted within a minute.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10).sink_to(wb.DiscardSink())
            >>> job = numbers.run("tidy")
            >>> for name in ("first", "second"):
            ...     folder = job.savepoint(name)
            >>> job.delete_savepoint("first")
            >>> job.savepoints()
            ['second']
            >>> job.cancel(); job.wait("60s")
            'CANCELED'
        """
        if self.over:
            raise JobError(
                f"the job {self._name!r} has ended ({self.state}): wb.delete_savepoint(folder) deletes its savepoints"
            )
        self._check_running()
        names = self.savepoints()
        if name not in names:
            raise JobError(unknown("savepoint", name, names))
        done = threading.Event()
        problems: list[str] = []

        def discarded(result: Exception | None) -> None:
            if result is not None:
                problems.append(f"the savepoint {name!r} could not be deleted: {result}")
            done.set()

        def delete() -> None:
            place, master = f"savepoints/{name}", self._master
            start = master.restart_point
            if start is not None and start.place == place:
                problems.append(f"the job would go on from {name!r} after a failure: let it take a checkpoint first")
                done.set()
            else:
                self._driver.submit(lambda: master.storage.discard(place), discarded)

        self._master.call(delete)
        if not self._driver.wait_for(done, DELETE_TIMEOUT_S):
            self._check_running()
            problems.append(f"the savepoint {name!r} is not deleted yet: a checkpoint may still be being written")
        if problems:
            raise JobError(problems[0])

    def restore(self, savepoint: str, *, allow_non_restored_state: bool = False) -> Job:
        """Stop this job and run its pipeline again from a savepoint, with the settings now in force.

        All files of the savepoint are read first: a job that cannot go back to it runs on. One that turns out not to
        be able to when it has been stopped, because a sink has committed rows in between, goes on from its latest
        checkpoint.

        Source: E10, F2-8.

        Args:
            savepoint: its name.
            allow_non_restored_state: drop state that no operator of the pipeline takes, instead of refusing it.

        Returns:
            The new job, under the same name.

        Raises:
            CorruptCheckpointError: a file of it is missing or damaged.
            CheckpointError: it has state of operators that the pipeline does not have, which was not allowed.
            SinkError: a sink has committed rows since, which would come twice.
            WorkbenchError: the job cannot start from it for another reason; see `Pipeline.run`.
            JobError: there is no such savepoint, or it is in memory only.
        """
        self._check_outside()
        allow_non_restored_state = true_or_false(allow_non_restored_state, "allow_non_restored_state")
        manifest = self._master.storage.savepoint(savepoint)
        if manifest is None:
            raise JobError(f"there is no savepoint {savepoint!r} in this job's checkpoint directory")
        if not self._master.storage.path_of(manifest.place):
            raise JobError(
                f"the savepoint {savepoint!r} is in memory, which goes with the job: run it with a checkpoint_dir"
            )
        taken, _ = matched(manifest, self._master.graph, allow_non_restored_state=allow_non_restored_state)
        check_restorable(self._master.storage, taken, self._master.logical)
        over = self.over
        self.cancel(wait=False)
        self._driver.wait_for(self._driver.ended, None)
        try:
            return self._rerun(savepoint, allow_non_restored_state)
        except WorkbenchError:
            if not over:
                self._go_on()
            raise

    def _go_on(self) -> None:
        """Run on from the latest checkpoint, under this handle, if that can be."""
        with suppress(WorkbenchError):  # the error that kept it from being restored is the one to raise
            again = self._rerun(None, True)
            forget(again)  # this handle is the one that is found by the name
            self._become(again)
            register(cast("Job", self))
