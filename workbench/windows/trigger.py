"""Triggers that users write: they decide record by record and timer by timer when a window fires."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from workbench.durations import time_of_timer
from workbench.operators.contract.base import Json
from workbench.windows.window import Window


class Action(Enum):
    """The effect of a trigger on a window.

    Source: Flink's ``TriggerResult``.

    Attributes:
        CONTINUE: nothing happens.
        FIRE: the result is emitted, and the records are kept.
        PURGE: the records are dropped without a result.
        FIRE_AND_PURGE: the result is emitted, then the records are dropped.

    Example:
        >>> Action.FIRE_AND_PURGE.fires, Action.FIRE.purges
        (True, False)
    """

    CONTINUE = "continue"
    FIRE = "fire"
    PURGE = "purge"
    FIRE_AND_PURGE = "fire and purge"

    @property
    def fires(self) -> bool:
        """Whether the window's result is emitted."""
        return self in (Action.FIRE, Action.FIRE_AND_PURGE)

    @property
    def purges(self) -> bool:
        """Whether the window's records are dropped (after the result, if any)."""
        return self in (Action.PURGE, Action.FIRE_AND_PURGE)


class TriggerContext:
    """The state and times of a trigger for one window of one key.

    Source: Flink's ``Trigger.TriggerContext``.

    Attributes:
        state: values that survive failures; JSON values only.
        event_timers, processing_timers: the times at which the trigger is called.
        watermark_us, now_us: event time and processing time, microseconds since 1970.
    """

    __slots__ = ("event_timers", "now_us", "processing_timers", "state", "watermark_us")

    def __init__(self) -> None:
        self.state: dict[str, Json] = {}
        self.event_timers: set[int] = set()
        self.processing_timers: set[int] = set()
        self.watermark_us = 0
        self.now_us = 0

    def register_event_timer(self, time_us: int) -> None:
        """Call ``on_event_time`` when the watermark reaches `time_us`; a repeated registration has no effect.

        Args:
            time_us: microseconds since 1970; later than all event times (2**61) means the end of the input.
        """
        self.event_timers.add(time_of_timer(time_us))

    def delete_event_timer(self, time_us: int) -> None:
        """Delete a registered time; does nothing if it is not registered.

        Args:
            time_us: as registered, microseconds since 1970.
        """
        self.event_timers.discard(time_of_timer(time_us))

    def register_processing_timer(self, time_us: int) -> None:
        """Call ``on_processing_time`` when the clock reaches `time_us`.

        Args:
            time_us: microseconds since 1970; later than 2**61 means the end of the input.
        """
        self.processing_timers.add(time_of_timer(time_us))

    def delete_processing_timer(self, time_us: int) -> None:
        """Delete a registered time; does nothing if it is not registered.

        Args:
            time_us: as registered, microseconds since 1970.
        """
        self.processing_timers.discard(time_of_timer(time_us))


class Trigger:
    """Base of triggers that users write; the built-in ones are faster because they are data (`Schedule`).

    One object serves all windows; state that differs between windows goes into ``context.state``. Each method may
    return an `Action`, or None for CONTINUE. A window that ends (its lateness included) is dropped without a call.

    Source: Flink's ``Trigger``.

    Example:
        >>> class AtMost(Trigger):
        ...     '''Fires at the end of the window, or as soon as it holds `n` records.'''
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def on_record(self, time_us, window, context):
        ...         context.register_event_timer(window.end - 1)
        ...         context.state["seen"] = context.state.get("seen", 0) + 1
        ...         return Action.FIRE if context.state["seen"] == self.n else Action.CONTINUE
        ...     def on_event_time(self, time_us, window, context):
        ...         return Action.FIRE if time_us == window.end - 1 else Action.CONTINUE
    """

    __slots__ = ()

    def on_record(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        """A record with this time was added to the window; a session already includes it and the sessions merged by it.

        Args:
            time_us: the record's, microseconds since 1970.
            window: the window.
            context: the window's state, timers and times.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_event_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        """The watermark has reached a registered time.

        Args:
            time_us: as registered, microseconds since 1970.
            window: the window of the timer.
            context: the window's state, timers and times.
        """
        return None

    def on_processing_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        """The clock has reached a registered time.

        Args:
            time_us: as registered, microseconds since 1970.
            window: the window of the timer.
            context: the window's state, timers and times.
        """
        return None

    def on_merge(self, window: Window, context: TriggerContext, absorbed: Sequence[TriggerContext]) -> None:
        """Sessions were merged.

        A call of ``on_record`` for the record that connected them follows.

        Args:
            window: the merged window.
            context: of the merged window: the context of one of them, or new.
            absorbed: the contexts of the other sessions, with their timers.
        """

    def describe(self) -> str:
        """One short text for the graph."""
        return type(self).__name__
