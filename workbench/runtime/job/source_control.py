"""What users set for the sources of a job: speed, rate, pause and seek, kept over the job's attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from workbench.connectors.contract.rate import Rate
from workbench.connectors.live.hybrid_source import replayed
from workbench.durations import format_instant, format_speed
from workbench.plan.logical import LogicalGraph
from workbench.runtime.job.life_cycle import LifeCycle
from workbench.runtime.messages.messages import Pause
from workbench.runtime.tasks.execution import Execution, JobServices


@dataclass(frozen=True, slots=True)
class Tempo:
    """How fast the sources of a job read.

    Attributes:
        speeds: replay speeds by uid, in seconds of history per second.
        rates: of the sources that have one, by name; records per second, None for full speed.
    """

    speeds: Mapping[str, float]
    rates: Mapping[str, float | None]


class SourceControl:
    """The sources of one job; every method is called on the master's turn.

    Args:
        logical: the graph, which knows where the replayed histories begin.
        services: clock, paces and rates.
        life: writes the job's log.

    Attributes:
        paused: a user has paused reading.
        sought: a user has requested a seek that the sources have not reached yet.
        held: the runtime has paused reading, so that nothing is read behind a checkpoint from which the job will
            resume.
    """

    def __init__(self, logical: LogicalGraph, services: JobServices, life: LifeCycle) -> None:
        self._logical = logical
        self._services = services
        self._life = life
        self._execution: Execution | None = None
        self._sought_us: int | None = None
        self.paused = False
        self.held = False

    @property
    def sought(self) -> bool:
        return self._sought_us is not None

    def set_speed(self, speed: float) -> None:
        """Replay at another speed."""
        for pace in self._services.paces.values():
            pace.set_speed(speed, self._now())
        self._poke()
        self._life.tell("tune", f"speed = {format_speed(speed)}")

    def set_rates(self, rates: Mapping[str, float | None]) -> None:
        """Read at most this many records per second from these sources; None is full speed."""
        for uid, per_second in rates.items():
            self._services.rates[uid].per_second = per_second
        self._poke()
        self._life.tell("tune", f"rate = {self.shown()['rate']}")

    def tempo(self) -> Tempo:
        """Speed and rate of each source, for another run to resume with."""
        services = self._services
        return Tempo(
            {uid: pace.speed for uid, pace in services.paces.items()},
            {uid: rate.per_second for uid, rate in services.rates.items()},
        )

    def take_over(self, tempo: Tempo) -> None:
        """Start with the tempo of an earlier run of this pipeline; called before the first attempt."""
        for uid, speed in tempo.speeds.items():
            self._services.paces[uid].set_speed(speed, self._now())
        self._services.rates.update({uid: Rate(per_second) for uid, per_second in tempo.rates.items()})

    def shown(self) -> dict[str, str | None]:
        """The current speed and rate, as users write them; None if no source has one."""
        paces = list(self._services.paces.values())
        rates = {uid: _rate(rate.per_second) for uid, rate in self._services.rates.items()}
        texts = set(rates.values())
        return {
            "speed": format_speed(paces[0].speed) if paces else None,
            "rate": ", ".join(texts if len(texts) == 1 else [f"{uid}:{text}" for uid, text in rates.items()]) or None,
        }

    def set_paused(self, paused: bool) -> None:
        """Pause or resume reading."""
        if paused == self.paused:
            return
        self.paused = paused
        for pace in self._services.paces.values():
            (pace.pause if paused else pace.resume)(self._now())
        self._poke()
        self._life.tell("tune", "paused" if paused else "resumed")

    def seek(self, position_us: int, *, reading: bool) -> None:
        """Go to another place of the replayed history.

        The seek waits while not all sources have tasks that are `reading`, or while their next tasks resume from a
        checkpoint that may be older than the seek: they would not know of it. It also waits while some sources have
            sent the
        barrier of a checkpoint and others have not: that checkpoint would contain the seek of some sources only.
        """
        self._sought_us = position_us
        self.go_where_sought(reading=reading)
        self._life.tell("tune", f"sought to {format_instant(position_us)}")

    def hold(self, held: bool, *, reading: bool = True) -> None:
        """Pause reading without a log entry; or resume it, with `reading` as in `seek`."""
        self.held = held
        self.go_where_sought(reading=reading)
        self._poke()

    def rewind(self, uids: Collection[str] | None = None) -> None:
        """The job restarts without a checkpoint: these sources, or all, replay their histories from the beginning."""
        for uid, pace in self._services.paces.items():
            if uids is not None and uid not in uids:
                continue
            node = next(node for node, own in self._logical.uids.items() if own == uid)
            replay = replayed(node.spec)
            assert replay is not None
            pace.restart(replay.log.start_us, self._now())

    def detach(self) -> None:
        """The tasks have ended."""
        self._execution = None

    def attach(self, execution: Execution) -> None:
        """An attempt starts: its sources are paused if those before were."""
        self._execution = execution
        self.held = False
        self.go_where_sought()
        if self.paused:
            self._poke()

    def go_where_sought(self, *, reading: bool = True) -> None:
        """Perform a pending seek, if there is one; `reading` as in `seek`."""
        if self._sought_us is None or self.held or not reading:
            return
        for pace in self._services.paces.values():
            pace.seek(self._sought_us, self._now())
        self._sought_us = None
        self._poke()

    def _poke(self) -> None:
        if self._execution is not None:
            self._execution.tell_sources(Pause(self.paused or self.held))

    def _now(self) -> int:
        return self._services.clock.now_us()


def _rate(per_second: float | None) -> str:
    return "max" if per_second is None else f"{per_second:.0f}" if per_second >= 1e6 else f"{per_second:g}"
