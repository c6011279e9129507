"""Triggers that users write: when a window fires, decided record by record and timer by timer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from workbench.durations import time_of_timer
from workbench.operators.contract.base import Json
from workbench.windows.window import Window


class Action(Enum):
    """What a trigger does with a window.

    Source: Flink's ``TriggerResult``.

    Attributes:
        CONTINUE: nothing happens.
        FIRE: the result is emitted, and the records are kept.
        PURGE: the records are forgotten without a result.
        FIRE_AND_PURGE: the result is emitted, then the records are forgotten.

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
        """Whether the window's records are forgotten (after the result, if any)."""
        return self in (Action.PURGE, Action.FIRE_AND_PURGE)


class TriggerContext:
    """What a trigger knows and keeps of one window of one key.

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
        """Ask for ``on_event_time`` when the watermark reaches `time_us`; asking twice is asking once.

        Args:
            time_us: microseconds since 1970; later than all event times (2**61) means the end of the input.
        """
        self.event_timers.add(time_of_timer(time_us))

    def delete_event_timer(self, time_us: int) -> None:
        """Take back a time that was asked for; nothing happens when it was not.

        Args:
            time_us: as it was registered, microseconds since 1970.
        """
        self.event_timers.discard(time_of_timer(time_us))

    def register_processing_timer(self, time_us: int) -> None:
        """Ask for ``on_processing_time`` when the clock reaches `time_us`.

        Args:
            time_us: microseconds since 1970; later than 2**61 means the end of the input.
        """
        self.processing_timers.add(time_of_timer(time_us))

    def delete_processing_timer(self, time_us: int) -> None:
        """Take back a time that was asked for; nothing happens when it was not.

        Args:
            time_us: as it was registered, microseconds since 1970.
        """
        self.processing_timers.discard(time_of_timer(time_us))


class Trigger:
    """Base of triggers that users write; the ones of the workbench are faster because they are data (`Schedule`).

    One object serves all windows; what differs from window to window goes into ``context.state``. Each method may
    return an `Action`, or None for CONTINUE. A window that ends (its lateness included) is forgotten without a call.

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
        """A record with this time was put into the window; a session already includes it and what it merged.

        Args:
            time_us: the record's, microseconds since 1970.
            window: the one that it was put into.
            context: the window's state, timers and times.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_event_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        """The watermark has reached a time that was asked for.

        Args:
            time_us: as it was registered, microseconds since 1970.
            window: whose timer it is.
            context: the window's state, timers and times.
        """
        return None

    def on_processing_time(self, time_us: int, window: Window, context: TriggerContext) -> Action | None:
        """The clock has reached a time that was asked for.

        Args:
            time_us: as it was registered, microseconds since 1970.
            window: whose timer it is.
            context: the window's state, timers and times.
        """
        return None

    def on_merge(self, window: Window, context: TriggerContext, absorbed: Sequence[TriggerContext]) -> None:
        """Sessions have become one.

        ``on_record`` for the record that joined them follows.

        ``on_record`` for the record that joined them follows.

        Args:
            window: the one that they have become.
            context: of that window; it is the context of one of them, or new.
            absorbed: the contexts of those that are no more, with their timers.
        """

    def describe(self) -> str:
        """One short text for the graph."""
        return type(self).__name__
