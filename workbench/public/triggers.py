"""When windows fire."""

from workbench.windows.schedule import early, on_count, on_event_time, on_processing_time, purging
from workbench.windows.trigger import Action, Trigger, TriggerContext

__all__ = [
    "Action",
    "Trigger",
    "TriggerContext",
    "early",
    "on_count",
    "on_event_time",
    "on_processing_time",
    "purging",
]
