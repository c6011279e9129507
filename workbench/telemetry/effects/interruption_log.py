"""Follows a job through failures, restarts, rescalings and take-overs, phase by phase."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from workbench.telemetry.effects.interruption_frames import InterruptionFrame, InterruptionKind, Phase, PhaseFrame

KEPT = 20
"""Interruptions."""
OVER = ("FINISHED", "CANCELED", "FAILED")


class InterruptionLog:
    """The interruptions of one job.

    Example:
        >>> log = InterruptionLog()
        >>> log.failed(10_000_000, "sum[1] failed", "ZeroDivisionError: division by zero")
        >>> log.waits(10_004_000, 10_104_000)
        >>> log.restores(10_104_000)
        >>> log.deployed(10_116_000, 13, 2_340, {"read[0]": 5_000})
        >>> log.sample(11_000_000, {"read[0]": 3_900}); log.interruptions[-1].sentence.rpartition("; ")[2]
        '2,340 records are read again, 1,100 left'
        >>> log.sample(12_600_000, {"read[0]": 5_500}); print(log.interruptions[-1].sentence.replace("; ", ";\\n"))
        sum[1] failed: ZeroDivisionError: division by zero;
        canceled in 4 ms, restart after 100 ms;
        restored checkpoint 13 in 12 ms;
        2,340 records read again, caught up after 2.1 s
    """

    def __init__(self) -> None:
        self._frames: deque[InterruptionFrame] = deque(maxlen=KEPT)
        self._wanted: dict[str, int] = {}
        self._last: tuple[int, int] | None = None

    @property
    def interruptions(self) -> tuple[InterruptionFrame, ...]:
        """Oldest first."""
        return tuple(self._frames)

    @property
    def lasts(self) -> bool:
        """Whether the last interruption is not over yet."""
        return bool(self._frames) and self._frames[-1].state == "lasts"

    def failed(self, time_us: int, what: str, why: str) -> None:
        """Note a failure; a restart that fails belongs to the interruption that it should have ended."""
        if self.lasts and self._frames[-1].phases[-1].name != "catching up":
            last = self._frames[-1]
            self._turn_to("canceling", time_us, why=f"{last.why}; {what}: {why}" if last.why else f"{what}: {why}")
            return
        if self.lasts:
            self._end("failed again", time_us)
        self._open("failure", what, why, time_us, "canceling")

    def rescaled(self, time_us: int) -> None:
        """Note that the tasks have ended because the job continues with another parallelism."""
        if self.lasts:
            self._end("rescaled", time_us)
        self._open("rescaling", "rescaled", "", time_us, "canceling")

    def starts(self, time_us: int, kind: InterruptionKind) -> None:
        """Note that the job begins with a checkpoint: its own, a savepoint, or that of the process it stood by for."""
        what = "took over from another process" if kind == "take-over" else "started from a checkpoint"
        self._open(kind, what, "", time_us, "restoring")

    def waits(self, time_us: int, due_us: int | None) -> None:
        """Note that the tasks have ended; the next attempt begins at `due_us`."""
        if self.lasts and self._frames[-1].phases[-1].name != "waiting":  # else another coordinator already waits
            self._turn_to("waiting", time_us, due_us=due_us)

    def restores(self, time_us: int) -> None:
        """Note that the next attempt begins."""
        if self.lasts and self._frames[-1].phases[-1].name != "restoring":
            self._turn_to("restoring", time_us)

    def deployed(
        self,
        time_us: int,
        checkpoint: int | None,
        again: int | None,
        wanted: Mapping[str, int],
        *,
        replays: bool = True,
    ) -> None:
        """Note that the tasks run.

        Args:
            time_us: processing time.
            checkpoint: that they were restored from; None: they begin from the start.
            again: the number of records that the sources read again; None: not known.
            wanted: the former position of each source task, in records.
            replays: False if sources continue after the last record that they had read, without a checkpoint.
        """
        if not self.lasts:
            return
        last = self._frames[-1]
        if last.phases[-1].name == "waiting":  # a region restarted while others ran
            begin_us = time_us if last.due_us is None else min(max(last.due_us, last.phases[-1].start_us), time_us)
            self._turn_to("restoring", begin_us)
        self._wanted, self._last = dict(wanted), (time_us, again or 0)
        self._turn_to(
            "catching up", time_us, checkpoint=checkpoint, records_again=again, records_left=again or 0,
            replays=replays,
        )  # fmt: skip
        if not again:
            self._end("over", time_us)

    def sample(self, now_us: int, sources: Mapping[str, int]) -> None:
        """Note the current positions of the source tasks, in records."""
        if not self.lasts:
            return
        last = self._frames[-1]
        if last.phases[-1].name != "catching up" or self._last is None:
            self._frames[-1] = replace(last, sentence=_sentence(last, now_us))
            return
        left = sum(max(0, count - sources.get(source, 0)) for source, count in self._wanted.items())
        if left:
            self._last = now_us, left
            self._frames[-1] = replace(last, records_left=left)
            self._frames[-1] = replace(self._frames[-1], sentence=_sentence(self._frames[-1], now_us))
            return
        before_us, before = self._last
        beyond = sum(sources.get(source, 0) - count for source, count in self._wanted.items())
        share = before / (before + beyond) if before + beyond else 1.0
        self._end("over", before_us + round((now_us - before_us) * share), records_left=0)

    def named(self, what: str) -> None:
        """Give the last interruption its reason."""
        if self._frames:
            last = replace(self._frames[-1], what=what)
            self._frames[-1] = replace(last, sentence=_sentence(last, last.start_us))

    def ended(self, time_us: int) -> None:
        """Note the end of the job."""
        if self.lasts:
            self._end("ended", time_us)

    def _open(self, kind: InterruptionKind, what: str, why: str, time_us: int, phase: Phase) -> None:
        self._last = None
        frame = InterruptionFrame(
            kind, what, why, time_us, None, (PhaseFrame(phase, time_us),), None, None, None, 0, "lasts", ""
        )
        self._frames.append(replace(frame, sentence=_sentence(frame, time_us)))

    def _turn_to(self, phase: Phase, time_us: int, **changed: object) -> None:
        last = self._frames[-1]
        phases = (*last.phases[:-1], replace(last.phases[-1], end_us=time_us), PhaseFrame(phase, time_us))
        last = replace(last, phases=phases, **changed)  # type: ignore[arg-type]
        self._frames[-1] = replace(last, sentence=_sentence(last, time_us))

    def _end(self, state: str, time_us: int, **changed: object) -> None:
        last = self._frames[-1]
        phases = (*last.phases[:-1], replace(last.phases[-1], end_us=time_us))
        if phases[-1].name == "catching up" and phases[-1].start_us == time_us:
            phases = phases[:-1]
        last = replace(last, phases=phases, state=state, end_us=time_us, **changed)  # type: ignore[arg-type]
        self._frames[-1] = replace(last, sentence=_sentence(last, time_us))


def _sentence(frame: InterruptionFrame, now_us: int) -> str:
    part = frame.what.removesuffix(" failed")
    head = frame.why if frame.why.startswith(part) else f"{frame.what}: {frame.why}" if frame.why else frame.what
    return "; ".join([head, *_stops(frame, now_us), *_restores(frame), *_reads(frame)])


def _stops(frame: InterruptionFrame, now_us: int) -> list[str]:
    """How long the tasks took to end, and the restart delay."""
    said = []
    if canceled := _length_us(frame, "canceling"):
        said.append(f"canceled in {_duration(canceled)}")
    if waits := [phase for phase in frame.phases if phase.name == "waiting"]:
        if waits[-1].end_us is None and frame.due_us is not None and frame.state == "lasts":
            said.append(f"restarts in {_duration(max(0, frame.due_us - now_us))}")
        elif waited := _length_us(frame, "waiting"):
            said.append(f"restart after {_duration(waited)}")
    if not said and frame.phases[-1].name == "canceling" and frame.state == "lasts":
        said.append("its tasks are being canceled")
    return [", ".join(said)] if said else []


def _restores(frame: InterruptionFrame) -> list[str]:
    names = [phase.name for phase in frame.phases]
    if names[-1] in ("canceling", "waiting"):
        return ["it was not restarted"] if frame.state == "ended" else []
    took = _length_us(frame, "restoring")
    if frame.phases[-1].name == "restoring" and frame.phases[-1].end_us is None:
        return ["the latest checkpoint is being restored"]
    if not frame.replays:
        return ["the sources continue after the last record that they had read"]
    if frame.checkpoint is None:
        return ["the sources began from the start, because no checkpoint was complete"]
    return [f"restored checkpoint {frame.checkpoint}" + (f" in {_duration(took)}" if took else "")]


def _reads(frame: InterruptionFrame) -> list[str]:
    again = frame.records_again
    if again is None:
        return []
    records = f"{again:,} record{'s' if again != 1 else ''}"
    if frame.state == "over" and not again:
        return ["no record is read again"]
    if frame.state == "over" and frame.end_us is not None:
        return [f"{records} read again, caught up after {_duration(frame.end_us - frame.start_us)}"]
    are = "are" if again != 1 else "is"
    left = f"{records} {are} read again, {frame.records_left:,} left"
    if frame.state == "failed again":
        return [f"{left} at the next failure"]
    if frame.state == "rescaled":
        return [f"{left} when the job was rescaled"]
    if frame.state == "ended":
        return [f"{left} at its end"]
    return [left]


def _length_us(frame: InterruptionFrame, name: Phase) -> int:
    return sum((phase.end_us or phase.start_us) - phase.start_us for phase in frame.phases if phase.name == name)


def _duration(us: int) -> str:
    """Two digits of a duration, or whole seconds from ten on.

    Example:
        >>> [_duration(us) for us in (0, 400, 4_321, 104_000, 1_834_000, 72_400_000)]
        ['0 ms', '0.4 ms', '4.3 ms', '104 ms', '1.8 s', '72 s']
    """
    if us < 9_950:
        return f"{us / 1_000:.1f}".removesuffix(".0") + " ms"
    if us < 999_500:
        return f"{us / 1_000:.0f} ms"
    if us < 59_950_000:
        return f"{us / 1e6:.1f} s"
    return f"{us / 1e6:,.0f} s"
