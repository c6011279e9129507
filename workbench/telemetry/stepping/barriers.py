"""Steps of the architectures in which a barrier is not a snapshot of everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.drivers.contract.step import FAILED, Step
from workbench.drivers.stepped.narrator import Lines, Narrator, at_offset
from workbench.elements import CheckpointBarrier, Records
from workbench.plan.regions import regions_of
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.in_flight import InFlight
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task
from workbench.telemetry.scene import marbles_of
from workbench.telemetry.stepping.words import are, few, plural, records


class BarriersNarrator(Narrator):
    """Notices barriers at which a task has taken a snapshot, complete checkpoints, and restores.

    Attributes:
        records_in: records that the task had received before its turn.
    """

    def __init__(self) -> None:
        self._completed = self._restores = self._last_id = self.records_in = 0

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        if task is None:
            self._completed, self._restores = _completed(master), master.restores
        else:
            self._last_id, self.records_in = task.snapshots.last_id, task.snapshots.records_in

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        task = None if execution is None else execution.task(step.actor)
        if task is not None:
            taken = task.snapshots.last_id > self._last_id and step.outcome != FAILED
            barriers = [move.element for move in step.sent if isinstance(move.element, CheckpointBarrier)]
            offsets = next((barrier.offsets for barrier in barriers), None)
            return tuple(self.at_barrier(task, offsets)) if taken else ()
        told = list(self.at_restore(master)) if master.restores > self._restores else []
        if (latest := _completed(master)) > self._completed:
            told += [
                s for record in _complete(master) if record.checkpoint_id == latest for s in self.at_complete(record)
            ]
        return tuple(told)

    def at_barrier(self, task: Task, offsets: bool | None) -> Iterable[str]:
        """Sentences about the snapshot that a task has taken; for a source, also whether it saved a new position."""
        return ()

    def at_complete(self, record: CheckpointRecord) -> Iterable[str]:
        """A checkpoint is complete."""
        return ()

    def at_restore(self, master: Master) -> Iterable[str]:
        """Tasks were restored."""
        return ()


class StopTheWorldNarrator(BarriersNarrator):
    """Describes when sources stop reading, and when they continue."""

    def at_barrier(self, task: Task, offsets: bool | None) -> Iterable[str]:
        if isinstance(task, SourceTask) and task.held:
            yield f"{task.name} reads nothing until checkpoint {task.snapshots.last_id} is complete."

    def at_complete(self, record: CheckpointRecord) -> Iterable[str]:
        yield f"Checkpoint {record.checkpoint_id} is complete: the sources continue."

    def beside(self, task: Task) -> Lines:
        return (("stands still", ""),) if isinstance(task, SourceTask) and task.held else ()


class UnalignedNarrator(Narrator):
    """Describes which records barriers have overtaken: they are in the snapshot, although no state contains them."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[int, tuple[InFlight, ...], Lines]] = {}

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        task = None if execution is None else execution.task(step.actor)
        if task is None or not (pieces := task.snapshots.in_flight):
            return ()
        last_id = task.snapshots.last_id
        if task.name in self._taken and self._taken[task.name][0] == last_id:
            return ()
        keys = tuple({key: None for edge in master.graph.edges for key in edge.keys})
        texts: dict[str, list[str]] = {}
        for piece in pieces:
            for marble in (each for buffer in piece.buffers for each in marbles_of(buffer, keys)):
                texts.setdefault(marble.key or "", []).append(marble.text)
        lines = tuple((f"overtaken {key}".rstrip(), few(found)) for key, found in texts.items())
        self._taken[task.name] = last_id, pieces, lines
        if not (count := sum(piece.rows for piece in pieces)):
            return ()
        told = f"Barrier {last_id} has overtaken {records(count)}, which {are(count)} in the snapshot of {task.name}."
        return (told,)

    def overtaken(self, task: str, checkpoint_id: int) -> Lines:
        last_id, _, lines = self._taken.get(task, (0, (), ()))
        return lines if last_id == checkpoint_id else ()

    def about(self, channel: Channel) -> Iterable[str]:
        overtaken = {id(buffer) for _, pieces, _ in self._taken.values() for each in pieces for buffer in each.buffers}
        for element in tuple(channel.elements):
            if isinstance(element, Records):
                yield from ["overtaken" if id(element) in overtaken else ""] * len(element)


class ChangelogNarrator(BarriersNarrator):
    """Describes how far the log of state changes is ahead of the positions that sources have saved."""

    def at_barrier(self, task: Task, offsets: bool | None) -> Iterable[str]:
        entry, saved_at = task.snapshots.last_id, task.snapshots.saved_at
        if not isinstance(task, SourceTask):
            yield f"{task.name} logs its state: entry {entry}."
        elif saved_at is not None and offsets:
            yield f"{task.name} saves a new position with entry {entry}: {_saved(task, saved_at)}."
        elif saved_at is not None:
            yield (
                f"{task.name} saves its old position with entry {entry}: {_saved(task, saved_at)}, although it has "
                f"read {records(self.records_in - saved_at)} more. The log will contain their effects, but the "
                "position is before them."
            )

    def copied(self, task: Task, held: Lines, barrier: CheckpointBarrier | None) -> Lines:
        saved_at = task.snapshots.saved_at
        if not isinstance(task, SourceTask) or barrier is None or barrier.offsets is None or saved_at is None:
            return held
        return at_offset(held, _saved(task, saved_at))

    def at_complete(self, record: CheckpointRecord) -> Iterable[str]:
        told = _doubled(record)
        yield f"Entry {record.checkpoint_id} of the log is complete: " + (
            f"a failure now would apply twice: {told}." if told else "log and positions agree."
        )

    def at_restore(self, master: Master) -> Iterable[str]:
        restore = master.last_restore
        record = next(
            (each for each in _complete(master) if restore and each.checkpoint_id == restore.checkpoint_id), None
        )
        if record is None:
            return
        told = _doubled(record)
        yield f"Operators load the log up to entry {record.checkpoint_id}; sources go back to the positions in it: " + (
            f"applied twice: {told}." if told else "nothing is applied twice."
        )

    def beside(self, task: Task) -> Lines:
        saved_at = task.snapshots.saved_at
        if not isinstance(task, SourceTask) or saved_at is None:
            return ()
        return ("position saved", str(_saved(task, saved_at))), (
            "read since",
            str(task.snapshots.records_in - saved_at),
        )

    def facts(self, master: Master, execution: Execution | None) -> Lines:
        complete = list(_complete(master))
        if not complete:
            return (("log", "empty"),)
        doubled = _doubled(complete[-1]) or "nothing"
        return ("log to entry", str(complete[-1].checkpoint_id)), ("a failure applies twice", doubled)


class AtMostOnceNarrator(BarriersNarrator):
    """Describes what a failure loses."""

    def __init__(self) -> None:
        super().__init__()
        self._failed: set[str] = set()
        self._running: Execution | None = None
        self._lost = ""

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        super().look(master, execution, task)
        if task is None and self._failed and execution is not None:
            self._running = execution
            self._lost = _loss(execution, self._failed)

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        told = super().tell(step, master, execution)
        if step.outcome == FAILED:
            region = next(each for each in regions_of(master.graph) if step.actor in each.tasks)
            self._failed.update(region.tasks)
        elif self._failed and self._running is not None and not _still(self._running, execution, self._failed):
            told = (*told, f"Lost for good: {self._lost}. Sources will continue with the next record.")
            self._failed, self._running = set(), None
        return told

    def copied(self, task: Task, held: Lines, barrier: CheckpointBarrier | None) -> Lines:
        is_source = isinstance(task, SourceTask)
        return held if is_source or barrier is None or not barrier.outputs_only else ()

    def at_complete(self, record: CheckpointRecord) -> Iterable[str]:
        yield f"Flush {record.checkpoint_id} is complete: sinks have committed their rows; no state was saved."

    def facts(self, master: Master, execution: Execution | None) -> Lines:
        if execution is None:
            return ()
        return (("a failure now loses", _loss(execution, {task.name for task in execution.tasks})),)


def _saved(task: SourceTask, saved_at: int) -> int:
    """The last saved offset, computed from the number of records that the task had received at that time."""
    read = task.reader.rows_read
    return saved_at if read is None else read - (task.snapshots.records_in - saved_at)


def _complete(master: Master) -> Iterator[CheckpointRecord]:
    return (record for record in master.coordinator.history if record.state == "COMPLETED")


def _completed(master: Master) -> int:
    return max((record.checkpoint_id for record in _complete(master)), default=0)


def _doubled(record: CheckpointRecord) -> str:
    """The records that a failure would apply twice because the logged state contains them, by task; empty: none."""
    early = {task: ack.early_records for task, ack in record.acknowledgements.items() if ack.early_records}
    return ", ".join(f"{task} {records(count)}" for task, count in sorted(early.items()))


def _still(before: Execution, after: Execution | None, names: Iterable[str]) -> bool:
    """Whether these tasks have not been replaced."""
    return after is not None and all(before.task(name) is after.task(name) for name in names)


def _loss(execution: Execution, names: set[str]) -> str:
    """The losses if these tasks failed now, in words."""
    on_their_way = sum(
        len(element)
        for channel in execution.channels
        if channel.target in names
        for element in channel.elements
        if isinstance(element, Records)
    )
    keys = sum(_keys(task) for task in execution.tasks if task.name in names)
    return f"{records(on_their_way)} on the way, the state of {keys} {plural('key', keys)}, and rows not flushed"


def _keys(task: Task) -> int:
    """The number of keys for which its operators have state."""
    known = 0
    for link in task.links:
        try:
            known += link.operator.query_keys(1)[0]
        except NotImplementedError:  # it has no keyed state
            continue
    return known
