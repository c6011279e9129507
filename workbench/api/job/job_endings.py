"""How a job ends: the methods of `Job` that stop it, cancel it and wait for its end."""

from __future__ import annotations

import math

from workbench.api.job.job_handle import PATIENCE_S, JobHandle
from workbench.arguments import true_or_false
from workbench.durations import parse_duration
from workbench.errors import JobError


class JobEndings(JobHandle):
    """The ends of a job; `Job` inherits them."""

    def stop(self, *, wait: bool = True, timeout: str = "60s") -> None:
        """Take a last checkpoint, so that everything processed is committed, then end, and wait for that: the next run
        can have its name and its checkpoint directory. A stepping job takes the steps to its end.

        An interrupt, or the end of `timeout`, ends the waiting; the job stops nevertheless. A call from one of the
        job's own functions, sinks or sources, for which the job waits in turn, returns at once.

        The checkpoint waits for a function, a sink or storage that does not return; ``job.status()["stalled"]`` names
        it, and `cancel` ends the job without it.

        When a part of the job fails before that checkpoint is complete, it starts again as its restart strategy says,
        and takes it then: it ends FAILED only where the strategy gives up.

        A job that does not run at that moment, because it is starting again after a failure, has nothing to take a
        checkpoint of: it ends as by `cancel`, and a run with ``resume=True`` goes on from its latest checkpoint.

        Source: Flink's stop with a savepoint.

        Args:
            wait: False: return at once.
            timeout: how long to wait for the end, such as ``"60s"``.

        Raises:
            SettingError: `wait` is neither True nor False, or a timeout that is no duration.
            JobError: it failed while it was stopping, or has not ended within `timeout`.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": range(1000)}), rate=10).sink_to(wb.TableSink("n"))
            >>> job = pipeline.run("stopped")
            >>> job.stop(); job.state
            'CANCELED'
            >>> again = pipeline.run("stopped")  # the name is free
            >>> again.cancel(wait=False); again.wait("60s")
            'CANCELED'
        """
        seconds, over = _patience(wait, timeout), self.over
        if not over:
            self._check_process()
            self._master.call(lambda: self._master.stop())  # the master at that time
        self._wait_for_end(seconds, PATIENCE_S)
        if seconds is not None and not over:
            self._check_failed()

    def cancel(self, *, wait: bool = True, timeout: str = "90s") -> None:
        """End without a last checkpoint, and wait for that, as `stop` does.

        What no complete checkpoint covers is not committed; a run with ``resume=True`` does it again. A task that is in
        a call that does not return is left behind after ten seconds: the job is CANCELED, and nothing comes of that
        call any more, but its thread stays until it returns. What such a call does elsewhere, such as a sink's to a
        service, it may do beside a later run. Storage that does not return is waited for a minute; until it does, its
        checkpoint directory stays taken.

        Source: Flink's cancel, with its task.cancellation.timeout.

        Args:
            wait: False: return at once.
            timeout: how long to wait for the end, such as ``"90s"``.

        Raises:
            SettingError: `wait` is neither True nor False, or a timeout that is no duration.
            JobError: it has not ended within `timeout`.
        """
        seconds = _patience(wait, timeout)
        if not self._driver.ended.is_set():  # it may be over, and its last file be on the way to a store that hangs
            self._check_process()
            self._driver.leave_stalled_behind()
            self._master.call(lambda: self._master.cancel())  # as above
            self._wait_for_end(seconds)

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
        self._check_failed()
        return self.state

    def _wait_for_end(self, seconds: float | None, stalled_s: float = math.inf) -> None:
        """Wait for what has been asked for, unless the job waits for the caller; None: not at all. For a call that does
        not return it waits `stalled_s` at most.

        Raises:
            JobError: it has not ended; says what it waits for.
        """
        if seconds is None or self._driver.within():
            return
        first = min(seconds, stalled_s)
        wait_for, ended = self._driver.wait_for, self._driver.ended
        if not wait_for(ended, first) and (
            first == seconds or self._driver.stalled() or not wait_for(ended, seconds - first)
        ):
            raise JobError(f"the job {self._name!r} is still {self.state}, and ends when it can{self._held_up()}")

    def _check_failed(self) -> None:
        if self.state == "FAILED":
            life = self._master.life
            raise JobError(f"the job {self._name!r} failed: {life.fact} ({life.circumstance})")


def _patience(wait: bool, timeout: str) -> float | None:
    """In seconds; None: nobody waits."""
    seconds = parse_duration(timeout, "timeout") / 1e6
    return seconds if true_or_false(wait, "wait") else None
