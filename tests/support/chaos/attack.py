"""One run: a job that is attacked while a producer feeds it, and the verdict about its outputs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forking import Processes
from waiting import until

from .judge import Found, Verdict, judge_kept, judge_log, judge_table
from .outputs import COLUMNS, expected_of, identity_of, is_table
from .plans import SERVER_OF, Fault, Plan
from .producer import Producer
from .systems import System

END_S = 90.0
"""After which a job has hung that has only to read to its end."""
ENDLESS = 1_000_000
"""Rows of an input that keeps nothing: a job that reads it anew has something to read."""
ANSWER_S = 30.0
"""After which an order is not waited for: the job's process is killed."""
KINDS = ("kills", "restarts", "stops", "cuts", "slow", "rescales", "resumes")


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        plan: of the run.
        happened: how often what happened.
        refused: orders that the job refused, with the reason.
        verdicts: of its outputs, by sink.
        failure: another finding, such as a job that ended by itself; empty: none.
        seconds: that it took.
    """

    plan: Plan
    happened: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    failure: str = ""
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        """Whether nothing was found."""
        return not self.failure and all(verdict.fine for _, verdict in self.verdicts)

    @property
    def findings(self) -> str:
        """What was found."""
        texts = [f"{sink}: {verdict}" for sink, verdict in self.verdicts if not verdict.fine]
        return "; ".join([self.failure] * bool(self.failure) + texts)


class _FailedError(Exception):
    """Ends a run with a finding."""


class Attack:
    """One run.

    Args:
        plan: what happens.
        systems: by name, and ``""`` for the files; they are as they were at the end.
        processes: start the job.
        folder: for its checkpoints.
    """

    def __init__(self, plan: Plan, systems: Mapping[str, System], processes: Processes, folder: Path) -> None:
        self._plan, self._systems, self._processes, self._folder = plan, systems, processes, folder
        self._outcome = Outcome(plan)
        self._source = systems[SERVER_OF.get(plan.source, "")]
        self._seen: dict[str, list[Found]] = {sink: [] for sink in plan.sinks}
        self._parallelism = plan.parallelism
        self._process = 0
        self._savepoints = 0

    def run(self) -> Outcome:
        """Run it."""
        begin_s = time.monotonic()
        producer = None
        try:
            producer = self._begun()
            if not self._source.keeps:
                producer.allow(ENDLESS)
            nexts = [fault.row for fault in self._plan.faults[1:]] + [self._plan.rows]
            for fault, to in zip(self._plan.faults, nexts, strict=True):
                producer.reach(fault.row)
                producer.allow(to)
                if fault.awaits:
                    self._order("work")
                if self._over():
                    break
                self._do(fault)
            if self._source.keeps:
                producer.reach(self._plan.rows)
                self._finish()
            else:
                self._quiet(producer)
        except _FailedError as error:
            self._outcome.failure = str(error)
        finally:
            if producer is not None:
                producer.close()
            self._clean()
        self._outcome.seconds = time.monotonic() - begin_s
        return self._outcome

    def _begun(self) -> Producer:
        plan = self._plan
        self._source.create_input(plan.source, plan.seed)
        for sink in plan.sinks:
            self._system_of(sink).create_output(sink, plan.seed, COLUMNS[self._shape_of(sink)])
        files = self._source.relay is None
        before = plan.rows if files else plan.before
        if before:
            self._source.feed(plan.source, plan.seed, range(before))
        self._start()
        return Producer(lambda numbers: self._source.feed(plan.source, plan.seed, numbers), self._source.busy, before)

    def _system_of(self, kind: str) -> System:
        return self._systems[SERVER_OF.get(kind, "")]

    # the job's process -----------------------------------------------------------------------------------------------

    def _start(self, *, bounded: bool = False, restore: str | None = None) -> None:
        for name in ("order", "answer", "ended"):
            (self._folder / name).unlink(missing_ok=True)
        plan = self._plan
        self._process = self._processes.start(
            source=[plan.source, self._source.place],
            sinks=[[sink, self._system_of(sink).place] for sink in plan.sinks],
            folder=str(self._folder),
            number=plan.seed,
            shape=plan.shape,
            parallelism=self._parallelism,
            bounded=bounded,
            rate=None if bounded else plan.rows / 6,
            restore=restore,
            mode=plan.mode,
            interval=plan.interval,
        )

    def _reaped(self, end: Callable[[], int]) -> int:
        status = end()
        self._process = 0
        return status

    def _over(self) -> bool:
        """Whether the process has ended; it is still to be waited for."""
        return b") Z " in Path(f"/proc/{self._process}/stat").read_bytes()

    def _kill(self) -> None:
        """Kill the job's process, which must have been running, or have read all of its files."""
        self._ended(self._reaped(self._processes.kill), (-signal.SIGKILL,))

    def _ended(self, status: int, right: tuple[int, ...]) -> None:
        files = self._source.relay is None
        if status not in right and not (files and status == 0):
            raise _FailedError(f"the job ended by itself with status {status}: {self._last_words()}")
        if status == -signal.SIGKILL:
            self._outcome.happened["kills"] += 1
        for system in self._systems.values():
            if system.late and system.relay is not None:
                with system.busy:  # the producer would send again what was lost
                    system.relay.forget()

    def _last_words(self) -> str:
        with suppress(FileNotFoundError):
            return (self._folder / "ended").read_text()[:1_500]
        return "it said nothing"

    def _resume(self, fault: Fault, restore: str | None = None) -> None:
        if fault.parallelism != self._parallelism:
            self._outcome.happened["rescales"] += 1
        self._parallelism = fault.parallelism
        self._outcome.happened["resumes"] += 1
        self._start(restore=restore)

    def _order(self, order: str) -> str:
        """Have the running job do something; returns its answer, or an empty text if none came."""
        part = self._folder / "order.part"
        part.write_text(order)
        part.rename(self._folder / "order")
        answer = self._folder / "answer"
        end_s = time.monotonic() + ANSWER_S
        while not answer.exists() and not self._over() and time.monotonic() < end_s:
            time.sleep(0.01)
        text = answer.read_text() if answer.exists() else ""
        answer.unlink(missing_ok=True)
        if text.startswith("refused"):
            self._outcome.refused.append(f"{order}: {text}")
        return text

    # faults ----------------------------------------------------------------------------------------------------------

    def _do(self, fault: Fault) -> None:
        if fault.server:
            act = {"restart": self._restart, "hang": self._hang, "cut": self._cut, "slow": self._slow}
            act.get(fault.kind, self._ambush)(fault)
        else:
            act = {
                "kill-in-checkpoint": self._killed_in_checkpoint,
                "rescale-live": self._rescale_live,
                "stall": self._stall,
                "stop": self._stop,
                "savepoint": self._savepoint,
            }
            act.get(fault.kind, self._killed)(fault)

    def _killed(self, fault: Fault) -> None:
        time.sleep(fault.for_s)
        self._kill()
        self._look()
        self._resume(fault)

    def _killed_in_checkpoint(self, fault: Fault) -> None:
        self._order(f"die {fault.after * 3}")
        self._kill()
        self._look()
        self._resume(fault)

    def _stall(self, fault: Fault) -> None:
        os.kill(self._process, signal.SIGSTOP)
        time.sleep(fault.for_s)
        os.kill(self._process, signal.SIGCONT)
        self._outcome.happened["stops"] += 1

    def _rescale_live(self, fault: Fault) -> None:
        if self._order(f"rescale {fault.parallelism}") == "done":
            self._outcome.happened["rescales"] += fault.parallelism != self._parallelism
            self._parallelism = fault.parallelism

    def _stop(self, fault: Fault) -> None:
        self._order("stop")
        self._ended(self._reaped(self._processes.wait), (0,))
        self._look()
        self._resume(fault)

    def _savepoint(self, fault: Fault) -> None:
        self._savepoints += 1
        name = f"savepoint-{self._savepoints}"
        done = self._order(f"savepoint {name}") == "done"
        if done:
            self._ended(self._reaped(self._processes.wait), (-signal.SIGKILL,))
        else:
            self._kill()
        self._look()
        self._resume(fault, name if done else None)

    def _restart(self, fault: Fault) -> None:
        system = self._systems[fault.server]
        with system.busy:
            system.down()
            self._during(fault)
            system.up()
        self._outcome.happened["restarts"] += 1

    def _hang(self, fault: Fault) -> None:
        system = self._systems[fault.server]
        with system.busy, system.hanging():
            self._during(fault)
        self._outcome.happened["stops"] += 1

    def _cut(self, fault: Fault) -> None:
        system = self._systems[fault.server]
        assert system.relay is not None
        with system.busy:
            system.relay.cut()
            self._during(fault)
            system.relay.mend()
        self._outcome.happened["cuts"] += 1

    def _slow(self, fault: Fault) -> None:
        system = self._systems[fault.server]
        assert system.relay is not None
        system.relay.delay_s = 0.01
        self._during(fault)
        system.relay.delay_s = 0.0
        self._outcome.happened["slow"] += 1

    def _during(self, fault: Fault) -> None:
        """Wait for the end of a fault, and maybe kill the job in the middle."""
        if fault.kills and not (self._systems[fault.server].late and fault.kind in ("hang", "slow")):
            time.sleep(fault.for_s / 2)
            self._kill()
            self._resume(fault)
            time.sleep(fault.for_s / 2)
        else:
            time.sleep(fault.for_s)

    def _ambush(self, fault: Fault) -> None:
        """Cut connections, or kill the job, in the middle of what is sent. If nothing is, that happens anyway."""
        system = self._systems[fault.server]
        relay = system.relay
        assert relay is not None
        sprung = threading.Event()
        act: Callable[[], Any] = relay.cut if fault.kind == "torn" else lambda: os.kill(self._process, signal.SIGKILL)

        def spring() -> None:
            act()
            sprung.set()

        with system.busy if system.late else nullcontext():
            relay.ambush(fault.after, spring, to_server=fault.kind != "kill-in-answer")
            if not sprung.wait(2.0) and not relay.disarm():
                spring()
            sprung.wait(10)
            if fault.kind == "torn":
                self._outcome.happened["cuts"] += 1
                time.sleep(fault.for_s)
                relay.mend()
        if fault.kind != "torn":
            self._kill()
            self._look()
            self._resume(fault)

    # the verdict -----------------------------------------------------------------------------------------------------

    def _found(self, sink: str) -> list[Found]:
        system = self._system_of(sink)
        with system.busy:
            return system.found(sink, self._plan.seed, COLUMNS[self._shape_of(sink)])

    def _shape_of(self, sink: str) -> str:
        if self._plan.source == "postgresql-log":
            return "rows" if self._plan.shape == "rows" else "groups"
        return "counts" if is_table(sink) else self._plan.shape

    def _look(self) -> None:
        """Between two processes: what is there has come once, and what was seen before is still there."""
        for sink in self._plan.sinks:
            if not is_table(sink):
                now = self._found(sink)
                kept = judge_kept(self._seen[sink], now)
                if not kept.fine:
                    self._outcome.verdicts.append((sink, kept))
                    raise _FailedError("rows were taken back")
                self._seen[sink] = now

    def _finish(self) -> None:
        """Let the job read to the end, and judge."""
        self._kill()
        self._look()
        self._start(bounded=True)
        timer = threading.Timer(END_S, os.kill, (self._process, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        status = self._reaped(self._processes.wait)
        timer.cancel()
        if status == -signal.SIGKILL:
            raise _FailedError(f"the job did not end within {END_S:.0f} s")
        self._ended(status, (0,))
        for sink in self._plan.sinks:
            self._judge(sink, self._plan.rows)

    def _judge(self, sink: str, rows: int) -> None:
        shape = self._shape_of(sink)
        expected = expected_of(self._plan.source, shape, rows, table=is_table(sink))
        found = self._found(sink)
        if is_table(sink):
            verdict = judge_table(expected, found, identity_of(self._plan.source, shape, table=True))
        else:
            verdict = judge_log(expected, found, identity_of(self._plan.source, shape), self._plan.promise(sink))
        self._outcome.verdicts.append((sink, verdict))

    def _quiet(self, producer: Producer) -> None:
        """A server that keeps nothing: once the job reads, everything that comes is there once."""
        (sink,) = self._plan.sinks
        begin = producer.fed

        def ids() -> set[object]:
            return {each["id"] for each in self._found(sink) if isinstance(each, dict)}

        def seen() -> bool:
            return any(isinstance(each, int) and each >= begin for each in ids())

        until(seen)
        begin = producer.fed
        producer.reach(begin + 70)
        producer.close()
        until(lambda: producer.fed - 1 in ids())
        self._order("stop")
        self._ended(self._reaped(self._processes.wait), (0,))
        self._judge(sink, producer.fed)
        lost = set(range(begin, producer.fed)) - ids()
        if lost:
            raise _FailedError(f"{len(lost)} rows were lost while the job read: {sorted(lost)[:5]}")

    def _clean(self) -> None:
        """Leave the servers as they were."""
        if self._process:
            self._reaped(self._processes.kill)
        for system in self._systems.values():
            if system.relay is not None:
                system.relay.disarm()
        self._source.drop(self._plan.source, self._plan.seed)
