"""The public API: streams, pipelines and jobs.

Belongs here: the fluent objects that build the logical graph, the job's handle, and the list of this process's jobs.
Does not: how anything runs, and how it is shown.
"""

from workbench.api.job.job import Job
from workbench.api.job.registry import job, jobs
from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.keyed import KeyedStream
from workbench.api.streams.stream import Stream
from workbench.api.streams.windowed import WindowedStream

__all__ = ["Job", "KeyedStream", "Pipeline", "Stream", "WindowedStream", "job", "jobs"]
