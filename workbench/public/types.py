"""Types of the results of methods, for annotations; only these methods create them."""

from workbench.api.job.job import Job
from workbench.api.running.found_jobs import FoundJob
from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.connected import ConnectedStreams
from workbench.api.streams.keyed import KeyedStream
from workbench.api.streams.windowed import WindowedStream
from workbench.expressions import Expression
from workbench.lessons.lesson import Lesson
from workbench.patterns.pattern import Pattern

__all__ = [
    "ConnectedStreams",
    "Expression",
    "FoundJob",
    "Job",
    "KeyedStream",
    "Lesson",
    "Pattern",
    "Pipeline",
    "WindowedStream",
]
