"""How a job ends: the methods of `Job` that stop it, cancel it and wait for its end."""

from __future__ import annotations

from workbench.api.job_handle import JobHandle
from workbench.durations import parse_duration
from workbench.errors import JobError


class JobEndings(JobHandle):
    """The ends of a job; `Job` inherits them."""

    def stop(self) -> None:
        """Take a last checkpoint, so that everything processed is committed, then end; returns at once.

        The checkpoint waits for a function, a sink or storage that does not return; ``job.status()["stalled"]`` names
        it, and `cancel` ends the job without it.

        When a part of the job fails before that checkpoint is complete, it starts again as its restart strategy says,
        and takes it then: it ends FAILED only where the strategy gives up.

        A job that does not run at that moment, because it is starting again after a failure, has nothing to take a
        checkpoint of: it ends as by `cancel`, and a run with ``resume=True`` goes on from its latest checkpoint.

        Source: Flink's stop with a savepoint.
        """
        if not self.over:
            self._check_process()
            self._master.call(lambda: self._master.stop())  # whoever is the master then

    def cancel(self) -> None:
        """End without a last checkpoint; returns at once.

        What no complete checkpoint covers is not committed; a run with ``resume=True`` does it again. A task that is in
        a call that does not return is left behind after ten seconds: the job is CANCELED, and nothing comes of that
        call any more, but its thread stays until it returns. What such a call does elsewhere, such as a sink's to a
        service, it may do beside a later run. Storage that does not return is waited for a minute; until it does, its
        checkpoint directory stays taken.

        Source: Flink's cancel, with its task.cancellation.timeout.
        """
        if not self._driver.ended.is_set():  # it may be over, and its last file be on the way to a store that hangs
            self._check_process()
            self._driver.leave_stalled_behind()
            self._master.call(lambda: self._master.cancel())  # as above

    def wait(self, timeout: str | None = None) -> str:
        """Wait until the job has ended; an interrupt ends the waiting, never the job.

        Args:
            timeout: how long, such as ``"60s"``; None: for ever.

        Returns:
            FINISHED or CANCELED.

        Raises:
            SettingError: a timeout that is no duration.
            JobError: the job failed, or has not ended within `timeout`; or one of the job's own functions, sinks or
                sources waits, for which the job waits in turn.
        """
        seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
        if not self.over:
            self._check_outside()
        if not self._driver.wait_for(self._driver.ended, seconds):
            raise JobError(f"the job {self._name!r} is still {self.state} after {timeout}{self._held_up()}")
        if self.state == "FAILED":
            life = self._master.life
            raise JobError(f"the job {self._name!r} failed: {life.fact} ({life.circumstance})")
        return self.state
