"""What can be changed while a job runs: the methods of `Job` that tune, rescale, pause and seek."""

from __future__ import annotations

import threading
from datetime import datetime

from workbench.api.job.job_views import JobViews
from workbench.api.job.tuning import Tuning, plan_for
from workbench.api.pictures.status import Status
from workbench.connectors.live.hybrid_source import replayed
from workbench.durations import format_instant, parse_duration, parse_instant
from workbench.errors import JobError, SettingError
from workbench.runtime.checkpoints.rescaling import Rescale


class JobControls(JobViews):
    """The knobs of a job; `Job` inherits them. Whoever calls one goes on when it is in force."""

    def tune(self, **settings: object) -> Status:
        """Change settings of the running job, whose names are in ``wb.SETTINGS``.

        All are checked before any is applied; when this returns they are in force.

        Source: E4 for the buffer timeout, E7 for the checkpoint interval, which never changes results.

        Args:
            buffer_timeout: how long a record waits at most for its buffer to fill: ``"50ms"``; ``"0ms"``: every record
                ships at once; ``"disabled"``: only full buffers do.
            buffer_size: records in a full buffer, at most.
            checkpoint_interval: time between checkpoints, ``"5s"``, or ``"disabled"``.
            checkpoint_mode: ``"exactly-once"``: barriers are aligned; ``"at-least-once"``: nobody waits for a barrier,
                and some records count twice after a failure; ``"unaligned"``: exactly once, with barriers that overtake
                records; ``"stop-the-world"``: sources wait until nothing is in flight; or the name of another policy.
            aligned_checkpoint_timeout: an aligned checkpoint that has been under way for so long, such as ``"1s"``,
                goes on unaligned; ``"disabled"``: never.
            checkpoint_timeout: a checkpoint that takes longer, such as ``"10min"``, is aborted.
            min_pause: time between the end of a checkpoint and the next periodic one, such as ``"1s"``.
            max_concurrent_checkpoints: how many may be in progress at a time.
            tolerable_failed_checkpoints: how many may fail in a row before the job fails; ``"any"``: any number.
            retained_checkpoints: complete checkpoints that are kept.
            parallelism: see `rescale`.
            rate: records per second of each source that reads at a rate, or ``"max"``; of one of several sources:
                ``{"clicks": 50_000}`` or ``"clicks:50000"``. A hybrid source has two, ``clicks.history`` and
                ``clicks.live``.
            speed: seconds of a replayed history per second, ``"600x"``, or ``"max"``.

        Raises:
            SettingError: an unknown setting or a bad value.
            JobError: the job has ended, or cannot be rescaled.
        """
        self._check_running()
        tuning = Tuning.of(self._master, settings)
        if tuning.parallelism is not None:
            self._check_outside()
            plan_for(self._name, self._master, tuning.parallelism)
        self._apply(lambda: tuning.apply(self._master))
        return self.status() if tuning.parallelism is None else self.rescale(tuning.parallelism)

    def rescale(self, parallelism: int, *, timeout: str = "60s") -> Status:
        """Go on at another parallelism, from a checkpoint taken for it, without losing the place.

        Operators with a parallelism of their own keep it. It is no failure: nothing is processed twice.

        Source: Flink's rescaling from a savepoint; state is dealt anew by key group.

        Args:
            parallelism: subtasks of every operator, above zero.
            timeout: how long to wait until the job goes on so, such as ``"60s"``.

        Raises:
            SettingError: not a whole number above zero, or a timeout that is no duration.
            PlanError: the pipeline cannot run at this parallelism.
            JobError: the job has ended or is about to, it is starting again after a failure, a source cannot be read
                again from a position, the checkpoint failed or was not complete in time, or one of the job's own
                functions calls.
        """
        self._check_running()
        self._check_outside()
        master = self._master
        wanted = master.settings.with_value("parallelism", parallelism).parallelism
        graph = plan_for(self._name, master, wanted)
        before = master.settings.parallelism
        if wanted == before:
            return self.status()
        reasons: list[str | None] = []
        ended = threading.Event()

        def done(reason: str | None) -> None:
            reasons.append(reason)
            ended.set()

        master.call(lambda: self._master.rescale(Rescale(wanted, graph, done)))
        if not self._driver.wait_for(ended, parse_duration(timeout, "timeout") / 1e6):
            self._check_running()
            raise JobError(
                f"the job {self._name!r} is not yet at parallelism {wanted} after {timeout}"
                + (self._held_up() or ": its checkpoint is still under way, see job.checkpoints()")
            )
        if reasons[0] is not None:
            raise JobError(f"the job {self._name!r} stays at parallelism {before}: {reasons[0]}")
        return self.status()

    def pause(self) -> None:
        """Stop reading the sources; what is in flight goes on, and so do checkpoints.

        A paused source is not idle: it holds event time where it is.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        self._apply(lambda: self._master.sources.set_paused(True))

    def resume(self) -> None:
        """Read on after `pause`.

        Raises:
            JobError: the job has ended.
        """
        self._check_running()
        self._apply(lambda: self._master.sources.set_paused(False))

    def seek(self, position: str | datetime) -> None:
        """Go to another arrival time of the replayed history, forwards or backwards.

        Event time never goes back: after a jump backwards the records read again are late. A failure goes back to the
        latest checkpoint, to before a seek that came after it; one while the job restarts or is rescaled is followed
        as soon as it goes on.

        Source: F1-11 to F1-13: the past is played again as if it were live.

        Args:
            position: an arrival time, such as ``"2013-02-08 06:00"`` or a datetime; without a zone UTC is meant.

        Raises:
            SettingError: no time, or one behind the last record of every history, where the replay would end.
            JobError: the job has ended, or replays no history.
        """
        self._check_running()
        logs = [found.log for node in self._master.logical.nodes if (found := replayed(node.spec)) is not None]
        if not logs:
            raise JobError("only a replayed history can be sought, and this job replays none")
        position_us = parse_instant(position, "position")
        last_us = max(log.end_us for log in logs)
        if position_us > last_us:
            raise SettingError(
                f"position is {format_instant(position_us)}, behind the last record: the history arrived from "
                f"{format_instant(min(log.start_us for log in logs))} to {format_instant(last_us)}, and job.stop() ends"
                " the job"
            )
        self._apply(lambda: self._master.sources.seek(position_us, reading=self._master.reading))
