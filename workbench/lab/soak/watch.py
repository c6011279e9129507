"""A soak from start to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from random import Random

from workbench.errors import WorkbenchError
from workbench.lab.soak.faults import KINDS, PARALLELISMS, drawn
from workbench.lab.soak.ledger import Ledger
from workbench.lab.soak.patient import NAME, Patient
from workbench.lab.soak.resources import Held, arrow_gives_back, growth, leaks, settled_mb, threads_of, too_much
from workbench.lab.soak.result import Soaked, Suffered
from workbench.lab.soak.work import Work

LOOK_EVERY_S = 1.0
MEMORY_EVERY_S = 5.0
WARM_UP_MOST_S = 300.0
"""After this time the flight recorder is full."""
MEMORY_JUDGED_FROM_S = 600.0
"""A shorter run is mostly warm-up."""
OWN_THREADS = 2
"""A live job has a thread for its master and one for writing, in addition to those of its slots."""
PATIENCE_S = 10.0
VIOLATIONS_MOST = 50


class Soak:
    """Runs a job in a folder, injects a fault every few seconds, and checks the job.

    Args:
        folder: for checkpoints and files; empty.
        seconds: the minimum time with faults; after that the job runs undisturbed and ends.
        fault_every_s: from one fault to the next.
        rate: records per second.
        seed: of the faults.
    """

    def __init__(self, folder: Path, *, seconds: float, fault_every_s: float, rate: float, seed: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._every_s = fault_every_s
        self._rate = rate
        self._seed = seed
        self._chance = Random(seed)
        self._work = Work(rate, folder)
        self._ledger = Ledger(self._work, records=int(1.1 * rate * seconds))
        self._looks = 0
        self._look_due = 0.0
        self._memory_due = 0.0
        self._resident: list[tuple[int, float]] = []
        self._held: list[Held] = []
        self._faults: list[Suffered] = []

    @arrow_gives_back()
    def run(self, on_fault: Callable[[Suffered], None], on_time: Callable[[float], None]) -> Soaked:
        """Soak.

        Args:
            on_fault: called with every fault when the job has recovered from it.
            on_time: called regularly with the seconds of the job's life.
        """
        self._warm_up()
        before = Held.now()
        self._begin = time.perf_counter()
        self._on_time = on_time
        self._patient = Patient(self._work, self._folder / "checkpoints", self._meanwhile)
        try:
            for due in self._due_times():
                self._patient.wait(self._begin + due - time.perf_counter())
                if self._patient.job.over or len(self._ledger.violations) >= VIOLATIONS_MOST:
                    break
                if (suffered := self._suffer(next(self._kinds))) is not None:
                    on_fault(suffered)
            self._end()
        finally:
            self._patient.job.cancel(wait=False)
        seconds = time.perf_counter() - self._begin
        after = self._check_held(before)
        most = Held(*(max(values) for values in zip(*map(astuple, [before, *self._held]), strict=True)))
        return Soaked(
            seconds=round(seconds, 1),
            rate=self._rate,
            seed=self._seed,
            records=self._work.read.count,
            checkpoints=int(self._patient.job.status()["last_checkpoint"] or 0),
            looks=self._looks,
            faults=tuple(self._faults),
            before=before,
            most=most,
            after=after,
            growth=growth(self._resident),
            violations=tuple(self._ledger.violations),
        )

    def _warm_up(self) -> None:
        """Run the same job for a moment at each parallelism: one-time allocations are not a leak."""
        folder = self._folder / "warm-up"
        work = Work(self._rate, folder)
        patient = Patient(work, folder / "checkpoints")
        patient.until(lambda: bool(work.arrivals) and bool(patient.job.status()["last_checkpoint"]), "get under way")
        for parallelism in sorted(set(PARALLELISMS) - {patient.parallelism()}, reverse=True):
            patient.job.rescale(parallelism)
            work.arrivals.clear()
            patient.until(lambda: bool(work.arrivals), "get under way")
        patient.end()
        self._kinds = drawn(self._chance)

    def _due_times(self) -> Iterator[float]:
        """As many as there is time for; if the job needs longer to recover from a fault, the others come later."""
        due = 0.0
        for _ in range(int(self._seconds / self._every_s)):
            due = max(due + self._every_s, time.perf_counter() - self._begin)
            yield due

    def _suffer(self, kind: str) -> Suffered | None:
        """Inject a fault, and wait until the job has recovered from it."""
        self._work.arrivals.clear()  # arrivals before a fault are not needed
        begin = time.perf_counter()
        try:
            what = KINDS[kind](self._patient, self._chance)
            done = time.perf_counter()
            self._patient.until(lambda: self._latest_arrival() > done, "bring records to its sink")
        except WorkbenchError as error:
            self._ledger.say(f"after {begin - self._begin:.1f} s, {kind}: {error}")
            return None
        suffered = Suffered(round(begin - self._begin, 1), kind, what, self._silence_from(begin, done))
        self._faults.append(suffered)
        most = self._patient.parallelism() + OWN_THREADS
        if not _soon(lambda: threads_of(NAME) <= most):
            self._ledger.say(f"after {kind} ({what}) the job has {threads_of(NAME)} threads and should have {most}")
        self._held.append(Held.now())
        return suffered

    def _latest_arrival(self) -> float:
        return self._work.arrivals[-1] if self._work.arrivals else 0.0

    def _silence_from(self, begin: float, done: float) -> float:
        """Seconds from a fault to the end of the longest silence at the sink, up to the first record afterwards.

        In-flight records may still arrive after a task was told to fail, so the next record proves nothing.
        """
        moments = [moment for moment in self._work.arrivals.copy() if moment > begin]
        last = next(number for number, moment in enumerate(moments) if moment > done)
        gaps = [
            (later - earlier, later) for earlier, later in zip([begin, *moments], moments[: last + 1], strict=False)
        ]
        return round(max(gaps)[1] - begin, 4)

    def _meanwhile(self) -> None:
        """Check everything that is committed once a second, and memory now and then."""
        now = time.perf_counter()
        if now < self._look_due:
            return
        self._look_due = now + LOOK_EVERY_S
        self._ledger.look(self._patient.job)
        self._looks += 1
        if now - self._begin > min(WARM_UP_MOST_S, self._seconds / 5) and now >= self._memory_due:
            self._memory_due = now + MEMORY_EVERY_S
            self._resident.append((self._patient.parallelism(), settled_mb()))
        self._on_time(now - self._begin)

    def _end(self) -> None:
        """Let the job run until it has read more than ever before, then end it, and check what remains."""
        patient, read = self._patient, self._work.read
        try:
            patient.until(lambda: patient.job.state == "RUNNING", "run")
            # A job that has read that much further in all parts of the stream has also read again what a failure undid.
            enough = read.furthest + int(self._rate)
            patient.until(lambda: read.unbroken >= enough, "read on")
            patient.job.pause()
            patient.wait(LOOK_EVERY_S)
            patient.end()
            self._ledger.close(patient.job)
            self._looks += 1
        except WorkbenchError as error:
            self._ledger.say(f"at the end: {error}")

    def _check_held(self, before: Held) -> Held:
        """Check the resources after the job: everything that it held should be free."""
        for leak in leaks(self._held):
            self._ledger.say(leak)
        _soon(lambda: _within(Held.now(), before))
        after = Held.now()
        if not _within(after, before):
            self._ledger.say(
                f"the ended job leaves threads {before.threads} -> {after.threads}, open files {before.files} ->"
                f" {after.files}, sockets {before.sockets} -> {after.sockets}"
            )
        grown = growth(self._resident)
        if self._seconds >= MEMORY_JUDGED_FROM_S and too_much(grown):
            self._ledger.say(f"memory grew by {grown:.1%} after the warm-up")
        return after


def _within(after: Held, before: Held) -> bool:
    return after.threads <= before.threads and after.files <= before.files and after.sockets <= before.sockets


def _soon(reached: Callable[[], bool]) -> bool:
    """Whether a condition holds within some seconds."""
    end = time.perf_counter() + PATIENCE_S
    while not reached():
        if time.perf_counter() > end:
            return False
        time.sleep(0.01)
    return True
