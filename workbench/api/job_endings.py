"""How a job ends: the methods of `Job` that stop it, cancel it and wait for its end."""

from __future__ import annotations

from workbench.api.job_handle import JobHandle
from workbench.durations import parse_duration
from workbench.errors import JobError


class JobEndings(JobHandle):
    """The ends of a job; `Job` inherits them."""

    def stop(self) -> None:
        """Take a last checkpoint, so that everything processed is committed, then end; returns at once.

        A job that does not run at that moment, because it is starting again after a failure, has nothing to take a
        checkpoint of: it ends as by `cancel`, and a run with ``resume=True`` goes on from its latest checkpoint.

        Source: Flink's stop with a savepoint.
        """
        if not self.over:
            self._master.call(lambda: self._master.stop())  # whoever is the master then

    def cancel(self) -> None:
        """End without a last checkpoint; returns at once.

        What no complete checkpoint covers is not committed; a run with ``resume=True`` does it again.

        Source: Flink's cancel.
        """
        if not self.over:
            self._master.call(lambda: self._master.cancel())  # as above

    def wait(self, timeout: str | None = None) -> str:
        """Wait until the job has ended; an interrupt ends the waiting, never the job.

        Args:
            timeout: how long, such as ``"60s"``; None: for ever.

        Returns:
            FINISHED or CANCELED.

        Raises:
            SettingError: a timeout that is no duration.
            JobError: the job failed, or has not ended within `timeout`.
        """
        seconds = None if timeout is None else parse_duration(timeout, "timeout") / 1e6
        if not self._driver.wait_for(self._driver.ended, seconds):
            raise JobError(f"the job {self._name!r} is still {self.state} after {timeout}")
        if self.state == "FAILED":
            life = self._master.life
            raise JobError(f"the job {self._name!r} failed: {life.failure} ({life.circumstance})")
        return self.state
