"""Types of the results of methods, for annotations; only these methods create them."""

from workbench.api import Job, KeyedStream, Pipeline, WindowedStream
from workbench.api.running.found_jobs import FoundJob
from workbench.api.streams.connected import ConnectedStreams
from workbench.expressions import Expression
from workbench.lessons.lesson import Lesson

__all__ = [
    "ConnectedStreams",
    "Expression",
    "FoundJob",
    "Job",
    "KeyedStream",
    "Lesson",
    "Pipeline",
    "WindowedStream",
]
