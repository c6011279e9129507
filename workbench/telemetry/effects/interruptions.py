"""Reads interruptions from a job's master: from its events, its deployments and its sources."""

from __future__ import annotations

from workbench.runtime.checkpoints.checkpoint_record import Restore
from workbench.runtime.job.master import Master
from workbench.telemetry.effects.counts import Counts
from workbench.telemetry.effects.interruption_frames import InterruptionFrame
from workbench.telemetry.effects.interruption_log import OVER, InterruptionLog


class Interruptions:
    """The interruptions of one job; every method is called on its master's turn."""

    def __init__(self) -> None:
        self._log = InterruptionLog()
        self._positions = Counts(
            lambda task: (task.root,),
            lambda counters: counters.numRecordsIn,
            lambda ack: ack.records_in - ack.early_records,  # a source may save an earlier position than the barrier's
        )
        self._late = Counts(
            lambda task: task.links, lambda counters: counters.numLateRecordsDropped, lambda ack: ack.late_records
        )
        self._late_told: dict[str, int] = {}
        self._restore: Restore | None = None
        self._standing_by = False

    @property
    def lasts(self) -> bool:
        """Whether tasks are down, or sources read again what they had read before."""
        return self._log.lasts

    def leave(self, master: Master) -> None:
        """Forget a master, because another one takes over."""
        self._positions.note(master.coordinator.history)
        self._late.note(master.coordinator.history)

    def event(self, master: Master, time_us: int, kind: str, text: str) -> None:
        """Note a new line of the job's log."""
        log = self._log
        if kind == "failure":
            log.failed(time_us, master.life.circumstance, master.life.fact)
        elif kind == "tune" and text.startswith("parallelism = "):
            log.named(f"rescaled, {text}")
        elif kind == "notice" and master.restart_due_us is not None and master.state == "RUNNING":
            log.waits(time_us, master.restart_due_us)  # only a region has failed
        elif kind == "state":
            self._entered(master, time_us, text)

    def _entered(self, master: Master, time_us: int, state: str) -> None:
        log = self._log
        if state == "RESTARTING":
            if master.restart_due_us is None:
                log.rescaled(time_us)
            else:
                log.waits(time_us, master.restart_due_us)
        elif state == "INITIALIZING":
            if log.lasts:
                log.restores(time_us)
            elif master.restart_point is not None:
                log.starts(time_us, "take-over" if self._standing_by else "restore")
        elif state in OVER:
            log.ended(time_us)
        self._standing_by = state == "SUSPENDED"

    def deployed(self, master: Master, time_us: int) -> None:
        """Note that tasks run: all tasks of an attempt, or those of a restarted region."""
        positions, restore = self._positions, master.last_restore
        positions.note(master.coordinator.history)
        checkpoint = None if restore is None or restore is self._restore else restore.checkpoint_id
        self._restore = restore
        wanted, policy = positions.tasks(), master.settings.policy
        replays = policy.replays and policy.transactions is None  # transactions have saved their effects
        if wanted and not replays:
            checkpoint = None  # only the sinks restore it
        sources = () if master.execution is None else master.execution.sources
        again = positions.deployed(sources, checkpoint, replays=replays)
        self._late.note(master.coordinator.history)
        self._late.deployed(() if master.execution is None else master.execution.tasks, checkpoint, replays=replays)
        self._log.deployed(time_us, checkpoint, again if wanted else None, wanted, replays=replays or bool(checkpoint))

    def late(self) -> dict[str, int]:
        """The late records that each task has dropped in all attempts of the job. A record that is dropped again after
        a restore counts once."""
        counts = self._late.tasks()
        if counts.keys() != self._late_told.keys():
            self._late_told = {}  # rescaled: the counts belong to other tasks
        self._late_told = {name: max(count, self._late_told.get(name, 0)) for name, count in counts.items()}
        return self._late_told

    def sample(self, now_us: int) -> tuple[InterruptionFrame, ...]:
        """All remembered interruptions, oldest first."""
        if self._log.lasts:
            self._log.sample(now_us, self._positions.tasks())
        return self._log.interruptions
