"""When windows fire, by a user's trigger: called for every record and timer, one after the other."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.durations import LATEST_TIME, MAX_TIME, NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import RecordError
from workbench.from_json import made, parsed
from workbench.operators.windows.firing import Moment, Round, Waves
from workbench.operators.windows.places import Placement
from workbench.raised import PASSING, VALUE_MAX, described, kind_of, one_line, shown
from workbench.windows import Window
from workbench.windows.schedule import TimeKind
from workbench.windows.trigger import Action, Trigger, TriggerContext

_Timers = list[tuple[int, int]]
_Times = tuple[int, ...]
_Act = tuple[int, bool, bool, int]  # an entry, whether it fires, whether it is purged, the event time of the timer


class ScriptedFiring:
    """Calls a `Trigger`; keeps its context for each entry that has one.

    A window without records since it was purged has no result, so it does not fire. When a window is over, its
    remaining
    timers do not fire, however far time advances at once: the frequency of watermarks does not affect results.

    Args:
        trigger: the trigger.
        end_in: the kind of time whose passing ends a window; None: time does not end windows.
        lateness_us: how long after its end a window accepts records.
    """

    def __init__(self, trigger: Trigger, end_in: TimeKind | None = None, lateness_us: int = 0) -> None:
        self._trigger = trigger
        self._end_in = end_in
        self._lateness_us = lateness_us
        self._empty: set[int] = set()  # entries without a record since they were purged
        self._contexts: dict[int, TriggerContext] = {}
        self._event: _Timers = []  # heaps of (time, entry); a timer unknown to its context is void
        self._processing: _Timers = []

    def grow(self, entries: int) -> None:
        """Does nothing: contexts are created when an entry first gets a record."""

    def _context(self, entry: int, moment: Moment) -> TriggerContext:
        context = self._contexts.get(entry)
        if context is None:
            context = self._contexts[entry] = TriggerContext()
        context.watermark_us, context.now_us = moment.watermark_us, moment.now_us
        return context

    def _ask(self, entry: int, context: TriggerContext, method: Callable[[TriggerContext], object]) -> Action:
        """Call the trigger, and schedule the timers that it requests."""
        event, processing = set(context.event_timers), set(context.processing_timers)
        try:
            action = method(context)
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(f"the trigger {self._name()} raised {described(error)}") from error
        if not isinstance(action, Action | None):
            raise RecordError(
                f"the trigger {self._name()} returned {shown(action)}: return a wb.triggers.Action, or None to continue"
            )
        for heap, before, after in (
            (self._event, event, context.event_timers),
            (self._processing, processing, context.processing_timers),
        ):
            for time_us in after - before:
                heapq.heappush(heap, (time_us, entry))
        return action or Action.CONTINUE

    def _name(self) -> str:
        """The name of the user's trigger, whatever its own method does."""
        try:
            return one_line(self._trigger.describe(), VALUE_MAX)
        except Exception:  # noqa: BLE001  there is another failure to be told
            return kind_of(self._trigger)

    def waves(self, placement: Placement, times: Int64s | None, moment: Moment) -> Waves | None:
        entries = placement.entries.tolist()
        instants = [NO_TIME] * len(entries) if times is None else times.tolist()
        moves = placement.moves.tolist()
        wave: dict[int, int] = {}
        of_pair: list[int] = []
        of_move: list[int] = []
        acting: list[int] = []
        actions: list[Action] = []
        bounds = zip(placement.starts.tolist(), placement.ends.tolist(), strict=True)
        for pair, (entry, time_us, (start, end)) in enumerate(zip(entries, instants, bounds, strict=True)):
            window = Window(start, end)
            absorbed = []
            while len(of_move) < len(moves) and moves[len(of_move)][0] <= pair:
                _, kept, gone = moves[len(of_move)]
                absorbed.append(self._take_over(gone))
                wave[kept] = max(wave.get(kept, 0), wave.get(gone, 0))
                of_move.append(wave[kept])
            context = self._context(entry, moment)
            if absorbed:
                self._ask(entry, context, partial(self._merge, window, absorbed))
            action = self._ask(entry, context, partial(self._trigger.on_record, time_us, window))
            of_pair.append(wave.get(entry, 0))
            self._note(entry, action, came=True)
            if action is not Action.CONTINUE:
                acting.append(pair)
                actions.append(action)
                wave[entry] = of_pair[-1] + 1
        return Waves(
            max(of_pair, default=0) + 1,
            np.array(of_pair, np.int64),
            np.array(of_move, np.int64),
            np.array(acting, np.int64),
            np.array([action.fires for action in actions], np.bool_),
            np.array([action.purges for action in actions], np.bool_),
        )

    def _take_over(self, gone: int) -> TriggerContext:
        """The context of a session that has been merged into another."""
        return self._contexts.pop(gone, None) or TriggerContext()

    def _merge(self, window: Window, absorbed: list[TriggerContext], context: TriggerContext) -> None:
        self._trigger.on_merge(window, context, absorbed)

    def is_due(self, moment: Moment) -> bool:
        return bool(
            (self._event and self._event[0][0] <= moment.watermark_us)
            or (self._processing and self._processing[0][0] <= moment.now_us)
        )

    def due(self, moment: Moment, starts: Int64s, ends: Int64s) -> Sequence[Round]:
        acted: list[_Act] = []
        for heap, limit_us, is_event in (
            (self._event, moment.watermark_us, True),
            (self._processing, moment.now_us, False),
        ):
            while heap and heap[0][0] <= limit_us:
                time_us, entry = heapq.heappop(heap)
                context = self._contexts.get(entry)
                timers = None if context is None else context.event_timers if is_event else context.processing_timers
                if timers is None or time_us not in timers:
                    continue  # deleted, or its window is over
                timers.discard(time_us)
                if self._is_over(int(ends[entry]), time_us, is_event, moment):
                    continue
                call = self._trigger.on_event_time if is_event else self._trigger.on_processing_time
                window = Window(int(starts[entry]), int(ends[entry]))
                action = self._ask(entry, self._context(entry, moment), partial(call, time_us, window))
                fires = action.fires and entry not in self._empty
                self._note(entry, action, came=False)
                if fires or action.purges:
                    acted.append((entry, fires, action.purges, time_us if is_event else NO_TIME))
        return list(_rounds(acted))

    def _is_over(self, end: int, time_us: int, is_event: bool, moment: Moment) -> bool:
        """Whether a window had ended at the time of this timer."""
        if self._end_in == "processing":
            return not is_event and time_us > end
        last_us = end - 1 + self._lateness_us
        return self._end_in == "event" and (time_us if is_event else moment.watermark_us + 1) > last_us

    def _note(self, entry: int, action: Action, *, came: bool) -> None:
        if action.purges:
            self._empty.add(entry)
        elif came:
            self._empty.discard(entry)

    def next_time_us(self) -> int | None:
        due = self._processing[0][0] if self._processing else MAX_TIME
        return None if due > LATEST_TIME else due

    def release(self, entries: Int64s) -> None:
        for entry in entries.tolist():
            self._contexts.pop(entry, None)
            self._empty.discard(entry)

    def retain(self, entries: Int64s) -> None:
        self._empty = {new for new, old in enumerate(entries.tolist()) if old in self._empty}
        contexts = {new: self._contexts[old] for new, old in enumerate(entries.tolist()) if old in self._contexts}
        self._contexts = contexts
        self._schedule(contexts.items())

    def _schedule(self, contexts: Iterable[tuple[int, TriggerContext]]) -> None:
        self._event, self._processing = [], []
        for entry, context in contexts:
            self._event += [(time_us, entry) for time_us in context.event_timers]
            self._processing += [(time_us, entry) for time_us in context.processing_timers]
        heapq.heapify(self._event)
        heapq.heapify(self._processing)

    def state(self, entries: Int64s) -> dict[str, pa.Array]:
        texts = []
        for entry in entries.tolist():
            context = self._contexts.get(entry) or TriggerContext()
            kept: list[object] = [context.state, sorted(context.event_timers), sorted(context.processing_timers)]
            if entry in self._empty:
                kept.append(True)
            try:
                texts.append(json.dumps(kept, sort_keys=True))
            except (TypeError, ValueError, RecursionError) as error:
                raise RecordError(
                    f"the trigger {self._name()} keeps {shown(context.state)}: put JSON values only into context.state"
                ) from error
        return {"trigger": pa.array(texts, pa.string())}

    def load(self, entries: Int64s, table: pa.Table, ends: Int64s) -> None:
        for entry, text in zip(entries.tolist(), table.column("trigger").to_pylist(), strict=True):
            context = self._contexts[entry] = TriggerContext()
            kept = parsed(made(str, text, "trigger"))
            context.state, event, processing, *empty = made(tuple[Any, ...], kept, "trigger")
            if empty:
                self._empty.add(entry)
            context.event_timers = set(made(_Times, event, "trigger"))
            context.processing_timers = set(made(_Times, processing, "trigger"))
        self._schedule(self._contexts.items())


def runs_at(records: Records, watermark_us: int) -> Iterable[Records]:
    """The records, each of those that are not after the watermark by itself: a timer that one of them sets may be due
    before the next one comes."""
    assert records.timestamps is not None
    behind = records.timestamps <= watermark_us
    if not behind.any():
        return [records]
    cuts = np.flatnonzero(behind[1:] | behind[:-1]) + 1
    bounds = [0, *cuts.tolist(), len(records)]
    return [records.slice(begin, end - begin) for begin, end in pairwise(bounds)]


def _rounds(acted: Sequence[_Act]) -> Iterable[Round]:
    """The actions in order, split so that no entry occurs twice in a round."""
    rounds: list[list[_Act]] = []
    times: dict[int, int] = {}
    for act in acted:
        at = times.get(act[0], 0)
        times[act[0]] = at + 1
        if at == len(rounds):
            rounds.append([])
        rounds[at].append(act)
    for some in rounds:
        entries, fires, purges, moments = zip(*some, strict=True)
        yield Round(
            np.array(entries, np.int64),
            np.array(fires, np.bool_),
            np.array(purges, np.bool_),
            np.array(moments, np.int64),
        )
